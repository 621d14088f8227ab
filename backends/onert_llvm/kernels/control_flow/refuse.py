"""What must not be come to: it is reported, and the caller ends the run."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Val


@frozen
class Report(Value):
    """1 and 0 go to `report`. One work tile."""

    slots = ("report",)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        task.report(k.index(0))
