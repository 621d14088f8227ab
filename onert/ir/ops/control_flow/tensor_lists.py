"""TensorFlow's lists of tensors: as many items as a loop has rounds, each set once.

Such a list is an `Items`, like a sequence; an item that was never set is None there, and reads as zeros.
"""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Context, Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import Shape
from onert.ir.types import CallTypes, TensorType, unranked

from .sequences import VARIANT, Items, boxed, require_variant, unboxed

_ONE = 64
"""Bytes charged per item in addition to its elements."""


def _item_shape(shape: TensorType) -> Shape | None:
    """The item shape that an operand gives, where -1 is unknown; None if its rank is unknown."""
    found = sv.integers(shape, "the shape of items")
    require(shape.rank <= 1, f"the shape of items is {shape}, expected a vector, or -1")
    if found is None or shape.rank == 0:
        length = sv.length(shape) if shape.rank else None
        return None if length is None else (None,) * length
    require(all(d >= -1 for d in found), f"the shape of items is {list(found)}, expected sizes, or -1")
    return tuple(None if d == -1 else d for d in found)


def _place(at: Array, count: int) -> int:
    found = int(at.reshape(-1)[0])
    require(0 <= found < count, f"position {found} is outside of a list of {count}")
    return found


def _unset(context: Context, shape: Array, dtype: DType, others: tuple[object, ...]) -> Array:
    """Zeros for an item that was never set: of the shape that the operand gives, or else of another item's shape."""
    dims = [int(d) for d in shape.reshape(-1)]
    if shape.ndim == 0 or any(d < 0 for d in dims):
        like = next((np.asarray(other) for other in others if other is not None), None)
        require(like is not None, "an item was never set, and the shape of items is unknown")
        dims = list(np.asarray(like).shape)
    wanted = sv.checked_shape(tuple(dims), "the shape of items")
    context.hold(prod(wanted) * np.dtype(dtype.numpy).itemsize)
    return np.zeros(wanted, dtype.numpy)


@frozen
class ListReserve(Op):
    """A list of `count` items, none of them set.

    - `shape`: the shape of all items, int32 or int64; -1 for unknown sizes, and instead of a vector if the rank is too
    - `count`: one integer, the number of items

    Source: TensorFlow's TensorListReserve.
    """

    def infer(self, shape: TensorType, count: TensorType) -> TensorType:
        _item_shape(shape)
        number = sv.one_integer(count, "the number of items")
        require(number is None or number >= 0, f"the number of items is {number}, expected 0 or more")
        return VARIANT

    def evaluate_in(self, context: Context, types: CallTypes, shape: Array, count: Array) -> Array:
        number = int(count.reshape(-1)[0])
        require(number >= 0, f"the number of items is {number}, expected 0 or more")
        context.hold(number * _ONE)
        return boxed(Items((None,) * number))


@frozen
class ListFrom(Op):
    """The list of a tensor's entries along its first axis.

    - `x`: any, of rank 1 or more
    - `shape`: the shape of the entries, as in `ListReserve`

    Source: TensorFlow's TensorListFromTensor.
    """

    def infer(self, x: TensorType, shape: TensorType) -> TensorType:
        require(x.rank >= 1, "x is a scalar, expected rank 1 or more")
        wanted = _item_shape(shape)
        fits = wanted is None or shapes.compatible(x.shape[1:], wanted)
        require(fits, f"entries have shape {shapes.text(x.shape[1:])}, expected {shapes.text(wanted or ())}")
        return VARIANT

    def evaluate_in(self, context: Context, types: CallTypes, x: Array, shape: Array) -> Array:
        context.hold(x.nbytes + _ONE * len(x))
        return boxed(Items(tuple(x.copy())))


@frozen
class ListSet(Op):
    """A list with one item set.

    - `items`: VARIANT
    - `at`: one integer, the item's position. Raises RuleError if there is no such item.
    - `x`: the item

    Source: TensorFlow's TensorListSetItem.
    """

    def infer(self, items: TensorType, at: TensorType, x: TensorType) -> TensorType:
        require_variant(items)
        sv.one_integer(at, "position")
        return VARIANT

    def evaluate_in(self, context: Context, types: CallTypes, items: Array, at: Array, x: Array) -> Array:
        entries = unboxed(items).entries
        place = _place(at, len(entries))
        context.hold(x.nbytes + _ONE)
        return boxed(Items((*entries[:place], x.copy(), *entries[place + 1 :])))


@frozen
class ListGet(Op):
    """One item of a list, of type `dtype`; zeros if it was never set.

    - `items`: VARIANT
    - `at`: one integer, the item's position. Raises RuleError if there is no such item.
    - `shape`: the shape of items, as in `ListReserve`

    Source: TensorFlow's TensorListGetItem.
    """

    dtype: DType

    def infer(self, items: TensorType, at: TensorType, shape: TensorType) -> TensorType:
        require_variant(items)
        sv.one_integer(at, "position")
        found = _item_shape(shape)
        return unranked(self.dtype) if found is None else TensorType(self.dtype, found)

    def evaluate_in(self, context: Context, types: CallTypes, items: Array, at: Array, shape: Array) -> Array:
        entries = unboxed(items).entries
        found = entries[_place(at, len(entries))]
        out = _unset(context, shape, self.dtype, entries) if found is None else np.asarray(found)
        require(out.dtype == self.dtype.numpy, f"the item is {out.dtype}, expected {self.dtype.text}")
        context.hold(out.nbytes)
        return out.copy()


@frozen
class ListStack(Op):
    """The items of a list, stacked along a new first axis; those never set are zeros.

    - `items`: VARIANT
    - `shape`: the shape of items, as in `ListReserve`

    `dtype` is that of the items. Items of different shapes, and an empty list of items of unknown shape, are errors.

    Source: TensorFlow's TensorListStack.
    """

    dtype: DType

    def infer(self, items: TensorType, shape: TensorType) -> TensorType:
        require_variant(items)
        found = _item_shape(shape)
        return unranked(self.dtype) if found is None else TensorType(self.dtype, (None, *found))

    def evaluate_in(self, context: Context, types: CallTypes, items: Array, shape: Array) -> Array:
        entries = unboxed(items).entries
        if all(entry is not None for entry in entries) and entries:
            found = [np.asarray(entry) for entry in entries]
        else:
            unset = _unset(context, shape, self.dtype, entries)
            if not entries:
                return np.zeros((0, *unset.shape), self.dtype.numpy)
            found = [unset if entry is None else np.asarray(entry) for entry in entries]
        first = found[0].shape
        for item in found:
            fits = item.dtype == self.dtype.numpy and item.shape == first
            require(fits, f"an item is {item.dtype} {item.shape}, expected {self.dtype.text} {first}")
        context.hold(sum(item.nbytes for item in found))
        stacked: Array = np.stack(found)
        return stacked
