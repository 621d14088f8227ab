"""Tensors that are functions of positions, given by tables, and operations on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType, Op, TensorType, evaluate
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.element_indices import ScatterSlices
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.slicing import StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.shape import normalize_axis, static
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import hint, is_symbolic, largest

from .counts.first_entries import axis_rule

MOST_BYTES = 16 << 20
"""The largest table. Larger ones are computed for each length separately."""

_MOST = 1 << 24
"""Integers up to this magnitude are exact in every element type of tables."""


class UnknownError(ValueError):
    """It is not known how a tensor depends on positions."""


@frozen(eq=False)
class Tabled:
    """A tensor whose elements depend on their position only through an integer, which is an element of `root`.

    The table has the tensor's rank. Along the first of `axes` it has an entry for every integer from `low` on. Its size
    is 1 along the other `axes`, and along symbolic dimensions in which elements do not vary.
    """

    root: int | None
    """An integer operand whose axes correspond to `axes` of the tensor, or a single integer with one axis there; None
    if elements do not depend on positions."""
    low: int
    axes: tuple[int, ...]
    table: Array


def expanded(tabled: Tabled, type_: TensorType) -> Tabled:
    """The table broadcast to full size along the dimensions that are the same for all lengths."""
    shape = static(type_.shape)
    kept = [at in tabled.axes or is_symbolic(d) for at, d in enumerate(shape)]
    full_shape = tuple(have if keep else d for keep, have, d in zip(kept, tabled.table.shape, shape, strict=True))
    if any(
        keep and have != 1 and at not in tabled.axes[:1]
        for at, (keep, have) in enumerate(zip(kept, full_shape, strict=True))
    ):
        raise UnknownError
    if full_shape == tabled.table.shape:
        return tabled
    _bound(math.prod(full_shape), type_.dtype)
    return evolve(tabled, table=np.ascontiguousarray(np.broadcast_to(tabled.table, full_shape)))


def _bound(elements: int, dtype: DType) -> None:
    """Raise UnknownError if a table would be larger than `MOST_BYTES`, before it is allocated."""
    if elements * dtype.itemsize > MOST_BYTES:
        raise UnknownError


def _root(operand: int, rank: int, low: int, high: int, dtype: DType) -> Tabled:
    """An operand of integers from `low` to `high` - 1, with the table of the identity."""
    if not -_MOST <= low <= high <= _MOST:
        raise UnknownError
    _bound(high - low, dtype)
    table = np.arange(low, max(high, low + 1)).astype(dtype.numpy)
    return Tabled(operand, low, tuple(range(rank)), table.reshape(-1, *(1,) * (rank - 1)))


def of_range(operand: int, types: CallTypes) -> Tabled:
    """The table of a `Range` of integers, which may be stored as floats, whose start and limit may be lengths."""
    start, limit, delta = (_number(types.input(at)) for at in range(3))
    if is_symbolic(delta) or not delta:
        raise UnknownError
    if delta > 0:
        return _root(operand, 1, _ends(start)[0], _ends(limit)[1], types.output.dtype)
    return _root(operand, 1, _ends(limit)[0] + 1, _ends(start)[1] + 1, types.output.dtype)


def of_length(operand: int, type_: TensorType) -> Tabled:
    """The table of a single number that depends on lengths, as a position."""
    low, high = _ends(_number(type_))
    return evolve(_root(operand, max(1, type_.rank), low, high + 1, type_.dtype), axes=(0,))


def _ends(number: Any) -> tuple[int, int]:
    """Lower and upper bound of a number over all lengths."""
    if not is_symbolic(number):
        return int(number), int(number)
    negative = bool(number < 0)
    most = largest(-number if negative else number)
    if is_symbolic(most):
        raise UnknownError
    return (-most, 0) if negative else (0, most)


def refused() -> Any:
    """Raise UnknownError, for use in expressions."""
    raise UnknownError


def _number(type_: TensorType) -> Any:
    """The only element of an operand, a plain or symbolic integer."""
    if type_.data is None:
        raise UnknownError
    (found,) = type_.data.array.reshape(-1).tolist()
    value = hint(found)
    return found if value == int(value) and not (is_symbolic(found) and isinstance(value, float)) else refused()


def combined_positions(operand: int, op: Binary, operands: Sequence[Tabled]) -> Tabled:
    """The table of differences or sums of positions along different axes."""
    first, second = (each.table for each in operands)
    are_integers = all(table.dtype.kind in "if" and (table == np.rint(table)).all() for table in (first, second))
    if not are_integers or op.activation is not Activation.NONE or op.kind not in (BinaryKind.ADD, BinaryKind.SUB):
        raise UnknownError
    low, high, least, most = (int(end) for table in (first, second) for end in (table.min(), table.max()))
    if op.kind is BinaryKind.SUB:
        least, most = -most, -least
    return _root(operand, first.ndim, low + least, high + most + 1, DType.from_numpy(first.dtype))


def with_leading_ones(tabled: Tabled, rank: int) -> Tabled:
    """The table with leading dimensions of 1 added, up to `rank`."""
    more = rank - tabled.table.ndim
    axes = tuple(axis + more for axis in tabled.axes)
    return evolve(tabled, axes=axes, table=tabled.table.reshape((1,) * more + tabled.table.shape))


def reshaped(tabled: Tabled, before: tuple[int, ...], after: tuple[int, ...]) -> Tabled:
    """The table after a reshape that keeps the dimensions that lengths determine, or only adds or removes ones."""
    old, new = (_open_axes(shape) for shape in (before, after))
    if not set(tabled.axes) <= set(old):
        old, new = ([at for at, d in enumerate(shape) if is_symbolic(d) or d != 1] for shape in (before, after))
    if len(old) != len(new) or not all(are_same(before[a], after[b]) for a, b in zip(old, new, strict=True)):
        raise UnknownError
    if _products_between(old, before) != _products_between(new, after):
        raise UnknownError
    place = dict(zip(old, new, strict=True))
    sizes = {place[at]: size for at, size in enumerate(tabled.table.shape) if at in place}
    shape = [sizes.get(at, d) for at, d in enumerate(after)]
    return evolve(tabled, axes=tuple(place[axis] for axis in tabled.axes), table=tabled.table.reshape(shape))


def _open_axes(shape: tuple[int, ...]) -> list[int]:
    """The axes whose sizes depend on lengths."""
    return [at for at, d in enumerate(shape) if is_symbolic(d)]


def _products_between(axes: Sequence[int], shape: tuple[int, ...]) -> list[int]:
    """The number of elements that a shape has before, between and behind some axes."""
    ends = [-1, *axes, len(shape)]
    return [math.prod(shape[a + 1 : b]) for a, b in pairwise(ends)]


def sliced(op: StridedSlice, tabled: Tabled, types: CallTypes) -> Tabled:
    """The table of a slice that keeps the dimensions that lengths determine whole."""
    bounds = [_integers(types.input(at)) for at in (1, 2, 3)]
    fixed = {*tabled.axes, *_open_axes(static(types.input(0).shape))}
    place, index = dict[int, int](), list[slice | int | None]()
    for axis, part in op.parts(tabled.table.ndim, *bounds):
        if axis in fixed and part != slice(None, None, 1):
            raise UnknownError
        if axis is not None:
            place[axis] = sum(not isinstance(each, int) for each in index)
        index.append(None if axis is None else part)
    return evolve(tabled, axes=tuple(place[axis] for axis in tabled.axes), table=tabled.table[tuple(index)])


def tiled(tabled: Tabled, types: CallTypes) -> Tabled:
    """The table of a tensor repeated along dimensions that lengths do not determine."""
    counts = _integers(types.input(1))
    if any(counts[axis] != 1 for axis in {*tabled.axes, *_open_axes(static(types.input(0).shape))}):
        raise UnknownError
    _bound(tabled.table.size * math.prod(counts), types.output.dtype)
    return evolve(tabled, table=np.tile(tabled.table, counts))


def _integers(type_: TensorType) -> tuple[int, ...]:
    """The elements of an operand of integers that are the same for all lengths."""
    if type_.data is None or type_.data.is_symbolic:
        raise UnknownError
    return tuple(type_.data.array.reshape(-1).tolist())


def evaluated(op: Op, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of an element-wise function of operands that depend on the same positions, or on none."""
    _bound(math.prod(np.broadcast_shapes(*(each.table.shape for each in operands))), types.output.dtype)
    return _placed(op, operands, types)


