"""Pooling over windows, over everything, and adaptive pooling.

An average counts only elements inside the input. Source: TNN's pooling_layer_interpreter.cc, pooling_layer.cc and
naive_compute.cc.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from onert.frontend.tnn.site import Site, Writer
from onert.ir import Array, DType, ModelError
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling

from .spans import EXPLICIT, LARGEST, Span, conv_span, elements, pad_input

MAX, AVERAGE = 0, 1


def _pool(site: Site, x: int) -> int:
    g = site.graph
    shape = g.shape(x, 4)
    kind = site.integer("type", None, MAX, AVERAGE)
    kernel = [site.integer(f"kernel {what}", None, 0, LARGEST) for what in ("height", "width")]
    stride = [site.integer(f"stride {what}", None, 1, LARGEST) for what in ("height", "width")]
    pad = [site.integer(f"padding {what}", None, 0, LARGEST) for what in ("height", "width")]
    indices = [site.integer(f"kernel index {what}", -1, -1, 3) for what in ("height", "width")]
    pad_type, ceil = site.integer("padding type", EXPLICIT), site.flag("ceil mode", 0)
    if site.flag("adaptive", 0):
        rows, columns = (site.integer(f"output {what}", 0, 1, LARGEST) for what in ("height", "width"))
        return _adaptive(site, x, rows, columns)
    spans = []
    for axis in range(2):
        inputs = shape[2 + axis]
        size = kernel[axis] or inputs
        index = indices[axis] if indices[axis] != -1 or axis == 0 else indices[0]
        if index != -1:
            size = shape[index]
        spans.append(pool_span(inputs, size, stride[axis], pad[axis], pad_type, ceil=ceil))
    return windows(site, x, kind, (spans[0], spans[1]))


def pool_span(inputs: int, size: int, stride: int, pad: int, pad_type: int, *, ceil: bool) -> Span:
    """The windows of a pool along one axis; with `ceil`, a window that only starts inside counts too."""
    return conv_span(inputs, size, stride, 1, (pad, pad), pad_type, ceil=ceil)


def _require_elements(along: Span) -> None:
    """Raise ModelError if a window has no element inside; the first and last windows have the fewest."""
    for start in (-along.before, (along.outputs - 1) * along.stride - along.before):
        if min(start + along.size, along.inputs) <= max(start, 0):
            raise ModelError(f"a window of {along.size} elements is outside of the {along.inputs} inputs")


def _counts(along: Span) -> Array:
    """The number of elements of each window that are inside."""
    starts = np.arange(along.outputs, dtype=np.int64) * along.stride - along.before
    found: Array = np.minimum(starts + along.size, along.inputs) - np.maximum(starts, 0)
    return found


def windows(site: Site, x: int, kind: int, spans: tuple[Span, Span]) -> int:
    """Maxima or averages of windows over [batch, channels, height, width]."""
    g = site.graph
    for along in spans:
        _require_elements(along)
    size, stride = [s.size for s in spans], [s.stride for s in spans]
    stored = g.type(x).quantization is not None
    aligned = all(s.valid for s in spans) or all(s.same() for s in spans)
    if stored and kind == AVERAGE and not aligned:  # this average has no integer implementation
        x, stored = g.real(site.blob(0)), False
    dtype = g.type(x).dtype
    fill = None if kind == AVERAGE else -math.inf if dtype.is_float else dtype.limits[0]
    padded, padding = pad_input(g, g.nhwc(x), spans, fill)
    op = Pool2D(Pooling.AVERAGE if kind == AVERAGE else Pooling.MAX, size[0], size[1], padding, stride[0], stride[1])
    y = g.move(op, padded)
    if kind == AVERAGE and padding is Padding.VALID and not aligned:
        elements((spans[0].outputs, spans[1].outputs), LARGEST * 16)
        whole, counts = np.float32(size[0] * size[1]), [_counts(s) for s in spans]
        y = g.binary(BinaryKind.MUL, y, (whole / np.multiply.outer(*counts)).astype(np.float32)[:, :, None])
    return g.nchw(y)


def _adaptive(site: Site, x: int, rows: int, columns: int) -> int:
    """Averages over `rows` by `columns` parts, which may overlap at their edges."""
    g = site.graph
    _, _, height, width = g.shape(x)
    if rows <= height and columns <= width and height % rows == 0 and width % columns == 0:
        size = height // rows, width // columns
        spans = (Span(height, rows, size[0], size[0], 1, 0), Span(width, columns, size[1], size[1], 1, 0))
        return windows(site, x, AVERAGE, spans)
    if g.type(x).dtype is not DType.FLOAT32:
        x = g.real(site.blob(0))
    x = g.add(BatchMatMul(), x, g.constant(np.ascontiguousarray(_averaging_matrix(width, columns).T)))
    return g.add(BatchMatMul(), g.constant(_averaging_matrix(height, rows)), x)


def _averaging_matrix(inputs: int, outputs: int) -> Array:
    """[outputs, inputs]: the weight of each element in each average."""
    if inputs * outputs > LARGEST * 16:
        raise ModelError(f"{inputs} elements in {outputs} parts are too many")
    out = np.zeros((outputs, inputs), np.float32)
    for at in range(outputs):
        first, last = at * inputs // outputs, math.ceil((at + 1) * inputs / outputs)
        out[at, first:last] = 1 / (last - first)
    return out


LAYERS: Mapping[str, Writer] = {"Pooling": lambda site: [_pool(site, site.x)]}
QUANTIZED: Mapping[str, Writer] = {"Pooling": lambda site: [_pool(site, site.graph.quantized(site.blob(0)))]}
"""Stored integers are compared or averaged directly, because input and output have the same scale."""
