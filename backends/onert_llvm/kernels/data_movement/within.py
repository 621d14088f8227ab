"""Integers that are checked against a number that the run gives."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I32, I64, Kernel, Val


@frozen
class Within(Value):
    """`out[i] = x[i]` if that is at least 0 and below `limit[0]` + `more`; else it is written to `report`, 1 before it.

    With `counted` that is so for the first `count[0]` entries of `width` integers each. Whatever is not copied is 0.
    `wide` says that x has 64-bit integers. Work tiles are single integers.
    """

    wide: bool
    counted: bool

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x", "limit", "out", "report", "more", *(("count", "width") if self.counted else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        element = I64 if self.wide else I32
        x, out, report = task.view("x", element, 1), task.view("out", element, 1), task.view("report", I64, 1)
        limit = task.view("limit", I64, 1)[0].load_once() + task.i64("more")
        last = end
        if self.counted:
            last = (task.view("count", I64, 1)[0].load_once() * task.i64("width")).clamp(0, end)
        with k.loop(last, begin) as i:
            found = x[i].load_once()
            at = found.cast(I64)
            with k.either((at >= 0) & (at < limit)) as (inside, outside):
                with inside:
                    out[i].store(found)
                with outside:
                    out[i].store(found - found)
                    report[1].store(at)
                    report[0].store(k.index(1))
        if self.counted:
            with k.loop(end, last.max(begin)) as i:
                out[i].store(k.index(0).cast(element))
