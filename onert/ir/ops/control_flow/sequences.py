"""Sequences and optionals, whose contents are known only at run time.

Such a value is one element of type VARIANT. A sequence is an `Items` of arrays. An optional is an `Items` with no
entry, one array, or one `Items` if it contains a sequence.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Context, Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import Shape
from onert.ir.types import CallTypes, TensorType, unranked

_ONE = 64
"""Bytes charged per item in addition to its elements."""


class Items:
    """The contents of a sequence or an optional; compared by identity."""

    __slots__ = ("entries",)

    def __init__(self, entries: tuple[object, ...]) -> None:
        self.entries = entries


def boxed(items: Items) -> Array:
    """The items as a scalar of type VARIANT."""
    out: Array = np.empty((), object)
    out[()] = items
    return out


def unboxed(x: Array) -> Items:
    """The items in a scalar of type VARIANT. Raises RuleError for anything else."""
    found = x.reshape(-1)[0] if x.size == 1 else None
    if not isinstance(found, Items):
        require(False, f"an operand is {type(found).__name__}, expected a sequence or optional")
        raise AssertionError
    return found


VARIANT = TensorType(DType.VARIANT, ())


def require_variant(x: TensorType) -> None:
    require(x.dtype is DType.VARIANT and x.rank == 0, f"an operand is {x}, expected a sequence or optional")


def _item(x: Array, context: Context) -> object:
    """An operand as an entry, copied because the arena reuses its memory."""
    if x.dtype.hasobject and x.ndim == 0 and isinstance(x[()], Items):
        return x[()]
    context.hold(x.nbytes + _ONE)
    return x.copy()


def _place(at: Array, count: int, *, behind: bool) -> int:
    """A position counted from the front; `behind` also allows the position after the last entry."""
    found = int(at.reshape(-1)[0])
    high = count if behind else count - 1
    require(-count <= found <= high, f"position {found} is outside of a sequence of {count}")
    return found + count if found < 0 else found


@frozen
class SequenceOf(Op):
    """A sequence of tensors; or an optional that contains a tensor, a sequence, or nothing.

    - `xs`: the entries
    """

    def infer(self, *xs: TensorType) -> TensorType:
        return VARIANT

    def evaluate_in(self, context: Context, types: CallTypes, *xs: Array) -> Array:
        return boxed(Items(tuple(_item(x, context) for x in xs)))


@frozen
class SequenceInsert(Op):
    """A sequence with a tensor inserted.

    - `sequence`: VARIANT
    - `x`: the tensor
    - `at`: one integer, the position of the insertion; negative ones count from the end; if absent, `x` is appended
    """

    def infer(self, sequence: TensorType, x: TensorType, at: TensorType | None = None) -> TensorType:
        require_variant(sequence)
        if at is not None:
            sv.one_integer(at, "position")
        return VARIANT

    def evaluate_in(
        self, context: Context, types: CallTypes, sequence: Array, x: Array, at: Array | None = None
    ) -> Array:
        old = unboxed(sequence).entries
        context.spend(len(old))
        place = len(old) if at is None else _place(at, len(old), behind=True)
        return boxed(Items((*old[:place], _item(x, context), *old[place:])))


@frozen
class SequenceErase(Op):
    """A sequence with one of its tensors removed.

    - `sequence`: VARIANT
    - `at`: one integer, the position of the removed tensor; negative ones count from the end
    """

    def infer(self, sequence: TensorType, at: TensorType) -> TensorType:
        require_variant(sequence)
        sv.one_integer(at, "position")
        return VARIANT

    def evaluate_in(self, context: Context, types: CallTypes, sequence: Array, at: Array) -> Array:
        old = unboxed(sequence).entries
        place = _place(at, len(old), behind=False)
        return boxed(Items((*old[:place], *old[place + 1 :])))


@frozen
class SequenceAt(Op):
    """One tensor of a sequence, or the content of an optional; of type `dtype`, which is VARIANT for a sequence.

    - `sequence`: VARIANT
    - `at`: one integer; negative ones count from the end

    `shape` is the known part of the tensor's shape; None if its rank is unknown.
    """

    dtype: DType
    shape: Shape | None = None

    def infer(self, sequence: TensorType, at: TensorType) -> TensorType:
        require_variant(sequence)
        sv.one_integer(at, "position")
        if self.dtype is DType.VARIANT:
            return VARIANT
        return unranked(self.dtype) if self.shape is None else TensorType(self.dtype, self.shape)

    def evaluate_in(self, context: Context, types: CallTypes, sequence: Array, at: Array) -> Array:
        entries = unboxed(sequence).entries
        found = entries[_place(at, len(entries), behind=False)]
        if isinstance(found, Items):
            require(self.dtype is DType.VARIANT, f"the entry is a sequence, expected a tensor of {self.dtype.text}")
            return boxed(found)
        out = np.asarray(found)
        fits = self.dtype is not DType.VARIANT and out.dtype == self.dtype.numpy
        require(fits, f"the tensor is {out.dtype}, expected {self.dtype.text}")
        require(
            self.shape is None or shapes.compatible(out.shape, self.shape),
            f"the tensor has shape {list(out.shape)}, expected {shapes.text(self.shape or ())}",
        )
        context.hold(out.nbytes)
        return out.copy()


@frozen
class SequenceLength(Op):
    """The number of tensors in a sequence, or of contents of an optional (0 or 1); an int64 scalar.

    - `sequence`: VARIANT
    """

    def infer(self, sequence: TensorType) -> TensorType:
        require_variant(sequence)
        return TensorType(DType.INT64, ())

    def evaluate_in(self, context: Context, types: CallTypes, sequence: Array) -> Array:
        return np.array(len(unboxed(sequence).entries), np.int64)


@frozen
class SequenceJoin(Op):
    """The tensors of a sequence, concatenated along `axis`, or stacked along it if it is `new`.

    - `sequence`: VARIANT

    `dtype` and `shape` are those of each tensor, as far as they are known. An empty sequence gives a result without
    elements along a new axis, with 0 for each unknown dimension; concatenating an empty sequence is an error.
    """

    dtype: DType
    shape: Shape | None = None
    axis: int = 0
    new: bool = False

    def infer(self, sequence: TensorType) -> TensorType:
        require_variant(sequence)
        if self.shape is None:
            return unranked(self.dtype)
        dims = list(self.shape)
        place = shapes.normalize_axis(self.axis, len(dims) + self.new)
        if self.new:
            dims.insert(place, None)
        else:
            dims[place] = None
        return TensorType(self.dtype, tuple(dims))

    def evaluate_in(self, context: Context, types: CallTypes, sequence: Array) -> Array:
        items = [np.asarray(entry) for entry in unboxed(sequence).entries if not isinstance(entry, Items)]
        if not items:
            require(self.new and self.shape is not None, "the sequence is empty, expected at least one tensor")
            dims = [d or 0 for d in self.shape or ()]
            dims.insert(shapes.normalize_axis(self.axis, len(dims) + 1), 0)
            return np.zeros(dims, self.dtype.numpy)
        one = items[0]
        at = shapes.normalize_axis(self.axis, one.ndim + self.new)
        for item in items:
            same = item.dtype == self.dtype.numpy and item.ndim == one.ndim
            beside = same and all(
                a == b or (i == at and not self.new) for i, (a, b) in enumerate(zip(item.shape, one.shape, strict=True))
            )
            require(beside, f"a tensor has shape {list(item.shape)}, expected that of the first, {list(one.shape)}")
        context.hold(sum(item.nbytes for item in items))
        return np.stack(items, at) if self.new else np.concatenate(items, at)


@frozen
class SplitToSequence(Op):
    """Splits a tensor along `axis` into a sequence of parts.

    - `x`: any, of rank 1 or more
    - `split`: integers, the sizes of the parts; or a scalar, the size of all parts, where the last may be smaller. If
      absent, parts have size 1; `squeeze` then removes the axis from them.
    """

    axis: int = 0
    squeeze: bool = False

    def infer(self, x: TensorType, split: TensorType | None = None) -> TensorType:
        require(x.rank >= 1, "x is a scalar, expected rank 1 or more")
        shapes.normalize_axis(self.axis, x.rank)
        if split is not None:
            sv.integers(split, "split")
        return VARIANT

    def evaluate_in(self, context: Context, types: CallTypes, x: Array, split: Array | None = None) -> Array:
        at = shapes.normalize_axis(self.axis, x.ndim)
        total = x.shape[at]
        if split is None or split.ndim == 0:
            size = 1 if split is None else int(split)
            require(size >= 1, f"split is {size}, expected at least 1")
            sizes = [min(size, total - first) for first in range(0, total, size)]
        else:
            sizes = [int(s) for s in split]
            fits = all(s >= 0 for s in sizes) and sum(sizes) == total
            require(fits, f"split is {sizes}, expected sizes that add up to {total}")
        context.hold(x.nbytes + _ONE * len(sizes))
        context.spend(len(sizes))
        parts = np.split(x, np.cumsum(sizes)[:-1].tolist(), at) if sizes else []
        if self.squeeze and split is None:
            parts = [part.squeeze(at) for part in parts]
        return boxed(Items(tuple(part.copy() for part in parts)))
