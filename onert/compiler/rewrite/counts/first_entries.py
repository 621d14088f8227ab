"""Operations that treat entries along a counted axis independently, and so can run on whole tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from onert.ir import CallTypes, Op
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.element_indices import GatherElements, ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.fill import TopK
from onert.ir.ops.data_movement.gather import EmbeddingLookup, Gather, GatherNd, OneHot
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import DepthToSpace, Reverse, SpaceToDepth, Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import MirrorPad, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import AddN, Binary, BinaryKind, PRelu
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast, Dequantize, FakeQuant, Quantize
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, ZerosLike
from onert.ir.ops.lookup.trees import TreeEnsemble
from onert.ir.ops.recurrent.tanh_of_sum import TanhOfSum
from onert.ir.ops.reduction.norm import BatchNorm, InstanceNorm, L2Normalization, LocalResponseNormalization, RmsNorm
from onert.ir.ops.reduction.pool import Pool2D
from onert.ir.ops.reduction.reduce import ArgReduce, Reduce
from onert.ir.ops.reduction.scan import CumProd, CumSum
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.ops.vision_audio.interpolate import Interpolate
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor
from onert.ir.ops.vision_audio.sampling import RoiAlign
from onert.ir.shape import normalize_axes, normalize_axis, static
from onert.ir.value import Value


@frozen
class AxisRule(Value):
    """How an operation runs on whole tensors: the counted axis of the results, the values that operands must be filled
    with after their valid entries, constant integers that replace operands, and whether zeros there stay zeros."""

    axis: int
    filled: Mapping[int, float] = field(factory=dict)
    constants: Mapping[int, tuple[int, ...]] = field(factory=dict)
    keeps_zeros: bool = True


Axes = Sequence[int | None]
"""For each operand its counted axis; None if all its entries are valid."""
Rule = Callable[..., AxisRule | None]


def axis_rule(op: Op, types: CallTypes, axes: Axes) -> AxisRule | None:
    """How an operation on first entries runs on whole tensors of the given types; None if it cannot.

    All counted operands have the same number of valid entries.
    """
    rule = _RULES.get(type(op))
    return None if rule is None else rule(op, types, axes)


def _elementwise(op: Op, types: CallTypes, axes: Axes) -> AxisRule | None:
    """Element-wise functions, possibly with broadcasting."""
    if isinstance(op, Select) and op.rows and types.input(0).rank == 1 < types.input(1).rank:
        return None
    divides = isinstance(op, Binary) and op.kind in _FAILING_ON_ZERO and types.input(1).dtype.is_integer
    if divides and axes[1] is not None and types.input(1).quantization is not None:
        return None
    from_end = {types.inputs[i].rank - axis for i, axis in enumerate(axes) if axis is not None}  # type: ignore[union-attr]
    if len(from_end) != 1:
        return None
    (distance,) = from_end
    for t, axis in zip(types.inputs, axes, strict=True):
        if axis is None and t is not None and t.rank >= distance and t.shape[-distance] != 1:
            return None
    rank = max(t.rank for t in types.inputs if t is not None)
    filled = {1: 1.0} if divides and axes[1] is not None else {}  # an invalid entry must not be a zero divisor
    return AxisRule(rank - distance, filled, keeps_zeros=isinstance(op, Cast | Copy))


_FAILING_ON_ZERO = frozenset((BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.POW))


def _gather(op: Gather, types: CallTypes, axes: Axes) -> AxisRule | None:
    x, indices = types.input(0), types.input(1)
    along = normalize_axis(op.axis, x.rank)
    if op.batch_dims or None not in axes:
        return None
    if axes[1] is not None:  # invalid indices become 0, the first slice
        return AxisRule(along + axes[1], {1: 0}, keeps_zeros=False) if (x.shape[along] or 0) > 0 else None
    dim = axes[0]
    if dim is None or dim == along:
        return None
    return AxisRule(dim if dim < along else dim + indices.rank - 1)


def _gather_nd(op: GatherNd, types: CallTypes, axes: Axes) -> AxisRule | None:
    x, indices = types.input(0), types.input(1)
    dim, depth = axes[1], indices.shape[-1] or 0
    if axes[0] is not None and dim is None and axes[0] >= depth:
        return AxisRule(axes[0] - depth + indices.rank - 1)
    if axes[0] is not None or dim is None or dim == indices.rank - 1 or 0 in x.shape:
        return None
    return AxisRule(dim, {1: 0}, keeps_zeros=False)


def _embedding_lookup(op: EmbeddingLookup, types: CallTypes, axes: Axes) -> AxisRule | None:
    plain = axes[0] == 0 and axes[1] is None and 0 not in types.input(1).shape
    return AxisRule(0, {0: 0}, keeps_zeros=False) if plain else None


def _transpose(op: Transpose, types: CallTypes, axes: Axes) -> AxisRule | None:
    order = types.input(1).value
    return None if order is None or axes[0] is None else AxisRule([int(i) for i in order.reshape(-1)].index(axes[0]))


def _squeeze(op: Squeeze, types: CallTypes, axes: Axes) -> AxisRule | None:
    shape, dim = types.input(0).shape, axes[0]
    if not op.axes or dim is None:
        return None
    removed = normalize_axes(op.axes, len(shape))
    return None if dim in removed else AxisRule(dim - sum(axis < dim for axis in removed))


def _expand(op: ExpandDims, types: CallTypes, axes: Axes) -> AxisRule | None:
    found, dim = types.input(1).value, axes[0]
    if found is None or dim is None:
        return None
    at = normalize_axis(int(found.reshape(-1)[0]), types.input(0).rank + 1)
    return AxisRule(dim + (at <= dim))


def _reshape(op: Reshape, types: CallTypes, axes: Axes) -> AxisRule | None:
    """A reshape in which -1 is the counted dimension, with the same number of elements before and after it."""
    dim, shape = axes[0], static(types.input(0).shape)
    bounds = types.inputs[1].value if len(types.inputs) > 1 and types.inputs[1] is not None else None
    if dim is None or bounds is None or op.new_shape is not None or 0 in shape:
        return None
    dims = sv.values(bounds)
    if dims.count(-1) != 1:
        return None
    at = dims.index(-1)
    if math.prod(shape[:dim]) != math.prod(dims[:at]) or math.prod(shape[dim + 1 :]) != math.prod(dims[at + 1 :]):
        return None
    return AxisRule(at, constants={1: (*dims[:at], shape[dim], *dims[at + 1 :])})


def _slice(op: Slice, types: CallTypes, axes: Axes) -> AxisRule | None:
    begin, size, dim = types.input(1).value, types.input(2).value, axes[0]
    if begin is None or size is None or dim is None:
        return None
    return AxisRule(dim) if int(begin.reshape(-1)[dim]) == 0 and int(size.reshape(-1)[dim]) == -1 else None


def _strided(op: StridedSlice, types: CallTypes, axes: Axes) -> AxisRule | None:
    """A slice that takes the whole counted axis, whatever its length."""
    dim, bounds = axes[0], [types.input(i).value for i in (1, 2, 3)]
    if dim is None or any(g is None for g in bounds) or op.ellipsis_mask or op.new_axis_mask or op.offset:
        return None
    begin, end, strides = (sv.values(g) for g in bounds if g is not None)
    if dim < len(begin):
        length = types.input(0).shape[dim] or 0
        starts = op.begin_mask >> dim & 1 or begin[dim] == 0
        ends = op.end_mask >> dim & 1 or end[dim] >= length
        if op.shrink_axis_mask >> dim & 1 or strides[dim] != 1 or not starts or not ends:
            return None
    return AxisRule(dim - sum(op.shrink_axis_mask >> i & 1 for i in range(min(dim, len(begin)))))


def _concat(op: Concat, types: CallTypes, axes: Axes) -> AxisRule | None:
    if None in axes or len(set(axes)) != 1:
        return None
    (dim,) = set(axes)
    return None if dim is None or normalize_axis(op.axis, types.input(0).rank) == dim else AxisRule(dim)


def _counted_and_named_axes(types: CallTypes, axes: Axes) -> tuple[int, tuple[int, ...]] | None:
    """The first operand's counted axis and the axes in the second operand; None if these are unknown or include it."""
    dim, found = axes[0], types.input(1).value
    if dim is None or found is None:
        return None
    named = normalize_axes(tuple(int(a) for a in found.reshape(-1)), types.input(0).rank)
    return None if dim in named else (dim, named)