def _placed(op: Op, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of an operation on operands that depend on the same positions in the same way, or on none."""
    placed = next((each for each in operands if each.root is not None), operands[0])
    for each in operands:
        if each.root is None:
            if any(axis < each.table.ndim and each.table.shape[axis] != 1 for axis in placed.axes):
                raise UnknownError
        elif (each.root, each.low, each.axes) != (placed.root, placed.low, placed.axes):
            raise UnknownError
    return evolve(placed, table=_evaluate(op, operands, types))


def _evaluate(op: Op, operands: Sequence[Tabled], types: CallTypes) -> Array:
    """The result of an operation on tables."""
    (found,) = evaluate(op, [each.table for each in operands], _types_of(operands, types))
    return found


def _types_of(operands: Sequence[Tabled], types: CallTypes) -> CallTypes:
    """The types of an operation on tables. Its results have the declared types."""
    of_tables = list[TensorType]()
    for each, type_ in zip(operands, filter(None, types.inputs), strict=True):
        data = type_.data if each.root is None else None
        of_tables.append(evolve(type_, shape=each.table.shape, data=data))
    return CallTypes(tuple(of_tables), types.outputs)


def gathered(op: Gather, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of a gather from a constant with positions as indices."""
    x, indices = operands
    if x.root is not None or op.batch_dims or any(map(is_symbolic, types.input(0).shape)):
        raise UnknownError
    axis = normalize_axis(op.axis, x.table.ndim)
    _bound(indices.table.size * math.prod(x.table.shape) // max(1, x.table.shape[axis]), types.output.dtype)
    (found,) = evaluate(op, [x.table, indices.table], types)
    return evolve(indices, axes=tuple(axis + each for each in indices.axes), table=found)


def concatenated(op: Concat, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of a concatenation, along another axis, of tensors that depend on the same positions."""
    axis = normalize_axis(op.axis, types.output.rank)
    if any(axis in each.axes for each in operands) or is_symbolic(types.output.shape[axis]):
        raise UnknownError
    common = np.broadcast_shapes(*((*s[:axis], 1, *s[axis + 1 :]) for s in (each.table.shape for each in operands)))
    placed = next((each for each in operands if each.root is not None), None) or refused()
    wide = [
        evolve(
            placed if each.root is None else each,
            table=np.broadcast_to(each.table, (*common[:axis], each.table.shape[axis], *common[axis + 1 :])),
        )
        for each in operands
    ]
    _bound(sum(each.table.size for each in wide), types.output.dtype)
    return _placed(op, wide, types)


def packed(op: Pack, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of tensors that depend on the same positions, stacked along a new axis."""
    new = normalize_axis(op.axis, types.output.rank)
    wide = [
        evolve(e, axes=tuple(axis + (axis >= new) for axis in e.axes), table=np.expand_dims(e.table, new))
        for e in operands
    ]
    return concatenated(Concat(new), wide, types)


def by_entry(op: Op, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of an operation that treats the positions along one axis of each operand independently."""
    wide, placed = _lengthened(operands, types)
    axes = [None if each.root is None else each.axes[0] for each in wide]
    rule = axis_rule(op, _types_of(wide, types), axes)
    if rule is None or rule.filled or rule.constants:
        raise UnknownError
    fixed = math.prod(d for d in static(types.output.shape) if not is_symbolic(d))
    _bound(placed.table.shape[placed.axes[0]] * fixed, types.output.dtype)
    return evolve(placed, axes=(rule.axis,), table=_evaluate(op, wide, types))


def at_own_positions(op: ScatterSlices, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of a scatter in which each position's indices begin with the position itself."""
    wide, placed = _lengthened(operands, types)
    indices = wide[1].table
    own = np.arange(placed.low, placed.low + len(indices)).reshape(-1, *(1,) * (indices.ndim - 2))
    if placed.low or any(each.axes != (0,) for each in wide) or (indices[..., 0] != own).any():
        raise UnknownError
    return evolve(placed, axes=(0,), table=_evaluate(op, wide, types))


def _lengthened(operands: Sequence[Tabled], types: CallTypes) -> tuple[list[Tabled], Tabled]:
    """The tables with an entry for each position along one axis of each operand whose size is the number of positions,
    and one of the operands that depend on positions."""
    placed = next((each for each in operands if each.root is not None), None) or refused()
    if len(placed.axes) != 1:
        raise UnknownError
    size = types.input(operands.index(placed)).shape[placed.axes[0]]
    wide = list[Tabled]()
    for at, each in enumerate(operands):
        shape = static(types.input(at).shape)
        open_ = _open_axes(shape)
        if each.root is None and len(open_) == 1 and are_same(shape[open_[0]], size):
            full_shape = list(each.table.shape)
            full_shape[open_[0]] = placed.table.shape[placed.axes[0]]
            _bound(math.prod(full_shape), types.input(at).dtype)
            wide.append(evolve(placed, axes=(open_[0],), table=np.broadcast_to(each.table, full_shape)))
            continue
        is_alike = not open_ if each.root is None else len(each.axes) == 1 and {*open_} <= {*each.axes}
        if not is_alike or each.root not in (None, placed.root) or (each.root is not None and each.low != placed.low):
            raise UnknownError
        wide.append(each)
    return wide, placed


def multiplied(op: BatchMatMul, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of an outer product (depth 1), in which no sum depends on the number of rows."""
    rank, axes = types.output.rank, []
    for each, is_adjoint, is_first in zip(operands, (op.adjoint_x, op.adjoint_y), (True, False), strict=True):
        last = each.table.ndim - 1
        depth, other = (last - 1, last) if is_adjoint is is_first else (last, last - 1)
        if each.table.shape[depth] != 1 or depth in each.axes:
            raise UnknownError
        to = rank - 2 if is_first else rank - 1
        axes.append(tuple(to if axis == other else axis + rank - 1 - last for axis in each.axes))
    (placed,) = (at for at in range(2) if operands[at].root is not None)
    other = operands[1 - placed].table.shape
    if any(is_symbolic(d) for d in types.input(1 - placed).shape):
        raise UnknownError
    if any(other[axis - rank] != 1 for axis in axes[placed] if axis < rank - 2 and axis - rank >= -len(other)):
        raise UnknownError
    _bound(math.prod(each.table.size for each in operands), types.output.dtype)
    return evolve(operands[placed], axes=axes[placed], table=_evaluate(op, operands, types))


def of_zeros(op: FullyConnected, operands: Sequence[Tabled], types: CallTypes) -> Tabled:
    """The table of a layer on zeros, such as a recurrent state: the order of sums does not matter."""
    x, weights, *_ = operands
    if any(each.root is not None for each in operands) or x.table.any():
        raise UnknownError
    row = np.zeros((*(1,) * (x.table.ndim - 1), weights.table.shape[-1]), x.table.dtype)
    return evolve(x, table=_evaluate(op, [evolve(x, table=row), *operands[1:]], types))
