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
class Moved(Value):
    """How an operation runs on whole tensors: the counted axis of the results, the values that operands must be filled
    with after their valid entries, constant integers that replace operands, and whether zeros there stay zeros."""

    axis: int
    filled: Mapping[int, float] = field(factory=dict)
    constants: Mapping[int, tuple[int, ...]] = field(factory=dict)
    keeps_zeros: bool = True


Axes = Sequence[int | None]
"""For each operand its counted axis; None if all its entries are valid."""
Rule = Callable[..., Moved | None]


def moved(op: Op, types: CallTypes, axes: Axes) -> Moved | None:
    """How an operation on first entries runs on whole tensors of the given types; None if it cannot.

    All counted operands have the same number of valid entries.
    """
    rule = _RULES.get(type(op))
    return None if rule is None else rule(op, types, axes)


def _each(op: Op, types: CallTypes, axes: Axes) -> Moved | None:
    """Element-wise functions, possibly with broadcasting."""
    if isinstance(op, Select) and op.rows and types.input(0).rank == 1 < types.input(1).rank:
        return None
    divides = isinstance(op, Binary) and op.kind in _REPORTING and types.input(1).dtype.is_integer
    if divides and axes[1] is not None and types.input(1).quantization is not None:
        return None
    behind = {types.inputs[i].rank - axis for i, axis in enumerate(axes) if axis is not None}  # type: ignore[union-attr]
    if len(behind) != 1:
        return None
    (distance,) = behind
    for t, axis in zip(types.inputs, axes, strict=True):
        if axis is None and t is not None and t.rank >= distance and t.shape[-distance] != 1:
            return None
    rank = max(t.rank for t in types.inputs if t is not None)
    filled = {1: 1.0} if divides and axes[1] is not None else {}  # an invalid entry must not be a zero divisor
    return Moved(rank - distance, filled, keeps_zeros=isinstance(op, Cast | Copy))


_REPORTING = frozenset((BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.POW))


def _gather(op: Gather, types: CallTypes, axes: Axes) -> Moved | None:
    x, indices = types.input(0), types.input(1)
    along = normalize_axis(op.axis, x.rank)
    if op.batch_dims or None not in axes:
        return None
    if axes[1] is not None:  # invalid indices become 0, the first slice
        return Moved(along + axes[1], {1: 0}, keeps_zeros=False) if (x.shape[along] or 0) > 0 else None
    own = axes[0]
    if own is None or own == along:
        return None
    return Moved(own if own < along else own + indices.rank - 1)


def _gather_nd(op: GatherNd, types: CallTypes, axes: Axes) -> Moved | None:
    x, indices = types.input(0), types.input(1)
    own, depth = axes[1], indices.shape[-1] or 0
    if axes[0] is not None and own is None and axes[0] >= depth:
        return Moved(axes[0] - depth + indices.rank - 1)
    if axes[0] is not None or own is None or own == indices.rank - 1 or 0 in x.shape:
        return None
    return Moved(own, {1: 0}, keeps_zeros=False)


def _looked_up(op: EmbeddingLookup, types: CallTypes, axes: Axes) -> Moved | None:
    plain = axes[0] == 0 and axes[1] is None and 0 not in types.input(1).shape
    return Moved(0, {0: 0}, keeps_zeros=False) if plain else None


def _transpose(op: Transpose, types: CallTypes, axes: Axes) -> Moved | None:
    order = types.input(1).value
    return None if order is None or axes[0] is None else Moved([int(i) for i in order.reshape(-1)].index(axes[0]))


def _squeeze(op: Squeeze, types: CallTypes, axes: Axes) -> Moved | None:
    shape, own = types.input(0).shape, axes[0]
    if not op.axes or own is None:
        return None
    gone = normalize_axes(op.axes, len(shape))
    return None if own in gone else Moved(own - sum(axis < own for axis in gone))


def _expand(op: ExpandDims, types: CallTypes, axes: Axes) -> Moved | None:
    found, own = types.input(1).value, axes[0]
    if found is None or own is None:
        return None
    at = normalize_axis(int(found.reshape(-1)[0]), types.input(0).rank + 1)
    return Moved(own + (at <= own))


