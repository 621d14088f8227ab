"""Rounds rows of floats to 16 bits, in pairs."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I16, Kernel, Val

from .terms import rounded


@frozen
class RoundRows(Value):
    """Rows of `size` floats, `pitch` elements apart, as rows of pairs of bfloat16, or float16 with `half`; odd rows are
    padded with 0.

    Tiles are groups of `group` of the `rows`. Elements end at `total`, which may be inside the last row.
    """

    half: bool = False

    slots = ("x", "out", "rows", "size", "pitch", "total", "group")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, size, pitch = k.isa.f32, task.i64("size"), task.i64("pitch")
        source, pairs = task.view("x", F32, pitch, 1), (size + 1) // 2
        target = task.view("out", I16, pairs * 2, 1)
        first, last = begin * task.i64("group"), (end * task.i64("group")).min(task.i64("rows"))
        with k.loop(last, first) as i:
            row, out = source[i], target[i]
            count = (task.i64("total") - i * pitch).min(size)
            whole = count - count % lanes
            with k.loop(whole, step=lanes) as at:
                out[at].store(rounded(k, row[at].load(lanes), self.half))
            with k.when(whole < count):
                x = row[whole].load(lanes, k.mask(lanes, count - whole))
                out[whole].store(rounded(k, x, self.half), k.mask(lanes, (count - whole + 1) // 2 * 2))
