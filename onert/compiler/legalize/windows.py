"""Sliding windows without a native kernel: float64, computed filters, ONNX's Col2Im and pooling with indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.plane_window import dilated_windows
from onert.ir.ops.arithmetic.window import Margins, Window
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.columns import FromColumns, PooledPlaces
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.slicing import StridedSlice
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.segment import SegmentReduction, UnsortedSegment
from onert.ir.shape import static
from onert.ir.symbolic.functions import of_lengths

from .decomposition import Decomposition, only_floats
from .draft import Draft, layer_operands
from .hlo.shapes import padded

_MOST_ELEMENTS = 1 << 24
"""The most elements of all windows together."""
_MOST_TAPS = 64
"""The most elements of a window that are processed one by one: the graph has a few operations for each."""
_MOST_PIECES, _FEW_CHANNELS = 16, 8
"""Overlapping blocks of fewer channels are assembled from at most so many pieces."""
Sliding = Conv2D | DepthwiseConv2D | Pool2D


def _size(op: Sliding, types: CallTypes) -> tuple[int, int]:
    """Height and width of a window."""
    if isinstance(op, Pool2D):
        return op.filter_height, op.filter_width
    _, height, width, _ = static(types.input(1).shape)
    return height, width


def _why_not(op: Sliding, types: CallTypes) -> str | None:
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    if reason := only_floats(op, types):
        return reason
    if any(0 in t.shape for t in present) or op.activation is Activation.SIGN_BIT:
        return "a tensor has no elements, or the activation is no bound"
    elements = math.prod((*static(types.output.shape)[:3], *_size(op, types), static(types.input(0).shape)[3]))
    return None if elements <= _MOST_ELEMENTS else f"its windows have {elements} elements together"


def _padded_image(d: Draft, x: int, windows: Sequence[Window], value: float) -> int:
    """An image padded with `value` as far as windows reach."""
    margins = []
    for window, inputs in zip(windows, d.shape(x)[1:3], strict=True):
        before, last = window.before(inputs), (window.outputs(inputs) - 1) * window.stride
        margins.append((before, max(last + window.extent - before - inputs, 0)))
    low, high = ((0, *sides, 0) for sides in zip(*margins, strict=True))
    return padded(d, x, d.like(x, value), low, high, (0, 0, 0, 0))


def _gathered(d: Draft, x: int, windows: Sequence[Window], value: float) -> int:
    """The windows of an image padded with `value`: [batch, rows, columns, window height, window width, channels]."""
    counts = [window.outputs(inputs) for window, inputs in zip(windows, d.shape(x)[1:3], strict=True)]
    x = _padded_image(d, x, windows, value)
    for axis, window, count in zip((1, 3), windows, counts, strict=True):
        table = np.arange(count)[:, None] * window.stride + np.arange(window.size) * window.dilation
        x = d.gathered(x, d.constant(table.astype(np.int32)), axis)
    return d.transposed(x, (0, 1, 3, 2, 4, 5))


def _inside(windows: Sequence[Window], sizes: Sequence[int]) -> Array:
    """A mask of window elements inside the image: [rows, columns, window height, window width]."""
    masks = []
    for window, inputs in zip(windows, sizes, strict=True):
        at = np.arange(window.outputs(inputs))[:, None] * window.stride + np.arange(window.size) * window.dilation
        masks.append((at >= window.before(inputs)) & (at < window.before(inputs) + inputs))
    down, across = masks
    return down[:, None, :, None] & across[None, :, None, :]


def _masked(d: Draft, products: int, inside: Array) -> int:
    """Products masked to 0 in the margins, even if the weight there is infinite or NaN."""
    return products if inside.all() else d.chosen(d.constant(inside), products, d.like(products, 0))


def _finished(d: Draft, out: int, bias: int | None, activation: Activation) -> list[int]:
    out = out if bias is None else d.sum(out, d.reshaped(bias, math.prod(d.shape(bias))))
    return [d.bounded(out, activation)]


def _why_not_convolved(op: Conv2D, types: CallTypes) -> str | None:
    if types.output.dtype is not DType.FLOAT64 or _groups(types) > 1:
        return "it is not float64, or has several groups"
    return _why_not(op, types)


def _convolved(d: Draft, op: Conv2D, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """Add(FullyConnected(Reshape(Gather(Pad(x))), weight), bias)"""
    x, weight, bias = layer_operands(operands)
    batch, rows, columns, filters = static(types.output.shape)
    height, width, channels = d.shape(weight)[1:]
    terms = _gathered(d, x, dilated_windows(op, height, width), 0)
    flat = d.reshaped(terms, batch * rows * columns, height * width * channels)
    out = d.rows_times(flat, d.reshaped(weight, filters, height * width * channels), None)
    return _finished(d, d.reshaped(out, batch, rows, columns, filters), bias, op.activation)


def _groups(types: CallTypes) -> int:
    channels, each = (types.input(at).shape[3] or 1 for at in (0, 1))
    return channels // each


def _why_not_groups(op: Conv2D, types: CallTypes) -> str | None:
    if not 1 < _groups(types) <= _MOST_TAPS:
        return f"it has {_groups(types)} groups"
    return "a tensor has no elements" if 0 in types.output.shape else only_floats(op, types)


def _group_by_group(d: Draft, op: Conv2D, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """Concat(Conv2D(Slice(x), Slice(weight), Slice(bias)) ..)"""
    x, weight, bias = layer_operands(operands)
    groups, (filters, *sizes), found = _groups(types), d.shape(weight), []
    group_filters = filters // groups
    for group in range(groups):
        parts = [
            d.part(x, (0, 0, 0, group * sizes[-1]), (*d.shape(x)[:3], sizes[-1])),
            d.part(weight, (group * group_filters, 0, 0, 0), (group_filters, *sizes)),
        ]
        if bias is not None:
            parts.append(d.part(d.reshaped(bias, filters), (group * group_filters,), (group_filters,)))
        found.append(d.add(op, *parts))
    return [d.add(Concat(3), *found)]


def _why_not_by_channels(op: DepthwiseConv2D, types: CallTypes) -> str | None:
    count = math.prod(_size(op, types))
    return _why_not(op, types) if count <= _MOST_TAPS else f"a window has {count} elements"


def _by_channels(d: Draft, op: DepthwiseConv2D, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """Add(Mul(StridedSlice(Pad(x)), weight) .., bias), one window element after the other for all windows"""
    x, weight, bias = layer_operands(operands)
    (batch, rows, columns, outputs), channels = static(types.output.shape), d.shape(x)[3]
    height, width = _size(op, types)
    windows = dilated_windows(op, height, width)
    inside = _inside(windows, d.shape(x)[1:3])
    x = _padded_image(d, x, windows, 0)
    each = (channels,) if outputs == channels else (channels, outputs // channels)
    factors, one = d.reshaped(weight, height * width, *each), (1,) * (len(each) - 1)
    ends = [(count - 1) * window.stride + 1 for count, window in zip((rows, columns), windows, strict=True)]
    total: int | None = None
    for tap, at in enumerate(np.ndindex(height, width)):
        first = [place * window.dilation for place, window in zip(at, windows, strict=True)]
        last = [start + end for start, end in zip(first, ends, strict=True)]
        limits = [(0, *first, 0), (batch, *last, channels), (1, *(window.stride for window in windows), 1)]
        part = d.moved(StridedSlice(), x, *(d.integers(*numbers) for numbers in limits))
        tap_weights = d.reshaped(d.part(factors, (tap, *(0 for _ in each)), (1, *each)), *each)
        part = d.product(d.reshaped(part, batch, rows, columns, channels, *one), tap_weights)
        part = _masked(d, part, inside[:, :, at[0], at[1]].reshape(rows, columns, *(1,) * len(each)))
        total = part if total is None else d.sum(total, part)
    assert total is not None
    return _finished(d, d.reshaped(total, batch, rows, columns, outputs), bias, op.activation)


def _why_no_transposed_convolution(op: TransposeConv2D, types: CallTypes) -> str | None:
    present = [t for t in (*types.inputs[1:], *types.outputs) if t is not None]
    if any(0 in t.shape for t in present) or op.activation is Activation.SIGN_BIT:
        return "a tensor has no elements, or the activation is no bound"
    (outputs, *window, _), (batch, *sizes, _) = (static(types.input(at).shape) for at in (1, 2))
    elements = math.prod((batch, *sizes, *window, outputs))
    if elements > _MOST_ELEMENTS:
        return f"its windows have {elements} elements together"
    return only_floats(op, CallTypes(types.inputs[1:], types.outputs))


def _transposed_convolution(
    d: Draft, op: TransposeConv2D, types: CallTypes, operands: Sequence[int | None]
) -> Sequence[int]:
    """Add(UnsortedSegment(FullyConnected(x, weight), places), bias): products outside the result have place -1"""
    _, weight, x, bias = [*operands, None][:4]
    assert x is not None
    assert weight is not None
    (outputs, *window, channels), (batch, *sizes, _) = d.shape(weight), d.shape(x)
    results, places = static(types.output.shape)[1:3], []
    for axis, stride in enumerate((op.stride_height, op.stride_width)):
        before = Window(window[axis], stride, 1, op.padding.along(axis)).before(results[axis])
        at = np.arange(sizes[axis])[:, None] * stride + np.arange(window[axis]) - before
        places.append(np.where((at >= 0) & (at < results[axis]), at, -1))
    down, across = places[0][:, None, :, None], places[1][None, :, None, :]
    flat = np.where((down < 0) | (across < 0), -1, down * results[1] + across).reshape(-1).astype(np.int32)
    rows = d.reshaped(d.transposed(weight, (1, 2, 0, 3)), math.prod(window) * outputs, channels)
    terms = d.rows_times(d.reshaped(x, batch * math.prod(sizes), channels), rows, None)
    terms = d.transposed(d.reshaped(terms, batch, len(flat), outputs), (1, 0, 2))
    total = d.number(math.prod(results))
    sums = d.add(UnsortedSegment(SegmentReduction.SUM), terms, d.constant(flat), total)
    return _finished(d, d.reshaped(d.transposed(sums, (1, 0, 2)), batch, *results, outputs), bias, op.activation)


def _why_not_planes(op: Conv3D, types: CallTypes) -> str | None:
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    if any(0 in t.shape for t in present) or op.activation is Activation.SIGN_BIT:
        return "a tensor has no elements, or the activation is no bound"
    count = static(types.input(1).shape)[0]
    return only_floats(op, types) if count <= _MOST_TAPS else f"a window has {count} planes"


def _planes(d: Draft, op: Conv3D, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """Add(Conv2D(Gather(Pad(x)), weight) .., bias), one plane of all windows after the other"""
    x, weight, bias = layer_operands(operands)
    (batch, depth, *plane, outputs), (taps, *rest) = static(types.output.shape), d.shape(weight)
    window, inputs = Window(taps, *op.steps[0], op.padding.along(0)), d.shape(x)[1]
    before, reach = window.before(inputs), (depth - 1) * window.stride + window.extent
    low, high = ((0, side, 0, 0, 0) for side in (before, max(reach - before - inputs, 0)))
    x = padded(d, x, d.like(x, 0), low, high, (0,) * 5)
    padding = Margins(op.padding.sides[1:]) if isinstance(op.padding, Margins) else op.padding
    steps = (op.stride_height, op.stride_width, op.dilation_height, op.dilation_width)
    flat = Conv2D(padding, *steps)
    total: int | None = None
    for tap in range(taps):
        table = np.arange(depth, dtype=np.int32) * window.stride + tap * window.dilation
        images = d.reshaped(d.gathered(x, d.constant(table), 1), batch * depth, *d.shape(x)[2:])
        tap_weights = d.reshaped(d.part(weight, (tap, 0, 0, 0, 0), (1, *rest)), *rest)
        part = d.add(flat, images, d.transposed(tap_weights, (3, 0, 1, 2)))
        inside = (table >= before) & (table < before + inputs)
        part = _masked(d, d.reshaped(part, batch, depth, *plane, outputs), inside.reshape(-1, 1, 1, 1))
        total = part if total is None else d.sum(total, part)
    assert total is not None
    return _finished(d, total, bias, op.activation)


def _pooled(d: Draft, op: Pool2D, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Max(Gather(Pad(x))), Div(Sum(..), counts), or the square root of the latter for squares"""
    (x,) = operands
    if op.kind is Pooling.MAX:
        found = d.reduced(Reduction.MAX, _gathered(d, x, op.windows(), -math.inf), (3, 4))
        return [d.bounded(found, op.activation)]
    elements = x if op.kind is Pooling.AVERAGE else d.product(x, x)
    sums = d.reduced(Reduction.SUM, _gathered(d, elements, op.windows(), 0), (3, 4))
    _, height, width, _ = d.shape(x)
    down, across = op.counted(height, width)
    counts = (down[:, None] * across)[:, :, None].astype(d.dtype(x).numpy)
    found = d.binary(BinaryKind.DIV, sums, d.constant(counts))
    found = found if op.kind is Pooling.AVERAGE else d.unary(UnaryKind.SQRT, found)
    return [d.bounded(found, op.activation)]


