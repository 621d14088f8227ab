"""Convolution as matrix products: on real numbers, and exactly on integers held in floats.

All functions expect channels last and any number of spatial axes. Memory is bounded: the columns that a window
gathers are built for a block of rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from onert.ir.dtype import Array

from .window import Tap, Window, taps

BLOCK_ELEMENTS = 1 << 22
"""The maximum number of elements of gathered columns at a time (unless a single row of outputs needs more)."""


def convolve(x: Array, weight: Array, windows: Sequence[Window], groups: int = 1) -> Array:
    """Convolution: each output is the sum of products of a window of `x` with a filter.

    `x` is [batch, *spatial, channels], `weight` [*window, channels / groups, filters], of one floating or integer type,
    in which sums are accumulated; the result is [batch, *outputs, filters]. Filters of group g read only its channels.
    """
    batch, spatial, channels = x.shape[0], x.shape[1:-1], x.shape[-1]
    count = weight.shape[-1]
    sizes = tuple(w.outputs(s) for w, s in zip(windows, spatial, strict=True))
    out = np.zeros((batch, *sizes, count), x.dtype)
    if not out.size or not x.size or not weight.size:
        return out
    matrix = _filters(weight, groups)
    if sizes == spatial and all(w.size == 1 and w.stride == 1 for w in windows):
        flat = x.reshape(-1, 1, channels)
        out[...] = _multiply(flat, matrix).reshape(out.shape)
        return out
    if not (weight.dtype.kind in "iu" or np.isfinite(weight).all()):
        return _convolve_by_taps(x, matrix, windows, out)
    elements = math.prod(w.size for w in windows)
    row = math.prod(sizes[1:]) * elements * channels
    rows = max(1, min(sizes[0], BLOCK_ELEMENTS // max(row, 1)))
    inner = [list(w.taps(s)) for w, s in zip(windows[1:], spatial[1:], strict=True)]
    before = windows[0].before(spatial[0])
    for item in range(batch):
        for start in range(0, sizes[0], rows):
            stop = min(start + rows, sizes[0])
            outer = list(taps(windows[0], spatial[0], stop - start, before - start * windows[0].stride))
            columns = np.zeros((stop - start, *sizes[1:], elements, channels), x.dtype)
            _gather(x[item], columns, windows, [outer, *inner])
            made = _multiply(columns.reshape(-1, elements, channels), matrix)
            out[item, start:stop] = made.reshape(stop - start, *sizes[1:], count)
    return out


def _convolve_by_taps(x: Array, matrix: Array, windows: Sequence[Window], out: Array) -> Array:
    """The same tap by tap, so that padding is never multiplied by a filter: zero times infinity would be NaN."""
    channels = x.shape[-1]
    by_tap = matrix.reshape((len(matrix), *(w.size for w in windows), -1, matrix.shape[2]))
    for each in product(*(list(w.taps(s)) for w, s in zip(windows, x.shape[1:-1], strict=True))):
        part = x[(slice(None), *(t.source for t in each))]
        element: tuple[slice | int, ...] = (slice(None), *(t.index for t in each))
        made = _multiply(part.reshape(-1, 1, channels), by_tap[element])
        out[(slice(None), *(t.target for t in each))] += made.reshape(*part.shape[:-1], out.shape[-1])
    return out


def _filters(weight: Array, groups: int) -> Array:
    """[*window, channels, outputs] as one matrix [window * channels, outputs] per group."""
    count = weight.shape[-1]
    elements = math.prod(weight.shape[:-1])
    return np.ascontiguousarray(weight.reshape(elements, groups, count // groups).transpose(1, 0, 2))


def _multiply(columns: Array, matrix: Array) -> Array:
    """The product of [rows, elements, channels] with the matrix of each group: [rows, outputs]."""
    rows, elements, channels = columns.shape
    groups, _, count = matrix.shape
    if groups == 1:
        out: Array = columns.reshape(rows, elements * channels) @ matrix[0]
        return out
    split = columns.reshape(rows, elements, groups, channels // groups).transpose(2, 0, 1, 3)
    each = split.reshape(groups, rows, -1) @ matrix
    return each.transpose(1, 0, 2).reshape(rows, groups * count)


def _gather(x: Array, columns: Array, windows: Sequence[Window], found: Sequence[Sequence[Tap]]) -> None:
    """Copy the input elements under each window element into `columns` [*outputs, elements, channels]."""
    for each in product(*found):
        element = 0
        for window, tap in zip(windows, each, strict=True):
            element = element * window.size + tap.index
        target: tuple[slice | int, ...] = (*(t.target for t in each), element)
        columns[target] = x[tuple(t.source for t in each)]


def convolve_depthwise(x: Array, weight: Array, windows: Sequence[Window]) -> Array:
    """Depthwise convolution: `x` [batch, *spatial, channels], `weight` [*window, channels, multiplier].

    The result is [batch, *outputs, channels * multiplier], with the outputs of a channel adjacent.
    """
    spatial, channels = x.shape[1:-1], x.shape[-1]
    multiplier = weight.shape[-1]
    if multiplier > 1:
        x = np.repeat(x, multiplier, axis=-1)
    filters = weight.reshape(*weight.shape[:-2], channels * multiplier)
    sizes = tuple(w.outputs(s) for w, s in zip(windows, spatial, strict=True))
    out = np.zeros((x.shape[0], *sizes, channels * multiplier), x.dtype)
    for each in product(*(list(w.taps(s)) for w, s in zip(windows, spatial, strict=True))):
        part = x[(slice(None), *(t.source for t in each))]
        out[(slice(None), *(t.target for t in each))] += part * filters[tuple(t.index for t in each)]
    return out


def convolve_transposed(
    x: Array, weight: Array, windows: Sequence[Window], sizes: Sequence[int], befores: Sequence[int] | None = None
) -> Array:
    """Transposed convolution: each input element adds its multiple of a filter to a window of the result.

    `x` is [batch, *spatial, channels], `weight` [*window, channels, outputs]; the result is [batch, *sizes, outputs].
    Contributions outside of `sizes` are dropped. `befores` is the padding in front; by default it is that of the
    convolution that maps `sizes` to the spatial axes of `x`.
    """
    batch, spatial, channels = x.shape[0], x.shape[1:-1], x.shape[-1]
    count = weight.shape[-1]
    out = np.zeros((batch, *sizes, count), x.dtype)
    if not out.size or not x.size:
        return out
    padding = [w.before(s) for w, s in zip(windows, sizes, strict=True)] if befores is None else befores
    found = [
        list(taps(w, size, inputs, before))
        for w, size, inputs, before in zip(windows, sizes, spatial, padding, strict=True)
    ]
    for each in product(*found):
        part = x[(slice(None), *(t.target for t in each))]
        made = part.reshape(-1, channels) @ weight[tuple(t.index for t in each)]
        out[(slice(None), *(t.source for t in each))] += made.reshape(*part.shape[:-1], count)
    return out
