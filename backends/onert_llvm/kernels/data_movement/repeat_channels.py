"""Bytes side by side several times: the channels that a depthwise convolution with a multiplier reads."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, Kernel, Val


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
