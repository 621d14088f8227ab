"""Class probabilities from pairwise comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import CallTypes
from onert.ir.ops.reduction.coupling import NEAR, ROUNDS, CoupledProbabilities
from onert_llvm.command.command import Slot
from onert_llvm.kernels.reduction.coupling import PARTS, Couple
from onert_llvm.lower.command_builder import Lowering


def why_not(op: CoupledProbabilities, types: CallTypes) -> str | None:
    """Why this backend does not couple the probabilities; None if it does."""
    return "there are no elements" if 0 in types.input(0).shape else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Couple the probabilities row by row."""
    at, operation, _ = lowering.single(operations, CoupledProbabilities)
    (x,), (out,) = operation.used, operation.outputs
    rows, count = lowering.shape(out)
    (room,) = lowering.scratch(rows * count * PARTS * 8)
    slots: dict[str, Slot] = {"room": room.pointer, "count": count}
    work = 64 * rows * count * count
    lowering.run(at, Couple(ROUNDS, NEAR), rows, {"x": x}, {"out": out}, slots, work, (room,))