def _reshape(op: Reshape, types: CallTypes, axes: Axes) -> Moved | None:
    """A reshape in which -1 is the counted dimension, with the same number of elements before and after it."""
    own, shape = axes[0], static(types.input(0).shape)
    given = types.inputs[1].value if len(types.inputs) > 1 and types.inputs[1] is not None else None
    if own is None or given is None or op.new_shape is not None or 0 in shape:
        return None
    wanted = sv.values(given)
    if wanted.count(-1) != 1:
        return None
    at = wanted.index(-1)
    if math.prod(shape[:own]) != math.prod(wanted[:at]) or math.prod(shape[own + 1 :]) != math.prod(wanted[at + 1 :]):
        return None
    return Moved(at, constants={1: (*wanted[:at], shape[own], *wanted[at + 1 :])})


def _slice(op: Slice, types: CallTypes, axes: Axes) -> Moved | None:
    begin, size, own = types.input(1).value, types.input(2).value, axes[0]
    if begin is None or size is None or own is None:
        return None
    return Moved(own) if int(begin.reshape(-1)[own]) == 0 and int(size.reshape(-1)[own]) == -1 else None


def _strided(op: StridedSlice, types: CallTypes, axes: Axes) -> Moved | None:
    """A slice that takes the whole counted axis, whatever its length."""
    own, given = axes[0], [types.input(i).value for i in (1, 2, 3)]
    if own is None or any(g is None for g in given) or op.ellipsis_mask or op.new_axis_mask or op.offset:
        return None
    begin, end, strides = (sv.values(g) for g in given if g is not None)
    if own < len(begin):
        length = types.input(0).shape[own] or 0
        starts = op.begin_mask >> own & 1 or begin[own] == 0
        ends = op.end_mask >> own & 1 or end[own] >= length
        if op.shrink_axis_mask >> own & 1 or strides[own] != 1 or not starts or not ends:
            return None
    return Moved(own - sum(op.shrink_axis_mask >> i & 1 for i in range(min(own, len(begin)))))


def _concat(op: Concat, types: CallTypes, axes: Axes) -> Moved | None:
    if None in axes or len(set(axes)) != 1:
        return None
    (own,) = set(axes)
    return None if own is None or normalize_axis(op.axis, types.input(0).rank) == own else Moved(own)


def _beside(types: CallTypes, axes: Axes) -> tuple[int, tuple[int, ...]] | None:
    """The first operand's counted axis and the axes in the second operand; None if these are unknown or include it."""
    own, found = axes[0], types.input(1).value
    if own is None or found is None:
        return None
    named = normalize_axes(tuple(int(a) for a in found.reshape(-1)), types.input(0).rank)
    return None if own in named else (own, named)


def _reduce(op: Reduce | ArgReduce, types: CallTypes, axes: Axes) -> Moved | None:
    found = _beside(types, axes)
    if found is None:
        return None
    own, gone = found
    kept = isinstance(op, Reduce) and op.keep_dims
    return Moved(own if kept else own - sum(axis < own for axis in gone), keeps_zeros=isinstance(op, ArgReduce))


def _alone(op: Op, types: CallTypes, axes: Axes) -> int | None:
    """The first operand's counted axis if no other operand has one; otherwise None."""
    return axes[0] if all(axis is None for axis in axes[1:]) else None


def _pictures(op: Op, types: CallTypes, axes: Axes) -> Moved | None:
    """Operations that treat entries along the first axis independently."""
    return Moved(0, keeps_zeros=False) if _alone(op, types, axes) == 0 else None


def _vectors(op: Op, types: CallTypes, axes: Axes) -> Moved | None:
    """Operations that treat vectors along the last axis independently."""
    own = _alone(op, types, axes)
    return None if own is None or own == types.input(0).rank - 1 else Moved(own, keeps_zeros=False)


def _connected(op: FullyConnected, types: CallTypes, axes: Axes) -> Moved | None:
    return _vectors(op, types, axes) if op.keep_dims or types.input(0).rank == 2 else None


