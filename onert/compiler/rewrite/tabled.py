"""Tensors that are functions of places, by tables: what operations make of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType, Op, TensorType, evaluate
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.shape import normalize_axis, static
from onert.ir.symbolic.trace import are_same, is_symbolic, largest

MOST_BYTES = 16 << 20
"""Of one table. What takes more is computed for each length alone."""

_MOST = 1 << 24
"""Integers of at most this size are elements of every type that tables are made of."""


class UnknownError(ValueError):
    """It is not known how a tensor depends on places."""


@frozen(eq=False)
class Tabled:
    """A tensor whose elements depend on their place through an integer alone, which is an element of `root`.

    The table has the tensor's rank. Along the first of `axes` it has an entry for every integer from `low` on. It is 1
    along the others of these, and along symbolic dimensions along which elements are alike.
    """

    root: int | None
    """An operand of integers, whose axes lie along `axes` of the tensor, or of a single one, which has one axis there;
    None where elements depend on no place."""
    low: int
    axes: tuple[int, ...]
    table: Array


def stretched(tabled: Tabled, type_: TensorType) -> Tabled:
    """What was found, with a table that has all elements along the dimensions that are the same for all lengths."""
    shape = static(type_.shape)
    kept = [at in tabled.axes or is_symbolic(d) for at, d in enumerate(shape)]
    wanted = tuple(have if keep else d for keep, have, d in zip(kept, tabled.table.shape, shape, strict=True))
    if any(
        keep and have != 1 and at not in tabled.axes[:1]
        for at, (keep, have) in enumerate(zip(kept, wanted, strict=True))
    ):
        raise UnknownError
    if wanted == tabled.table.shape:
        return tabled
    _bound(math.prod(wanted), type_.dtype)
    return evolve(tabled, table=np.ascontiguousarray(np.broadcast_to(tabled.table, wanted)))


def _bound(elements: int, dtype: DType) -> None:
    """UnknownError for a table of more elements than are worth it, before it is made."""
    if elements * dtype.itemsize > MOST_BYTES:
        raise UnknownError


def _root(operand: int, rank: int, low: int, high: int, dtype: DType) -> Tabled:
    """An operand of integers from `low` to before `high`, of which the table says which they are."""
    if not -_MOST <= low <= high <= _MOST:
        raise UnknownError
    _bound(high - low, dtype)
    table = np.arange(low, max(high, low + 1)).astype(dtype.numpy)
    return Tabled(operand, low, tuple(range(rank)), table.reshape(-1, *(1,) * (rank - 1)))


def counted(operand: int, types: CallTypes) -> Tabled:
    """Places, which begin and end with lengths."""
    start, limit, delta = (_number(types.input(at)) for at in range(3))
    if is_symbolic(delta) or delta < 1:
        raise UnknownError
    return _root(operand, 1, _ends(start)[0], _ends(limit)[1], types.output.dtype)


def of_length(operand: int, type_: TensorType) -> Tabled:
    """A single number that depends on lengths, as a place."""
    low, high = _ends(_number(type_))
    return evolve(_root(operand, max(1, type_.rank), low, high + 1, type_.dtype), axes=(0,))


def _ends(number: Any) -> tuple[int, int]:
    """Between which two a number is for all lengths."""
    if not is_symbolic(number):
        return number, number
    most = largest(number)
    return (0, most) if number >= 0 and not is_symbolic(most) else refused()


def refused() -> Any:
    """UnknownError, where an expression has no other way to say it."""
    raise UnknownError


def _number(type_: TensorType) -> Any:
    """The only element of an operand: an integer, plain or symbolic."""
    if type_.data is None:
        raise UnknownError
    (found,) = type_.data.array.reshape(-1).tolist()
    return found if is_symbolic(found) or found == int(found) else refused()


def apart(operand: int, op: Binary, given: Sequence[Tabled]) -> Tabled:
    """Distances between places, or sums of them."""
    first, second = (each.table for each in given)
    whole = all(table.dtype.kind in "if" and (table == np.rint(table)).all() for table in (first, second))
    if not whole or op.activation is not Activation.NONE or op.kind not in (BinaryKind.ADD, BinaryKind.SUB):
        raise UnknownError
    low, high, least, most = (int(end) for table in (first, second) for end in (table.min(), table.max()))
    if op.kind is BinaryKind.SUB:
        least, most = -most, -least
    return _root(operand, first.ndim, low + least, high + most + 1, DType.from_numpy(first.dtype))


def behind(tabled: Tabled, rank: int) -> Tabled:
    """The same with dimensions of 1 in front."""
    more = rank - tabled.table.ndim
    axes = tuple(axis + more for axis in tabled.axes)
    return evolve(tabled, axes=axes, table=tabled.table.reshape((1,) * more + tabled.table.shape))


def reshaped(tabled: Tabled, before: tuple[int, ...], after: tuple[int, ...]) -> Tabled:
    """The same with dimensions of 1 put in or taken out."""
    old, new = ([at for at, d in enumerate(shape) if is_symbolic(d) or d != 1] for shape in (before, after))
    if len(old) != len(new) or not all(are_same(before[a], after[b]) for a, b in zip(old, new, strict=True)):
        raise UnknownError
    place = dict(zip(old, new, strict=True))
    sizes = {place[at]: size for at, size in enumerate(tabled.table.shape) if at in place}
    axes = tuple(place[axis] for axis in tabled.axes)
    return evolve(tabled, axes=axes, table=tabled.table.reshape([sizes.get(at, 1) for at in range(len(after))]))


def evaluated(op: Op, given: Sequence[Tabled], types: CallTypes) -> Tabled:
    """A function of elements that depend on the same places in the same way, or on none."""
    _bound(math.prod(np.broadcast_shapes(*(each.table.shape for each in given))), types.output.dtype)
    return _placed(op, given, types)


def _placed(op: Op, given: Sequence[Tabled], types: CallTypes) -> Tabled:
    """An operation on operands that depend on the same places in the same way, or on none."""
    placed = next((each for each in given if each.root is not None), given[0])
    for each in given:
        if each.root is None:
            if any(axis < each.table.ndim and each.table.shape[axis] != 1 for axis in placed.axes):
                raise UnknownError
        elif (each.root, each.low, each.axes) != (placed.root, placed.low, placed.axes):
            raise UnknownError
    return evolve(placed, table=_made(op, given, types))


def _made(op: Op, given: Sequence[Tabled], types: CallTypes) -> Array:
    """What an operation gives of tables."""
    tables = [each.table for each in given]
    inputs = tuple(types.input(at).with_shape(table.shape) for at, table in enumerate(tables))
    (found,) = evaluate(op, tables, CallTypes(inputs, types.outputs))
    return found


def looked_up(op: Gather, given: Sequence[Tabled], types: CallTypes) -> Tabled:
    """Entries of a constant that are named by places."""
    x, indices = given
    if x.root is not None or op.batch_dims or any(map(is_symbolic, types.input(0).shape)):
        raise UnknownError
    axis = normalize_axis(op.axis, x.table.ndim)
    _bound(indices.table.size * math.prod(x.table.shape) // max(1, x.table.shape[axis]), types.output.dtype)
    (found,) = evaluate(op, [x.table, indices.table], types)
    return evolve(indices, axes=tuple(axis + each for each in indices.axes), table=found)


def joined(op: Concat, given: Sequence[Tabled], types: CallTypes) -> Tabled:
    """Tensors that depend on the same places, one behind the other along another axis."""
    axis = normalize_axis(op.axis, types.output.rank)
    if any(axis in each.axes for each in given) or is_symbolic(types.output.shape[axis]):
        raise UnknownError
    common = np.broadcast_shapes(*((*s[:axis], 1, *s[axis + 1 :]) for s in (each.table.shape for each in given)))
    wide = [
        evolve(each, table=np.broadcast_to(each.table, (*common[:axis], each.table.shape[axis], *common[axis + 1 :])))
        for each in given
        if each.root is not None
    ]
    if len(wide) != len(given):
        raise UnknownError
    _bound(sum(each.table.size for each in wide), types.output.dtype)
    return _placed(op, wide, types)


def multiplied(op: BatchMatMul, given: Sequence[Tabled], types: CallTypes) -> Tabled:
    """Products of single elements: no sum depends on how many rows there are."""
    rank, moved = types.output.rank, []
    for each, turned, is_first in zip(given, (op.adjoint_x, op.adjoint_y), (True, False), strict=True):
        last = each.table.ndim - 1
        depth, other = (last - 1, last) if turned is is_first else (last, last - 1)
        if each.table.shape[depth] != 1 or depth in each.axes:
            raise UnknownError
        to = rank - 2 if is_first else rank - 1
        moved.append(tuple(to if axis == other else axis + rank - 1 - last for axis in each.axes))
    (placed,) = (at for at in range(2) if given[at].root is not None)
    other = given[1 - placed].table.shape
    if any(is_symbolic(d) for d in types.input(1 - placed).shape):
        raise UnknownError
    if any(other[axis - rank] != 1 for axis in moved[placed] if axis < rank - 2 and axis - rank >= -len(other)):
        raise UnknownError
    _bound(math.prod(each.table.size for each in given), types.output.dtype)
    return evolve(given[placed], axes=moved[placed], table=_made(op, given, types))
