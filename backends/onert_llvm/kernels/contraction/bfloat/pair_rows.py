"""Interleaves adjacent rows of floats, rounded to bfloat16, into rows of pairs."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val, View

from .terms import rounded


@frozen
class PairRows(Value):
    """Rows 2i and 2i + 1 of `n` floats each as row i of pairs, `pitch` pairs per row. A work tile is a row of pairs."""

    slots = ("x", "out", "n", "pitch")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, n = k.isa.f32, task.i64("n")
        source, target = task.view("x", F32, n, 1), task.view("out", I32, task.i64("pitch"), 1)
        whole = n - n % lanes
        with k.loop(end, begin) as i:
            rows, out = [source[i * 2 + number] for number in range(2)], target[i]
            with k.loop(whole, step=lanes) as at:
                out[at].store(_pairs(k, rows, at, None))
            with k.when(whole < n):
                mask = k.mask(lanes, n - whole)
                out[whole].store(_pairs(k, rows, whole, mask), mask)


def _pairs(k: Kernel, rows: list[View], at: Val, mask: Val | None) -> Val:
    first, second = (rounded(k, row[at].load(k.isa.f32, mask)).cast(I32, signed=False) for row in rows)
    return first | second << 16