def _reduce(op: Reduce | ArgReduce, types: CallTypes, axes: Axes) -> AxisRule | None:
    found = _counted_and_named_axes(types, axes)
    if found is None:
        return None
    dim, removed = found
    kept = isinstance(op, Reduce) and op.keep_dims
    return AxisRule(dim if kept else dim - sum(axis < dim for axis in removed), keeps_zeros=isinstance(op, ArgReduce))


def _only_counted_axis(op: Op, types: CallTypes, axes: Axes) -> int | None:
    """The first operand's counted axis if no other operand has one; otherwise None."""
    return axes[0] if all(axis is None for axis in axes[1:]) else None


def _by_image(op: Op, types: CallTypes, axes: Axes) -> AxisRule | None:
    """Operations that treat entries along the first axis independently."""
    return AxisRule(0, keeps_zeros=False) if _only_counted_axis(op, types, axes) == 0 else None


def _by_vector(op: Op, types: CallTypes, axes: Axes) -> AxisRule | None:
    """Operations that treat vectors along the last axis independently."""
    dim = _only_counted_axis(op, types, axes)
    return None if dim is None or dim == types.input(0).rank - 1 else AxisRule(dim, keeps_zeros=False)


def _fully_connected(op: FullyConnected, types: CallTypes, axes: Axes) -> AxisRule | None:
    return _by_vector(op, types, axes) if op.keep_dims or types.input(0).rank == 2 else None