def _product(op: BatchMatMul, types: CallTypes, axes: Axes) -> Moved | None:
    """Counted rows, counted columns, or a counted batch axis along which no operand is broadcast."""
    x, y = types.input(0), types.input(1)
    rank = max(x.rank, y.rank)
    behind = [None if axis is None else t.rank - axis for t, axis in zip((x, y), axes, strict=True)]
    if axes[1] is None and behind[0] == (1 if op.adjoint_x else 2):
        return Moved(rank - 2, keeps_zeros=False)
    if axes[0] is None and behind[1] == (2 if op.adjoint_y else 1):
        return Moved(rank - 1, keeps_zeros=False)
    found = {b for b in behind if b is not None}
    if len(found) != 1:
        return None
    (distance,) = found
    if distance <= 2:
        return None
    for t, axis in zip((x, y), axes, strict=True):
        if axis is None and t.rank >= distance and t.shape[-distance] != 1:
            return None
    return Moved(rank - distance, keeps_zeros=False)


def _einsum(op: Einsum, types: CallTypes, axes: Axes) -> Moved | None:
    """The counted axis has a label of the result."""
    at = counted_label(op, axes)
    result = op.equation.replace(" ", "").partition("->")[2]
    return None if at is None or at not in result else Moved(result.index(at), keeps_zeros=False)


def counted_label(op: Einsum, axes: Axes) -> str | None:
    """The label of the counted axis; None if it is not counted in all operands that have it."""
    groups = op.equation.replace(" ", "").partition("->")[0].split(",")
    found = {group[axis] for group, axis in zip(groups, axes, strict=True) if axis is not None}
    for label in found:
        if len(found) == 1 and all(g.count(label) == (a is not None) for g, a in zip(groups, axes, strict=True)):
            return label
    return None


def _aligned(op: RoiAlign, types: CallTypes, axes: Axes) -> Moved | None:
    """Invalid regions become empty regions of the first image."""
    plain = axes[0] is None and axes[1] == 0 == axes[2] and 0 not in types.input(0).shape
    return Moved(0, {1: 0, 2: 0}, keeps_zeros=False) if plain else None


def _running(op: CumSum | CumProd, types: CallTypes, axes: Axes) -> Moved | None:
    own, found = axes[0], types.input(1).value
    if own is None or found is None:
        return None
    backwards = op.reverse and normalize_axis(int(found.reshape(-1)[0]), types.input(0).rank) == own
    if backwards and types.input(0).quantization is not None:
        return None
    neutral = 0.0 if isinstance(op, CumSum) else 1.0
    return Moved(own, {0: neutral} if backwards else {}, keeps_zeros=False)


def _reverse(op: Reverse, types: CallTypes, axes: Axes) -> Moved | None:
    found = _beside(types, axes)
    return None if found is None else Moved(found[0])


def _pad(op: Pad | MirrorPad, types: CallTypes, axes: Axes) -> Moved | None:
    own, found = _alone(op, types, axes), types.input(1).value
    plain = own is not None and found is not None and not found.reshape(-1, 2)[own].any()
    return Moved(own, keeps_zeros=False) if own is not None and plain else None


def _tile(op: Tile, types: CallTypes, axes: Axes) -> Moved | None:
    own, found = _alone(op, types, axes), types.input(1).value
    return Moved(own) if own is not None and found is not None and int(found.reshape(-1)[own]) == 1 else None


def _split(op: Split | SplitV, types: CallTypes, axes: Axes) -> Moved | None:
    x, axis = (1, 0) if isinstance(op, Split) else (0, 2)
    own, found = axes[x], types.input(axis).value
    if own is None or found is None or any(a is not None for i, a in enumerate(axes) if i != x):
        return None
    return None if normalize_axis(int(found.reshape(-1)[0]), types.input(x).rank) == own else Moved(own)


def _unpack(op: Unpack, types: CallTypes, axes: Axes) -> Moved | None:
    own, gone = axes[0], normalize_axis(op.axis, types.input(0).rank)
    return None if own is None or own == gone else Moved(own - (gone < own))


