"""Updates of parts of a tensor, and records of what an update is about to overwrite."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import OnStored, Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.types import TensorType

Region = tuple[slice, ...]


def require_part(x: TensorType, update: TensorType) -> None:
    """Raises RuleError unless the update has the type and rank of `x` and is not larger in any dimension."""
    require(x.dtype is update.dtype, f"update is {update.dtype.text}, expected {x.dtype.text}")
    fits = x.rank == update.rank and all(
        u is None or d is None or u <= d for d, u in zip(x.shape, update.shape, strict=True)
    )
    require(fits, f"update {shapes.text(update.shape)} does not fit into {shapes.text(x.shape)}")


def region(x: Sequence[int], update: Sequence[int], starts: Sequence[Array], clamps: bool) -> Region:
    """The region of a tensor of one shape that an update of another shape replaces: a slice for each dimension.

    `starts` contain an integer for each of the first dimensions; in the others the update starts at 0. A start that
    does not fit is moved if the update `clamps`, otherwise it raises RuleError.
    """
    found = [value for start in starts for value in sv.values(start)]
    found += [0] * (len(x) - len(found))
    for axis, (start, size, part) in enumerate(zip(found, x, update, strict=True)):
        if clamps:
            found[axis] = min(max(start, 0), size - part)
        else:
            require(0 <= start <= size - part, broken_rule(part, axis, size).format(start))
    return tuple(slice(start, start + part) for start, part in zip(found, update, strict=True))


def broken_rule(part: int, axis: int, size: int) -> str:
    """What errors say, with `{}` for the start, about a part that does not fit into a dimension."""
    if part == 1:
        return f"index {{}} is outside of {with_size(f'dimension {axis}', size)}"
    return f"{part} entries from {{}} on are not within {with_size(f'dimension {axis}', size)}"


def with_size(what: str, size: int) -> str:
    """What errors call something of a size, which they leave out if lengths determine it: one text serves all."""
    return what if is_symbolic(size) else f"{what} of {size}"


@frozen
class Update(OnStored):
    """Kinds whose only result is the first operand with parts of it replaced.

    Of the other operands, the one at index `update_index` holds the new parts (or what is combined with the old ones),
    and the rest are integers that give the positions of the parts. If nothing reads the first operand afterwards, the
    result may share its memory, and then only the parts are written.
    """

    overwrites: ClassVar[bool] = True
    update_index: ClassVar[int] = 1

    def put(self, x: Array, *operands: Array) -> None:
        """Replace the parts of `x` in place."""
        raise NotImplementedError

    @property
    def undo(self) -> Op:
        """The kind that restores overwritten parts, passed as the operand at `update_index`."""
        return self

    def recording(self) -> Op:
        """The kind that records the parts that are about to be replaced."""
        raise NotImplementedError

    @classmethod
    def places(cls, used: Sequence[int]) -> tuple[int, ...]:
        """The operands of an operation that give the positions of the parts."""
        return (*used[1 : cls.update_index], *used[cls.update_index + 1 :])

    @classmethod
    def with_places(cls, used: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
        """The operands of an operation with the positions of the parts replaced."""
        return (used[0], *places[: cls.update_index - 1], used[cls.update_index], *places[cls.update_index - 1 :])


@frozen
class PartUpdate(Update):
    """Kinds whose only result is the first operand with a part of it replaced by the second.

    The remaining operands are integers that give the start of the part; see `region`.
    """

    clamps: ClassVar[bool] = True

    def put(self, x: Array, *operands: Array) -> None:
        update, *starts = operands
        x[region(x.shape, update.shape, starts, self.clamps)] = update

    def recording(self) -> Op:
        return Overwritten(self.clamps)

    def evaluate(self, x: Array, update: Array, *starts: Array) -> Array:
        out = x.copy()
        self.put(out, update, *starts)
        return out


@frozen
class Record(OnStored):
    """Kinds that record what an in-place update is about to overwrite, and where; the compiler puts one before it.

    Results: the parts, all operands that give their positions, and one boolean, which is true.
    """

    outlasts: ClassVar[bool] = True

    def put_back(self, x: Array, parts: Array, *places: Array) -> None:
        """Undo the update in place. Positions that the update rejects are left unchanged."""
        raise NotImplementedError


@frozen
class Overwritten(Record):
    """Records what is needed to undo a part update; the compiler puts it before one that updates in place.

    - `x`, `update`, `starts`: the update's operands; only the shape of `update` is used
    - `clamps`: whether the update moves a start that does not fit

    Results: the part of `x` that the update is about to replace, the starts, and one boolean, which is true.
    """

    clamps: bool = True

    def infer(self, x: TensorType, update: TensorType, *starts: TensorType) -> tuple[TensorType, ...]:
        require_part(x, update)
        for start in starts:
            sv.require_index_type(start, "a start index")
        count = sum(shapes.num_elements(start.shape) or 0 for start in starts)
        require(count <= x.rank, f"there are {count} start indices, expected at most {x.rank}")
        return x.result(update.shape), *(s.result(s.shape) for s in starts), TensorType(DType.BOOL, ())

    def evaluate(self, x: Array, update: Array, *starts: Array) -> tuple[Array, ...]:
        part = x[region(x.shape, update.shape, starts, self.clamps)]
        return part.copy(), *(start.copy() for start in starts), np.array(True)

    def put_back(self, x: Array, parts: Array, *places: Array) -> None:
        with suppress(RuleError):  # raised if the update itself failed: then it has written nothing
            x[region(x.shape, parts.shape, places, self.clamps)] = parts
