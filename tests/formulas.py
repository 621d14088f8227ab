"""Definitions of operations as plain loops over elements, for expected results; slow and obvious."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from onert.ir import Array
from onert.ir.ops.arithmetic.window import Margins, Padding


def spread(shape: Sequence[int], low: int, high: int, step: int = 37) -> Array:
    """Integers that look unordered: `low + (i * step) % (high - low + 1)` for element i; int64."""
    count = math.prod(shape)
    return (low + (np.arange(count) * step) % (high - low + 1)).reshape(tuple(shape))


def floats(shape: Sequence[int], step: int = 37) -> Array:
    """Multiples of 1/8 between -3 and 3, whose products and sums are exact in float32; float32."""
    return (spread(shape, -24, 24, step) / 8).astype(np.float32)


def placement(size: int, window: int, stride: int, dilation: int, padding: Padding | Margins) -> tuple[int, int]:
    """Outputs along an axis, and the padding in front, as in TensorFlow's documentation of convolution.

    Explicit padding is for the only axis: it adds that many zeros, followed by VALID.
    """
    extent = (window - 1) * dilation + 1
    if isinstance(padding, Margins):
        ((before, after),) = padding.sides
        return (size + before + after - extent) // stride + 1, before
    if padding is Padding.VALID:
        return math.ceil((size - extent + 1) / stride), 0
    outputs = math.ceil(size / stride)
    return outputs, max((outputs - 1) * stride + extent - size, 0) // 2


Axis = tuple[int, int, int]
"""Window size, stride and dilation along one axis."""


def _placed(sizes: Sequence[int], axes: Sequence[Axis], padding: Padding | Margins) -> list[tuple[int, int]]:
    each = enumerate(zip(sizes, axes, strict=True))
    return [placement(n, *axis, padding.along(i)) for i, (n, axis) in each]


def windows(
    sizes: Sequence[int], axes: Sequence[Axis], padding: Padding | Margins
) -> Iterator[tuple[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]]]:
    """For each output its index, with (index in the window, index in the input) of all elements inside the input."""
    placed = _placed(sizes, axes, padding)
    for out in product(*(range(p[0]) for p in placed)):
        found = []
        for element in product(*(range(axis[0]) for axis in axes)):
            at = tuple(
                o * stride - before + e * dilation
                for o, e, (_, stride, dilation), (_, before) in zip(out, element, axes, placed, strict=True)
            )
            if all(0 <= a < n for a, n in zip(at, sizes, strict=True)):
                found.append((element, at))
        yield out, found


def output_sizes(sizes: Sequence[int], axes: Sequence[Axis], padding: Padding | Margins) -> tuple[int, ...]:
    return tuple(outputs for outputs, _ in _placed(sizes, axes, padding))


def convolution(x: Array, weight: Array, axes: Sequence[Axis], padding: Padding | Margins, groups: int = 1) -> Array:
    """`x` [batch, *sizes, channels], `weight` [outputs, *window, channels / groups], in float64."""
    sizes, inner, outputs = x.shape[1:-1], weight.shape[-1], weight.shape[0]
    out = np.zeros((x.shape[0], *output_sizes(sizes, axes, padding), outputs))
    for at, found in windows(sizes, axes, padding):
        for item, feature in product(range(x.shape[0]), range(outputs)):
            first = feature * groups // outputs * inner
            out[(item, *at, feature)] = sum(
                float(np.dot(x[(item, *source)][first : first + inner].astype(float), weight[(feature, *element)]))
                for element, source in found
            )
    return out


def depthwise(x: Array, weight: Array, axes: Sequence[Axis], padding: Padding | Margins) -> Array:
    """`x` [batch, *sizes, channels], `weight` [1, *window, channels * multiplier], in float64."""
    sizes, outputs = x.shape[1:-1], weight.shape[-1]
    multiplier = outputs // x.shape[-1]
    out = np.zeros((x.shape[0], *output_sizes(sizes, axes, padding), outputs))
    for at, found in windows(sizes, axes, padding):
        for item, feature in product(range(x.shape[0]), range(outputs)):
            out[(item, *at, feature)] = sum(
                float(x[(item, *source, feature // multiplier)]) * float(weight[(0, *element, feature)])
                for element, source in found
            )
    return out


def transposed(
    x: Array, weight: Array, axes: Sequence[Axis], padding: Padding | Margins, sizes: Sequence[int]
) -> Array:
    """`x` [batch, *inputs, channels], `weight` [outputs, *window, channels]; [batch, *sizes, outputs] in float64."""
    out = np.zeros((x.shape[0], *sizes, weight.shape[0]))
    befores = [before for _, before in _placed(sizes, axes, padding)]
    for at in product(*(range(n) for n in x.shape[1:-1])):
        for element in product(*(range(axis[0]) for axis in axes)):
            to = tuple(
                a * stride - before + e * dilation
                for a, e, (_, stride, dilation), before in zip(at, element, axes, befores, strict=True)
            )
            if all(0 <= t < n for t, n in zip(to, sizes, strict=True)):
                filters = weight[(slice(None), *element)].astype(float)
                for item in range(x.shape[0]):
                    out[(item, *to)] += filters @ x[(item, *at)]
    return out


def pooled(x: Array, axes: Sequence[Axis], padding: Padding | Margins, function: Callable[[Array], float]) -> Array:
    """A function of the elements in each window, per channel of `x` [batch, *sizes, channels], in float64."""
    sizes = x.shape[1:-1]
    out = np.zeros((x.shape[0], *output_sizes(sizes, axes, padding), x.shape[-1]))
    for at, found in windows(sizes, axes, padding):
        for item, channel in product(range(x.shape[0]), range(x.shape[-1])):
            out[(item, *at, channel)] = function(np.array([x[(item, *source, channel)] for _, source in found]))
    return out
