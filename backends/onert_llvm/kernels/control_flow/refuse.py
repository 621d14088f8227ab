"""Reports that a forbidden place was reached; the caller then ends the run."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Val


@frozen
class Report(Value):
    """Writes 1 and 0 to `report`. One work tile."""

    slots = ("report",)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        task.report(k.index(0))