# ---- Col2Im, and max pooling that returns indices


def _why_not_from_columns(op: FromColumns, types: CallTypes) -> str | None:
    x, sizes, block = types.inputs
    assert x is not None
    if sizes is None or block is None or sizes.value is None or block.value is None:
        return "the sizes are not known before the run"
    quantized = x.quantization is not None or x.dtype.is_complex
    return "its elements are quantised or complex, or it has none" if quantized or 0 in x.shape else None


def _is_side_by_side(op: FromColumns, types: CallTypes, kernel: Sequence[int]) -> bool:
    """Whether to assemble blocks from pieces as large as a stride: if they do not overlap, or if rows of channels are
    too short to be added quickly in place."""
    strides, dilations, _ = op.each(len(kernel))
    if any(dilation > 1 and size > 1 for dilation, size in zip(dilations, kernel, strict=True)):
        return False
    pieces = math.prod(-(-size // stride) for size, stride in zip(kernel, strides, strict=True))
    few = (types.output.shape[1] or 0) < _FEW_CHANNELS and types.output.dtype in (DType.FLOAT32, DType.FLOAT64)
    return pieces == 1 or (few and pieces <= _MOST_PIECES)


def _side_by_side(d: Draft, op: FromColumns, types: CallTypes, x: int) -> int:
    """Blocks in pieces as large as a stride: pieces of one kind cover the picture, and the sum of all kinds, each
    moved to its place, is the picture.

    Slice(Add(Pad(Transpose(Slice(x))), ..))
    """
    image, kernel = (sv.integers(types.input(at), "sizes") or () for at in (1, 2))
    axes, shape = len(image), static(types.output.shape)
    strides, _, pads = op.each(axes)
    counts, pieces = op.counts(image, kernel), [-(-size // s) for size, s in zip(kernel, strides, strict=True)]
    x = d.reshaped(x, *shape[:2], *kernel, *counts)
    rest = [s * count - size for s, count, size in zip(strides, pieces, kernel, strict=True)]
    none = (0,) * (2 + 2 * axes)
    x = padded(d, x, d.like(x, 0), none, (0, 0, *rest, *none[:axes]), none)
    split = [n for pair in zip(pieces, strides, strict=True) for n in pair]
    x = d.reshaped(x, *shape[:2], *split, *counts)
    # pieces first, then batch and channels, then the blocks along each axis with the elements of each
    order = (*(2 + 2 * a for a in range(axes)), 0, 1, *(n for a in range(axes) for n in (2 + 2 * axes + a, 3 + 2 * a)))
    x = d.transposed(x, order)
    covered = [count * s for count, s in zip(counts, strides, strict=True)]
    x = d.reshaped(x, math.prod(pieces), *shape[:2], *covered)
    total: int | None = None
    for at, place in enumerate(np.ndindex(*pieces)):
        part = d.reshaped(d.part(x, (at, *none[: 2 + axes]), (1, *d.shape(x)[1:])), *shape[:2], *covered)
        low = [n * s - pad for n, s, pad in zip(place, strides, pads[:axes], strict=True)]
        high = [size - a - have for size, a, have in zip(image, low, covered, strict=True)]
        part = padded(d, part, d.like(part, 0), (0, 0, *low), (0, 0, *high), none[: 2 + axes])
        total = part if total is None else d.sum(total, part)
    assert total is not None
    return total


def _from_columns(d: Draft, op: FromColumns, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Transpose(UnsortedSegment(Transpose(x), places)), or `_side_by_side`"""
    image, kernel = (sv.integers(types.input(at), "sizes") or () for at in (1, 2))
    if _is_side_by_side(op, types, kernel):
        return [_side_by_side(d, op, types, operands[0])]
    shape, count = static(types.output.shape), types.input(0).shape[2] or 0
    places = TensorType(DType.INT32, (math.prod(kernel), count))
    x = d.reshaped(operands[0], *shape[:2], *static(places.shape))
    rows = d.transposed(x, (2, 3, 0, 1))
    total = d.number(math.prod(image))
    indices = d.per_length(places, partial(_places, op, kernel), *image)
    found = d.add(UnsortedSegment(SegmentReduction.SUM), rows, indices, total)
    return [d.reshaped(d.transposed(found, (1, 2, 0)), *shape)]


@of_lengths
def _places(op: FromColumns, kernel: tuple[int, ...], *image: int) -> Array:
    return op.places(image, kernel).astype(np.int32)


def _why_no_max_indices(op: PooledPlaces, types: CallTypes) -> str | None:
    x = types.input(0)
    if x.quantization is not None or 0 in (*x.shape, *types.output.shape):
        return "it has no elements, or quantised ones"
    count = math.prod(op.kernel)
    return None if count <= _MOST_TAPS else f"a window has {count} elements"


def _max_indices(d: Draft, op: PooledPlaces, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(Greater(Gather(x, places), best), places, indices), one window element after the other for all windows"""
    (batch, channels, *sizes), shape = d.shape(operands[0]), static(types.output.shape)
    rows = d.reshaped(operands[0], batch * channels, math.prod(sizes))
    count, taps = math.prod(shape[2:]), math.prod(op.kernel)
    tables = [
        d.per_length(TensorType(dtype, (taps, count)), partial(_tap_table, op, table), *sizes)
        for table, dtype in enumerate((DType.INT32, DType.BOOL, DType.BOOL, DType.INT64))
    ]
    best = d.broadcast(d.part(rows, (0, 0), (batch * channels, 1)), (batch * channels, count))
    indices = d.constant(np.zeros((1, 1), np.int64))
    for tap in range(taps):
        number, inside, first, numbered = (d.part(table, (tap, 0), (1, count)) for table in tables)
        candidates = d.gathered(rows, d.reshaped(number, count), 1)
        larger = d.compared(ComparisonKind.GREATER, candidates, best)
        better = d.binary(BinaryKind.LOGICAL_OR, d.binary(BinaryKind.LOGICAL_AND, larger, inside), first)
        best = d.chosen(better, candidates, best)
        indices = d.chosen(better, numbered, indices)
    starts = d.per_length(TensorType(DType.INT64, (batch * channels, 1)), _starts, batch * channels, math.prod(sizes))
    return [d.reshaped(d.sum(indices, starts), *shape)]


@of_lengths
def _tap_table(op: PooledPlaces, table: int, *sizes: int) -> Array:
    """For each window element and window: the element's index in memory, whether it is inside, whether it is the first
    one inside, or its number."""
    found = list(op.taps(sizes))
    numbers, inside = (np.stack(each) for each in zip(*found, strict=True))
    if table == 0:
        return numbers.astype(np.int32)
    if table == 3:
        return op.numbered(numbers, sizes)
    return inside if table == 1 else inside & (np.cumsum(inside, axis=0) == 1)


@of_lengths
def _starts(pictures: int, size: int) -> Array:
    return np.arange(pictures, dtype=np.int64)[:, None] * size


CONVOLUTION = Decomposition(_why_not_convolved, _convolved)
GROUPS = Decomposition(_why_not_groups, _group_by_group)
BY_CHANNELS = Decomposition(_why_not_by_channels, _by_channels)
POOL = Decomposition(_why_not, _pooled)
DECOMPOSITIONS = {
    TransposeConv2D: (Decomposition(_why_no_transposed_convolution, _transposed_convolution),),
    Conv3D: (Decomposition(_why_not_planes, _planes),),
    FromColumns: (Decomposition(_why_not_from_columns, _from_columns),),
    PooledPlaces: (Decomposition(_why_no_max_indices, _max_indices),),
}
