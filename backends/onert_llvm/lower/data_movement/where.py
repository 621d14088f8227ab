"""The places of true elements, and integers checked against a limit that the run computes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert.ir import CallTypes, DType
from onert.ir.ops.data_movement.fill import BEYOND, CountedWhere, Within
from onert_llvm.command.command import Slot
from onert_llvm.kernels.data_movement.where import Places
from onert_llvm.kernels.data_movement.where import Within as Checked
from onert_llvm.lower.command_builder import Lowering


def why_not(op: CountedWhere | Within, types: CallTypes) -> str | None:
    """Why this backend does not find or check these elements; None if it does."""
    return "there are no elements" if 0 in types.input(0).shape else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Find the places of true elements, one element after another."""
    at, operation, _ = lowering.single(operations, CountedWhere)
    (condition,) = operation.used
    places, count = operation.outputs
    shape = lowering.shape(condition)
    slots = {"size": lowering.type(condition).nbytes, **{f"d{i}": d for i, d in enumerate(shape)}}
    lowering.run(at, Places(len(shape)), 1, {"condition": condition}, {"places": places, "count": count}, slots)


def lower_within(lowering: Lowering, operations: Sequence[int]) -> None:
    """Check integers, one after another."""
    at, operation, op = lowering.single(operations, Within)
    (x, _, *count), (result,) = operation.used, operation.outputs
    shape = lowering.shape(x)
    slots: dict[str, Slot] = {"report": lowering.check(at, f"{{}} {BEYOND}"), "more": int(op.inclusive)}
    if count:
        slots["width"] = math.prod(shape[1:])
    algorithm = Checked(lowering.type(x).dtype is DType.INT64, bool(count))
    reads = dict(zip(("x", "limit", "count"), operation.used, strict=False))
    lowering.run(at, algorithm, math.prod(shape), reads, {"out": result}, slots)
