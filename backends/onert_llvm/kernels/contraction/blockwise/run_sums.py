"""Sums of runs of bytes: the excess in products whose weights are stored as positive numbers."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, Kernel, Val


@frozen
class RunSums(Value):
    """The sum of each run of `run` signed bytes, a multiple of 16, times `times`, in 32 bits. A work tile is a run."""

    slots = ("x", "out", "run", "times")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, run = k.isa.f32, task.i64("run")
        x, out = task.view("x", I8, run, 1), task.view("out", I32, 1)
        with k.loop(end, begin) as tile:
            total = k.var(k.zeros(I32, lanes))
            with k.loop(run, step=lanes, nonempty=True) as at:
                total.set(total.get() + x[tile, at].load(lanes).cast(I32))
            out[tile].store(total.get().over_lanes(Val.__add__) * task.i64("times").cast(I32))
