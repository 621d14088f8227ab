"""Integers that are checked against a number that the run gives."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert.ir import CallTypes, DType
from onert.ir.ops.data_movement.fill import BEYOND, Within
from onert_llvm.command.command import Slot
from onert_llvm.kernels.data_movement.within import Within as Checked
from onert_llvm.lower.command_builder import Lowering


def why_not(op: Within, types: CallTypes) -> str | None:
    """Why this backend does not check them; None if it does."""
    return "there are no elements" if 0 in types.input(0).shape else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """One integer after the other."""
    at, operation, op = lowering.single(operations, Within)
    (x, _, *count), (result,) = operation.used, operation.outputs
    shape = lowering.shape(x)
    slots: dict[str, Slot] = {"report": lowering.check(at, f"{{}} {BEYOND}"), "more": int(op.inclusive)}
    if count:
        slots["width"] = math.prod(shape[1:])
    algorithm = Checked(lowering.type(x).dtype is DType.INT64, bool(count))
    reads = dict(zip(("x", "limit", "count"), operation.used, strict=False))
    lowering.run(at, algorithm, math.prod(shape), reads, {"out": result}, slots)