def _product(op: BatchMatMul, types: CallTypes, axes: Axes) -> AxisRule | None:
    """Counted rows, counted columns, or a counted batch axis along which no operand is broadcast."""
    x, y = types.input(0), types.input(1)
    rank = max(x.rank, y.rank)
    from_end = [None if axis is None else t.rank - axis for t, axis in zip((x, y), axes, strict=True)]
    if axes[1] is None and from_end[0] == (1 if op.adjoint_x else 2):
        return AxisRule(rank - 2, keeps_zeros=False)
    if axes[0] is None and from_end[1] == (2 if op.adjoint_y else 1):
        return AxisRule(rank - 1, keeps_zeros=False)
    found = {b for b in from_end if b is not None}
    if len(found) != 1:
        return None
    (distance,) = found
    if distance <= 2:
        return None
    for t, axis in zip((x, y), axes, strict=True):
        if axis is None and t.rank >= distance and t.shape[-distance] != 1:
            return None
    return AxisRule(rank - distance, keeps_zeros=False)


def _einsum(op: Einsum, types: CallTypes, axes: Axes) -> AxisRule | None:
    """The counted axis has a label of the result."""
    at = counted_label(op, axes)
    result = op.equation.replace(" ", "").partition("->")[2]
    return None if at is None or at not in result else AxisRule(result.index(at), keeps_zeros=False)


def counted_label(op: Einsum, axes: Axes) -> str | None:
    """The label of the counted axis; None if it is not counted in all operands that have it."""
    groups = op.equation.replace(" ", "").partition("->")[0].split(",")
    found = {group[axis] for group, axis in zip(groups, axes, strict=True) if axis is not None}
    for label in found:
        if len(found) == 1 and all(g.count(label) == (a is not None) for g, a in zip(groups, axes, strict=True)):
            return label
    return None


def _roi_align(op: RoiAlign, types: CallTypes, axes: Axes) -> AxisRule | None:
    """Invalid regions become empty regions of the first image."""
    plain = axes[0] is None and axes[1] == 0 == axes[2] and 0 not in types.input(0).shape
    return AxisRule(0, {1: 0, 2: 0}, keeps_zeros=False) if plain else None


def _cumulative(op: CumSum | CumProd, types: CallTypes, axes: Axes) -> AxisRule | None:
    dim, found = axes[0], types.input(1).value
    if dim is None or found is None:
        return None
    backwards = op.reverse and normalize_axis(int(found.reshape(-1)[0]), types.input(0).rank) == dim
    if backwards and types.input(0).quantization is not None:
        return None
    neutral = 0.0 if isinstance(op, CumSum) else 1.0
    return AxisRule(dim, {0: neutral} if backwards else {}, keeps_zeros=False)


def _reverse(op: Reverse, types: CallTypes, axes: Axes) -> AxisRule | None:
    found = _counted_and_named_axes(types, axes)
    return None if found is None else AxisRule(found[0])


def _pad(op: Pad | MirrorPad, types: CallTypes, axes: Axes) -> AxisRule | None:
    dim, found = _only_counted_axis(op, types, axes), types.input(1).value
    plain = dim is not None and found is not None and not found.reshape(-1, 2)[dim].any()
    return AxisRule(dim, keeps_zeros=False) if dim is not None and plain else None


def _tile(op: Tile, types: CallTypes, axes: Axes) -> AxisRule | None:
    dim, found = _only_counted_axis(op, types, axes), types.input(1).value
    return AxisRule(dim) if dim is not None and found is not None and int(found.reshape(-1)[dim]) == 1 else None


def _split(op: Split | SplitV, types: CallTypes, axes: Axes) -> AxisRule | None:
    x, axis = (1, 0) if isinstance(op, Split) else (0, 2)
    dim, found = axes[x], types.input(axis).value
    if dim is None or found is None or any(a is not None for i, a in enumerate(axes) if i != x):
        return None
    return None if normalize_axis(int(found.reshape(-1)[0]), types.input(x).rank) == dim else AxisRule(dim)


def _unpack(op: Unpack, types: CallTypes, axes: Axes) -> AxisRule | None:
    dim, removed = axes[0], normalize_axis(op.axis, types.input(0).rank)
    return None if dim is None or dim == removed else AxisRule(dim - (removed < dim))


