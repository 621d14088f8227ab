"""How the units of a recurrent layer are divided among threads."""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen

from onert.ir.symbolic.trace import hint
from onert.ir.value import Value
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.data_movement.row_copy import CopyRows
from onert_llvm.lower.command_builder import Lowering

_LEAST = 30_000
"""The fewest floating-point operations of a part in a step for which threads gain more than their meeting takes."""


@frozen
class Division(Value):
    """The number of parts, and the units of each, in whole registers. A single part is an undivided layer."""

    parts: int
    padded: int

    @property
    def divides(self) -> bool:
        return self.parts > 1

    @property
    def whole(self) -> int:
        """The units of all parts."""
        return self.parts * self.padded


def undivided(units: int, lowering: Lowering) -> Division:
    """All units in one part."""
    return Division(1, lowering.isa.whole(units))


def divided(units: int, flops: int, lowering: Lowering) -> Division:
    """A part for each thread, or for fewer if a step with so many floating-point operations is short."""
    lanes, whole = lowering.isa.f32, lowering.isa.whole(units)
    most = min(lowering.threads, whole // lanes, hint(flops) // _LEAST)
    if most < 2:
        return undivided(units, lowering)
    padded = lowering.isa.whole(-(-whole // most))
    return Division(-(-whole // padded), padded)


def clear(lowering: Lowering, at: int, progress: Access) -> None:
    """Emit a command that clears the progress of the parts."""
    zeros = lowering.constant(np.zeros(progress.nbytes, np.uint8))
    slots: dict[str, Slot] = {"source": zeros, "target": progress.pointer, "width": progress.nbytes}
    lowering.emit(at, CopyRows(), slots | {"source_step": 0, "target_step": 0}, 1, (), (), 0, (progress,))


def copy_rows(
    lowering: Lowering, at: int, source: tuple[Pointer, int, Access | int], operand: int, rows: int, nbytes: int
) -> None:
    """Emit a command that copies rows of `nbytes` to a result of the layer; the source is a pointer, the distance of
    its rows in bytes, and the memory or operand that it reads."""
    pointer, step, read = source
    ends: tuple[tuple[int, ...], tuple[Access, ...]] = ((), (read,)) if isinstance(read, Access) else ((read,), ())
    slots: dict[str, Slot] = {"source": pointer, "target": lowering.operand(operand), "width": nbytes}
    slots |= {"source_step": step, "target_step": nbytes}
    lowering.emit(at, CopyRows(), slots, rows, ends[0], (operand,), 0, ends[1])


def after(pointer: Pointer, nbytes: int) -> Pointer:
    """The pointer moved by this many bytes."""
    return evolve(pointer, offset=pointer.offset + nbytes)
