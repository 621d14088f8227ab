"""Copies of rows of bytes, for concatenation, splitting and reshaping without shared memory; and repeated bytes."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, Kernel, Val


@frozen
class CopyRows(Value):
    """Rows of `width` bytes, `source_step` and `target_step` bytes apart; work tiles are rows."""

    slots = ("source", "target", "width", "source_step", "target_step")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.vector_bytes, task.i64("width")
        source, target = (task.view(n, I8, task.i64(f"{n}_step"), 1) for n in ("source", "target"))
        with k.loop(end, begin) as row:
            for i, count in k.pieces(width, lanes):
                target[row, i].store(source[row, i].load(count))


@frozen
class RepeatBytes(Value):
    """`out[i * times + j] = x[i]` for j below `times`; work tiles are runs of `width` bytes of x."""

    slots = ("x", "out", "width", "times")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, times = task.i64("width"), task.i64("times")
        x, out = task.view("x", I8, 1), task.view("out", I8, times, 1)
        with k.loop(end * width, begin * width) as i:
            value = x[i].load()
            with k.loop(times, nonempty=True) as j:
                out[i, j].store(value)
