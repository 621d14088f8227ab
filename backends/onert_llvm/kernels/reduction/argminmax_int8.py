"""Where the greatest or least of bytes is."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, I64, Kernel, Val


@frozen
class ExtremeInt8(Value):
    """`out[block, column]`: the row of the greatest (least) of `x[block, :, column]`, the first of equals.

    Results have 64 bits where `wide`, else 32. Work tile t is block t // chunks and its columns from (t % chunks)
    registers on.
    """

    greatest: bool
    signed: bool = True
    wide: bool = True

    slots = ("x", "rows", "width", "chunks", "out")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, rows = k.isa.f32, task.i64("width"), task.i64("rows")
        element = I64 if self.wide else I32
        with k.loop(end, begin) as t:
            block, column = t // task.i64("chunks"), (t % task.i64("chunks")) * lanes
            x = task.view("x", I8, rows * width, width, 1)[block]
            mask = k.mask(lanes, width - column)
            best = k.var(x[0, column].load(lanes, mask).cast(I32, self.signed))
            where = k.var(k.zeros(I32, lanes))
            with k.loop(rows, 1) as row:
                seen = x[row, column].load(lanes, mask).cast(I32, self.signed)
                better = seen > best.get() if self.greatest else seen < best.get()
                best.set(better.select(seen, best.get()))
                where.set(better.select(row.cast(I32).splat(lanes), where.get()))
            out = task.view("out", element, width, 1)[block, column]
            out.store(where.get().cast(element), mask)
