"""Updates of parts of a tensor, and what an update is about to overwrite."""

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
from onert.ir.types import TensorType

Region = tuple[slice, ...]


def require_part(x: TensorType, update: TensorType) -> None:
    """RuleError unless an update is of x's type and rank, and along no dimension larger."""
    require(x.dtype is update.dtype, f"update is {update.dtype.text}, expected {x.dtype.text}")
    fits = x.rank == update.rank and all(
        u is None or d is None or u <= d for d, u in zip(x.shape, update.shape, strict=True)
    )
    require(fits, f"update {shapes.text(update.shape)} does not fit into {shapes.text(x.shape)}")


def region(x: Sequence[int], update: Sequence[int], starts: Sequence[Array], clamps: bool) -> Region:
    """Where an update of one shape lies in a tensor of another one: a slice for each dimension.

    `starts` hold an integer for each of the first dimensions, in the others the update begins at 0. One that does not
    fit is moved where the update `clamps`, else RuleError.
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
    """What is said, with `{}` for the start, where a part does not fit into a dimension."""
    if part == 1:
        return f"index {{}} is outside of dimension {axis} of {size}"
    return f"{part} entries from {{}} on are not within dimension {axis} of {size}"


@frozen
class Update(OnStored):
    """Kinds whose only result is the first operand with parts of it replaced.

    Of the operands behind that, the one at `given` is what the parts become or are combined with, the others are
    integers that say where the parts lie. If nothing reads the first operand afterwards, the result may have its
    memory: then nothing but the parts is written.
    """

    overwrites: ClassVar[bool] = True
    given: ClassVar[int] = 1

    def put(self, x: Array, *operands: Array) -> None:
        """Replace the parts of `x` where it lies."""
        raise NotImplementedError

    @property
    def restoring(self) -> Op:
        """The kind that puts back what was overwritten, given in the place of the operand at `given`."""
        return self

    def keeping(self) -> Op:
        """What keeps the parts that are about to be replaced."""
        raise NotImplementedError

    @classmethod
    def places(cls, used: Sequence[int]) -> tuple[int, ...]:
        """Of an operation's operands those that say where the parts lie."""
        return (*used[1 : cls.given], *used[cls.given + 1 :])

    @classmethod
    def with_places(cls, used: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
        """An operation's operands with others that say where the parts lie."""
        return (used[0], *places[: cls.given - 1], used[cls.given], *places[cls.given - 1 :])


@frozen
class PartUpdate(Update):
    """Kinds whose only result is the first operand with a part of it replaced by the second.

    The operands behind these are integers that say where the part begins, see `region`.
    """

    clamps: ClassVar[bool] = True

    def put(self, x: Array, *operands: Array) -> None:
        update, *starts = operands
        x[region(x.shape, update.shape, starts, self.clamps)] = update

    def keeping(self) -> Op:
        return Overwritten(self.clamps)

    def evaluate(self, x: Array, update: Array, *starts: Array) -> Array:
        out = x.copy()
        self.put(out, update, *starts)
        return out


@frozen
class Record(OnStored):
    """Kinds that keep what an update is about to overwrite, and where: the compiler puts one before an update in place.

    Gives the parts, all operands that say where they lie, and one boolean, which is true.
    """

    outlasts: ClassVar[bool] = True

    def put_back(self, x: Array, parts: Array, *places: Array) -> None:
        """Undo the update where `x` lies. Places that the update refuses are left alone."""
        raise NotImplementedError


@frozen
class Overwritten(Record):
    """What undoing a part update takes; the compiler puts it before an update in place.

    - `x`, `update`, `starts`: the update's operands; of `update` nothing is read
    - `clamps`: whether the update moves a start that does not fit

    Gives the part of `x` that the update is about to replace, the starts, and one boolean, which is true.
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
        with suppress(RuleError):  # of the update that failed itself: it has written nothing
            x[region(x.shape, parts.shape, places, self.clamps)] = parts
