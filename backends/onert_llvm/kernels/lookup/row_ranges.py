"""Ranges of rows, each reduced to one row."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, I64, Kernel, Val, View
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.reduction.fold import Fold

TOGETHER = 4
"""Registers of a row whose totals are kept at the same time."""


@frozen
class RowRanges(Value):
    """`out[i, j]` folds `x[r, j]` for r from `begin[i]` to `end[i]`, rows of `width` floats; their mean is the sum
    divided by the number of rows.

    Bounds are read once; negative ones count from the end, and all are cut to the `rows` of x. `wide`: they are 64-bit
    integers. Work tiles are ranges.
    """

    fold: Fold
    mean: bool
    wide: bool

    slots = ("x", "begin", "end", "out", "rows", "width")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        rows, width, lanes = task.i64("rows"), task.i64("width"), k.isa.f32
        with k.loop(end, begin) as i:
            first, last = (self._bound(task, name, i, rows) for name in ("begin", "end"))
            count = (last - first).max(0).cast(F32)
            x, out = task.view("x", F32, width, 1), task.view("out", F32, width, 1)[i]
            together = width - width % (TOGETHER * lanes)
            with k.loop(together, step=TOGETHER * lanes) as at:
                totals = [k.var(k.f32(self.fold.start(Kind.F32)).splat(lanes)) for _ in range(TOGETHER)]
                with k.loop(last, first) as row:
                    for register, total in enumerate(totals):
                        element = x[row, at + register * lanes].load(lanes)
                        total.set(self.fold.join(total.get(), element))
                for register, total in enumerate(totals):
                    self._store(out[at + register * lanes], total.get(), count)
            for at, mask in k.registers(width, together):
                total = k.var(k.f32(self.fold.start(Kind.F32)).splat(lanes))
                with k.loop(last, first) as row:
                    total.set(self.fold.join(total.get(), x[row, at].load(lanes, mask)))
                self._store(out[at], total.get(), count, mask)

    def _bound(self, task: Task, name: str, i: Val, rows: Val) -> Val:
        """A bound of range `i`, from 0 to `rows`."""
        given = task.view(name, I64 if self.wide else I32, 1)[i].load_once().cast(I64)
        return (given < 0).select(given + rows, given).clamp(0, rows)

    def _store(self, out: View, total: Val, count: Val, mask: Val | None = None) -> None:
        out.store(total / count.splat(total.lanes) if self.mean else total, mask)
