"""Pooling: maximum, average or p-norm of windows or of all spatial dimensions."""

from __future__ import annotations

import math
from functools import partial

from onert.frontend.onnx.building import (
    binary,
    concat,
    dimension,
    ints,
    like,
    require_rank,
    to_channels_first,
    to_channels_last,
    transpose,
)
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.movement import padded, sliced
from onert.ir import DType, ModelError
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.reshape import ExpandDims, Squeeze
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.reduce_window import ReduceWindow, WindowReduction

from .pooled_indices import pooled_indices
from .windows import Windows, windows


def _windows(node: Node) -> tuple[Windows, tuple[tuple[int, int], ...]]:
    """The windows, and what `ceil_mode` adds to the margins at the end, as the last window may be partly outside.

    If a size is unknown, that is stride - 1: enough windows for any size. `_without_excess` removes a window that
    starts past the end.
    """
    d, x = node.draft, node.input(0)
    require_rank(d, x, 3)
    sizes = d.type(x).shape[2:]
    over = windows(node, (), sizes)
    if not node.flag("ceil_mode") or over.padding is Padding.SAME:
        return over, ((0, 0),) * len(sizes)
    more = []
    for size, extent, stride, (before, after) in zip(sizes, over.extents, over.strides, over.margins, strict=True):
        if stride == 1:
            more.append((0, 0))
            continue
        if size is None:
            more.append((0, stride - 1))
            continue
        room = size + before + after - extent
        outputs = -(-room // stride) + 1
        if (outputs - 1) * stride >= size + before:
            outputs -= 1  # a window must not start in the margin at the end
        more.append((0, max((outputs - 1) * stride - room, 0)))
    return over, tuple(more)


def _without_excess(node: Node, over: Windows, pooled: int) -> int:
    """A pool's result [batch, channels, ...] without the windows that start past the end of an unknown size."""
    x, found = (Expression(node.draft, operand) for operand in (node.input(0), pooled))
    if not node.flag("ceil_mode") or over.padding is Padding.SAME:
        return pooled
    for axis, size in enumerate(x.shape[2:]):
        (before, after), stride = over.margins[axis], over.strides[axis]
        if size is None and after + stride > over.extents[axis]:
            most = (x.size(axis + 2) + (before + stride - 1)).binary(BinaryKind.FLOOR_DIV, stride)
            ends = most.at_most(found.size(axis + 2))
            found = found.of(sliced(node.draft, found.operand, [axis + 2], ints(node.draft, [0]), ends.operand, None))
    return found.operand


def _pool(
    d: Draft, image: int, kind: Pooling, over: Windows, padding: Padding | Margins, *, counted: bool = False
) -> int:
    """Pool an image [batch, ..., channels]. Padding other than VALID requires `_is_plain` windows."""
    rank = d.type(image).rank
    if rank in (3, 4) and all(a == 1 for a in over.dilations) and _has_pool_kernel(d, image, kind):
        if rank == 3:
            image = d.add(ExpandDims(), image, d.constant(1, DType.INT32))
        sizes, steps = ((1, *v) if rank == 3 else v for v in (over.kernel, over.strides))
        op = Pool2D(kind, sizes[0], sizes[1], padding, steps[0], steps[1], counts_margins=counted)
        out = d.add(op, image)
        return d.add(Squeeze((1,)), out) if rank == 3 else out
    if rank == 5 and all(a == 1 for a in over.dilations) and _has_pool_kernel(d, image, kind):
        return _pool_volume(d, image, kind, over, padding, counted=counted)
    if padding is not Padding.VALID:
        raise ModelError(f"has input {d.type(image)}, expected known dimensions with this padding")
    start = like(d, image, 0 if kind is Pooling.AVERAGE else _lowest(d, image))
    reduction = WindowReduction.ADD if kind is Pooling.AVERAGE else WindowReduction.MAX
    windows_, strides, apart = (ints(d, (1, *v, 1)) for v in (over.kernel, over.strides, over.dilations))
    out = d.add(ReduceWindow(reduction), image, start, windows_, strides, apart)
    return binary(d, BinaryKind.DIV, out, like(d, out, math.prod(over.kernel))) if kind is Pooling.AVERAGE else out


def _pool_volume(
    d: Draft, image: int, kind: Pooling, over: Windows, padding: Padding | Margins, *, counted: bool
) -> int:
    """Pool volumes [batch, depth, height, width, channels]: first over each plane, then over depth. As many elements
    of each plane of a window are inside of the volume, so a mean of means is the mean of all."""
    x, around, between = Expression(d, image), padding, padding
    if isinstance(padding, Margins):
        around, between = Margins(padding.sides[1:]), Margins((padding.sides[0], (0, 0)))
    (depth, high, wide), (apart, down, across) = over.kernel, over.strides
    flat = x.reshape_by(-1, x.size(2), x.size(3), x.size(4))
    over_plane = x.of(d.add(Pool2D(kind, high, wide, around, down, across, counts_margins=counted), flat.operand))
    height, width = over_plane.size(1), over_plane.size(2)
    lines = over_plane.reshape_by(x.size(0), x.size(1), -1, x.size(4))
    found = x.of(d.add(Pool2D(kind, depth, 1, between, apart, 1, counts_margins=counted), lines.operand))
    return found.reshape_by(x.size(0), found.size(1), height, width, x.size(4)).operand


def _has_pool_kernel(d: Draft, image: int, kind: Pooling) -> bool:
    dtype = d.type(image).dtype
    return dtype.is_float or (kind is Pooling.MAX and dtype in (DType.INT8, DType.UINT8, DType.INT16))


def _lowest(d: Draft, x: int) -> float:
    dtype = d.type(x).dtype
    return -math.inf if dtype.is_float else dtype.limits[0]


def _pad(d: Draft, image: int, over: Windows, more: tuple[tuple[int, int], ...], value: int | None = None) -> int:
    """Pad an image [batch, ..., channels] by its margins."""
    if over.dynamic:
        return over.pad(Expression(d, image), 1, value).operand
    both = [(a, b + c) for (a, b), (_, c) in zip(over.margins, more, strict=True)]
    return padded(d, image, [(0, 0), *both, (0, 0)], value)


def _is_plain(d: Draft, image: int, kind: Pooling, over: Windows) -> bool:
    """Whether Pool2D supports the windows: up to three dimensions, not dilated."""
    return len(over.kernel) <= 3 and all(a == 1 for a in over.dilations) and _has_pool_kernel(d, image, kind)


def _pool_margins(over: Windows, more: tuple[tuple[int, int], ...]) -> Margins | None:
    """The margins as padding of `_pool`; None if Pool2D does not support them."""
    both = [(a, b + c) for (a, b), (_, c) in zip(over.margins, more, strict=True)]
    if not all(min(side) >= 0 and max(side) < k for side, k in zip(both, over.kernel, strict=True)):
        return None
    return Margins((*((0, 0),) * (2 - len(both)), *both))


def _max(node: Node) -> int | tuple[int, int]:
    d, x = node.draft, node.input(0)
    over, more = _windows(node)
    rank = d.type(x).rank
    image = transpose(d, x, to_channels_last(rank))
    beyond = any(map(any, more))
    margins = beyond or any(map(any, over.margins))
    same = over.padding is Padding.SAME or (margins and over.is_same(d.type(x).shape[2:]) and not beyond)
    plain, sides = _is_plain(d, image, Pooling.MAX, over), _pool_margins(over, more)
    if same and plain and not over.same_lower:
        out = _pool(d, image, Pooling.MAX, over, Padding.SAME)
    elif margins and plain and sides is not None:
        out = _pool(d, image, Pooling.MAX, over, sides)
    else:
        least = like(d, x, _lowest(d, x))
        out = _pool(d, _pad(d, image, over, more, least), Pooling.MAX, over, Padding.VALID)
    found = _without_excess(node, over, transpose(d, out, to_channels_first(rank)))
    return (found, _without_excess(node, over, pooled_indices(node, over, more))) if node.uses_output(1) else found


def _average(node: Node) -> int:
    """The mean of the elements inside of x, and with `count_include_pad` of the explicit margins."""
    d, x = node.draft, node.input(0)
    over, more = _windows(node)
    rank, sizes = d.type(x).rank, d.type(x).shape[2:]
    image = transpose(d, x, to_channels_last(rank))
    counted = node.flag("count_include_pad")
    margins = any(map(any, over.margins)) or over.padding is Padding.SAME
    beyond = any(map(any, more))
    counted = counted and (over.dynamic or any(map(any, over.margins)))
    same = not over.same_lower and (over.padding is Padding.SAME or over.is_same(sizes))
    plain, sides = _is_plain(d, image, Pooling.AVERAGE, over), _pool_margins(over, more)
    if not margins and not beyond:
        out = _pool(d, image, Pooling.AVERAGE, over, Padding.VALID)
    elif same and plain and not beyond and not counted:
        out = _pool(d, image, Pooling.AVERAGE, over, Padding.SAME)
    elif plain and sides is not None and over.padding is Padding.VALID and not (counted and beyond):
        out = _pool(d, image, Pooling.AVERAGE, over, sides, counted=counted)
    else:
        means = _pool(d, _pad(d, image, over, more), Pooling.AVERAGE, over, Padding.VALID)
        out = means
        if beyond or not counted:
            out = binary(d, BinaryKind.DIV, means, _counted_share(d, image, over, more, counted=counted))
    return _without_excess(node, over, transpose(d, out, to_channels_first(rank)))


def _counted_share(d: Draft, image: int, over: Windows, more: tuple[tuple[int, int], ...], *, counted: bool) -> int:
    """The fraction of each window that counts: the average of a tensor that is 1 where elements count, otherwise 0."""
    rank = d.type(image).rank
    dims = [ints(d, [1]), *(dimension(d, image, axis) for axis in range(1, rank - 1)), ints(d, [1])]
    ones = d.add(Fill(), concat(d, dims), like(d, image, 1))
    if counted:
        ones = padded(d, ones, [(0, 0), *over.margins, (0, 0)], like(d, image, 1))
        ones = padded(d, ones, [(0, 0), *more, (0, 0)])
    else:
        ones = _pad(d, ones, over, more)
    return _pool(d, ones, Pooling.AVERAGE, over, Padding.VALID)


def _norm(node: Node) -> int:
    """The p-norm of each window."""
    d, x, p = node.draft, node.input(0), node.integer("p", 2)
    over, more = _windows(node)
    rank = d.type(x).rank
    image = transpose(d, powers(d, x, p), to_channels_last(rank))
    means = _pool(d, _pad(d, image, over, more), Pooling.AVERAGE, over, Padding.VALID)
    sums = binary(d, BinaryKind.MUL, means, like(d, x, math.prod(over.kernel)))
    return _without_excess(node, over, transpose(d, root(d, sums, p), to_channels_first(rank)))


def powers(d: Draft, x: int, p: int) -> int:
    """The p-th powers of absolute values."""
    if p == 2:
        return d.add(Unary(UnaryKind.SQUARE), x)
    size = d.add(Unary(UnaryKind.ABS), x)
    return size if p == 1 else binary(d, BinaryKind.POW, size, like(d, x, p))


def root(d: Draft, x: int, p: int) -> int:
    if p == 2:
        return d.add(Unary(UnaryKind.SQRT), x)
    return x if p == 1 else binary(d, BinaryKind.POW, x, like(d, x, 1 / p))


def _global(kind: Reduction, node: Node) -> int:
    d, x = node.draft, node.input(0)
    axes = range(2, require_rank(d, x, 2))
    return d.add(Reduce(kind, keep_dims=True), x, ints(d, axes, DType.INT32))


def _global_norm(node: Node) -> int:
    d, x, p = node.draft, node.input(0), node.integer("p", 2)
    axes = range(2, require_rank(d, x, 2))
    return root(d, d.add(Reduce(Reduction.SUM, keep_dims=True), powers(d, x, p), ints(d, axes, DType.INT32)), p)


TABLE: dict[str, Importer] = {
    "AveragePool": _average,
    "GlobalAveragePool": partial(_global, Reduction.MEAN),
    "GlobalLpPool": _global_norm,
    "GlobalMaxPool": partial(_global, Reduction.MAX),
    "LpPool": _norm,
    "MaxPool": _max,
}
