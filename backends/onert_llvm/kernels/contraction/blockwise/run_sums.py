"""Sums of runs of bytes, which products with weights that are stored as positive numbers have too much of."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, Kernel, Val


@frozen
class RunSums(Value):
    """The sum of each run of `run` signed bytes, `times` as much, in 32 bits. Tiles are runs."""

    slots = ("x", "out", "run", "times")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, run = k.isa.f32, task.i64("run")
        x, out = task.view("x", I8, run, 1), task.view("out", I32, 1)
        with k.loop(end, begin) as tile:
            total, single = k.var(k.zeros(I32, lanes)), k.var(k.const(I32, 0))
            whole = run - run % lanes
            with k.loop(whole, step=lanes) as at:
                total.set(total.get() + x[tile, at].load(lanes).cast(I32))
            with k.loop(run, whole) as at:
                single.set(single.get() + x[tile, at].load().cast(I32))
            found = single.get() + total.get().over_lanes(Val.__add__)
            out[tile].store(found * task.i64("times").cast(I32))