def _pack(op: Pack, types: CallTypes, axes: Axes) -> AxisRule | None:
    if None in axes or len(set(axes)) != 1:
        return None
    dim, at = axes[0], normalize_axis(op.axis, types.input(0).rank + 1)
    return None if dim is None else AxisRule(dim + (at <= dim))


def _one_hot(op: OneHot, types: CallTypes, axes: Axes) -> AxisRule | None:
    dim = _only_counted_axis(op, types, axes)
    if dim is None:
        return None
    return AxisRule(dim + (normalize_axis(op.axis, types.input(0).rank + 1) <= dim), keeps_zeros=False)


def _scatter_elements(op: ScatterElements, types: CallTypes, axes: Axes) -> AxisRule | None:
    """Invalid entries get index 0; they only affect invalid entries of the result."""
    (dim, *others), along = axes, normalize_axis(op.axis, types.input(0).rank)
    matches = dim is not None and dim != along and others == [dim, dim] and (types.input(0).shape[along] or 0) > 0
    return AxisRule(dim, {1: 0}, keeps_zeros=False) if dim is not None and matches else None


def _scatter_slices(op: ScatterSlices, types: CallTypes, axes: Axes) -> AxisRule | None:
    """The counted axis is an axis of the slices."""
    dim, depth = axes[0], types.input(1).shape[-1] or 0
    if dim is None or dim < depth or axes[1] is not None or axes[2] != dim - depth + types.input(1).rank - 1:
        return None
    return AxisRule(dim)


def _gather_elements(op: GatherElements, types: CallTypes, axes: Axes) -> AxisRule | None:
    """Invalid indices become 0."""
    x, along = types.input(0), normalize_axis(op.axis, types.input(0).rank)
    if axes[1] is None or 0 in x.shape or (axes[0] is not None and (axes[0] != axes[1] or axes[0] == along)):
        return None
    return AxisRule(axes[1], {1: 0.0}, keeps_zeros=False)


def _interpolate(op: Interpolate, types: CallTypes, axes: Axes) -> AxisRule | None:
    dim = _only_counted_axis(op, types, axes)
    return None if dim is None or dim in op.axes else AxisRule(dim, keeps_zeros=False)


def _softmax(op: Softmax | LogSoftmax, types: CallTypes, axes: Axes) -> AxisRule | None:
    """Invalid entries become -inf, which has the weight 0."""
    dim, x = axes[0], types.input(0)
    if dim is None or dim != x.rank - 1:
        return None if dim is None else AxisRule(dim, keeps_zeros=False)
    plain = x.quantization is None and x.dtype.is_float and (isinstance(op, LogSoftmax) or op.beta > 0)
    return AxisRule(dim, {0: -math.inf}, keeps_zeros=False) if plain else None


_RULES: dict[type[Op], Rule] = {
    **dict.fromkeys((Unary, LeakyRelu, Cast, Copy, Binary, AddN, Comparison, Select, PRelu, TanhOfSum), _elementwise),
    **dict.fromkeys((Quantize, Dequantize, FakeQuant, ZerosLike), _elementwise),
    **dict.fromkeys(
        (Conv2D, DepthwiseConv2D, Conv3D, Pool2D, ResizeBilinear, ResizeNearestNeighbor, InstanceNorm, SpaceToDepth),
        _by_image,
    ),
    **dict.fromkeys((DepthToSpace, TreeEnsemble), _by_image),
    **dict.fromkeys((L2Normalization, LocalResponseNormalization, RmsNorm, BatchNorm), _by_vector),
    FullyConnected: _fully_connected,
    BatchMatMul: _product,
    Einsum: _einsum,
    RoiAlign: _roi_align,
    **dict.fromkeys((CumSum, CumProd), _cumulative),
    Reverse: _reverse,
    **dict.fromkeys((Pad, MirrorPad), _pad),
    Tile: _tile,
    **dict.fromkeys((Split, SplitV), _split),
    Unpack: _unpack,
    Pack: _pack,
    OneHot: _one_hot,
    GatherElements: _gather_elements,
    ScatterElements: _scatter_elements,
    ScatterSlices: _scatter_slices,
    TopK: _by_vector,
    Interpolate: _interpolate,
    Gather: _gather,
    GatherNd: _gather_nd,
    EmbeddingLookup: _embedding_lookup,
    Transpose: _transpose,
    Squeeze: _squeeze,
    ExpandDims: _expand,
    Reshape: _reshape,
    Slice: _slice,
    StridedSlice: _strided,
    Concat: _concat,
    **dict.fromkeys((Reduce, ArgReduce), _reduce),
    **dict.fromkeys((Softmax, LogSoftmax), _softmax),
}
