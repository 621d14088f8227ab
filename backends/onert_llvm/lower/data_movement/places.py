"""Where elements are true."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import CallTypes
from onert.ir.ops.data_movement.fill import CountedWhere
from onert_llvm.kernels.data_movement.places import Places
from onert_llvm.lower.command_builder import Lowering


def why_not(op: CountedWhere, types: CallTypes) -> str | None:
    """Why this backend does not find them; None if it does."""
    return "there are no elements" if 0 in types.input(0).shape else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """One element after the other."""
    at, operation, _ = lowering.single(operations, CountedWhere)
    (condition,) = operation.used
    places, count = operation.outputs
    shape = lowering.shape(condition)
    slots = {"size": lowering.type(condition).nbytes, **{f"d{i}": d for i, d in enumerate(shape)}}
    lowering.run(at, Places(len(shape)), 1, {"condition": condition}, {"places": places, "count": count}, slots)