def _pack(op: Pack, types: CallTypes, axes: Axes) -> Moved | None:
    if None in axes or len(set(axes)) != 1:
        return None
    own, at = axes[0], normalize_axis(op.axis, types.input(0).rank + 1)
    return None if own is None else Moved(own + (at <= own))


def _one_hot(op: OneHot, types: CallTypes, axes: Axes) -> Moved | None:
    own = _alone(op, types, axes)
    if own is None:
        return None
    return Moved(own + (normalize_axis(op.axis, types.input(0).rank + 1) <= own), keeps_zeros=False)


def _scatter_elements(op: ScatterElements, types: CallTypes, axes: Axes) -> Moved | None:
    """Invalid entries get index 0; they only affect invalid entries of the result."""
    (own, *others), along = axes, normalize_axis(op.axis, types.input(0).rank)
    beside = own is not None and own != along and others == [own, own] and (types.input(0).shape[along] or 0) > 0
    return Moved(own, {1: 0}, keeps_zeros=False) if own is not None and beside else None


def _scatter_slices(op: ScatterSlices, types: CallTypes, axes: Axes) -> Moved | None:
    """The counted axis is an axis of the slices."""
    own, depth = axes[0], types.input(1).shape[-1] or 0
    if own is None or own < depth or axes[1] is not None or axes[2] != own - depth + types.input(1).rank - 1:
        return None
    return Moved(own)


def _gather_elements(op: GatherElements, types: CallTypes, axes: Axes) -> Moved | None:
    """Invalid indices become 0."""
    x, along = types.input(0), normalize_axis(op.axis, types.input(0).rank)
    if axes[1] is None or 0 in x.shape or (axes[0] is not None and (axes[0] != axes[1] or axes[0] == along)):
        return None
    return Moved(axes[1], {1: 0.0}, keeps_zeros=False)


def _resized(op: Interpolate, types: CallTypes, axes: Axes) -> Moved | None:
    own = _alone(op, types, axes)
    return None if own is None or own in op.axes else Moved(own, keeps_zeros=False)


def _shares(op: Softmax | LogSoftmax, types: CallTypes, axes: Axes) -> Moved | None:
    """Invalid entries become -inf, which has the weight 0."""
    own, x = axes[0], types.input(0)
    if own is None or own != x.rank - 1:
        return None if own is None else Moved(own, keeps_zeros=False)
    plain = x.quantization is None and x.dtype.is_float and (isinstance(op, LogSoftmax) or op.beta > 0)
    return Moved(own, {0: -math.inf}, keeps_zeros=False) if plain else None


_RULES: dict[type[Op], Rule] = {
    **dict.fromkeys((Unary, LeakyRelu, Cast, Copy, Binary, AddN, Comparison, Select, PRelu, TanhOfSum), _each),
    **dict.fromkeys((Quantize, Dequantize, FakeQuant, ZerosLike), _each),
    **dict.fromkeys(
        (Conv2D, DepthwiseConv2D, Conv3D, Pool2D, ResizeBilinear, ResizeNearestNeighbor, InstanceNorm, SpaceToDepth),
        _pictures,
    ),
    **dict.fromkeys((DepthToSpace, TreeEnsemble), _pictures),
    **dict.fromkeys((L2Normalization, LocalResponseNormalization, RmsNorm, BatchNorm), _vectors),
    FullyConnected: _connected,
    BatchMatMul: _product,
    Einsum: _einsum,
    RoiAlign: _aligned,
    **dict.fromkeys((CumSum, CumProd), _running),
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
    TopK: _vectors,
    Interpolate: _resized,
    Gather: _gather,
    GatherNd: _gather_nd,
    EmbeddingLookup: _looked_up,
    Transpose: _transpose,
    Squeeze: _squeeze,
    ExpandDims: _expand,
    Reshape: _reshape,
    Slice: _slice,
    StridedSlice: _strided,
    Concat: _concat,
    **dict.fromkeys((Reduce, ArgReduce), _reduce),
    **dict.fromkeys((Softmax, LogSoftmax), _shares),
}
