"""Lowers refusals to a command that reports an error."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import CallTypes
from onert.ir.ops.control_flow.refuse import Refuse
from onert_llvm.kernels.control_flow.refuse import Report
from onert_llvm.lower.command_builder import Lowering


def why_not(op: Refuse, types: CallTypes) -> str | None:
    """Why this backend does not lower the refusal; None if it does."""
    if any(t.dtype.is_handle for t in types.outputs):
        return "a tensor holds no plain elements"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """The sentence becomes a check that always fails; the results are never read."""
    at, operation, op = lowering.single(operations, Refuse)
    rule = op.sentence.replace("{", "{{").replace("}", "}}")
    lowering.emit(at, Report(), {"report": lowering.check(at, rule)}, 1, (), operation.outputs)
