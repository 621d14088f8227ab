"""Matrix products of float64, or of integers that wrap."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Val, View, vec
from onert_llvm.irbuilder.types import size
from onert_llvm.kernels.arithmetic.expression import Kind

ROWS = 4
"""Rows of the result per work tile: each element of the right-hand side is read once for all of them."""
_REGISTERS = 2
"""Adjacent registers of columns: with four rows that is eight sums, which covers the latency of multiplications."""


@frozen
class MatMulWide(Value):
    """`c[row, column]` = the sum of `a[row, d] · b[d, column]` over the depth d.

    Elements of a row of `a` are `a_step` apart, its rows `a_row`; the rows of `b` and `c` are contiguous. Work tile t
    is batch t // `row_tiles`, and `ROWS` rows of it; rows beyond the last repeat it. `offsets` are where the matrices
    of a batch begin in `a` and `b`.
    """

    kind: Kind

    slots = ("a", "b", "c", "offsets", "row_tiles", "m", "n", "depth", "a_row", "a_step")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        memory, n, m = self.kind.memory, task.i64("n"), task.i64("m")
        lanes = k.isa.lanes(8 * size(memory))
        wide = lanes * _REGISTERS
        with k.loop(end, begin) as tile:
            batch, first = tile // task.i64("row_tiles"), (tile % task.i64("row_tiles")) * ROWS
            offsets = task.view("offsets", k.index(0).type, 2, 1)[batch]
            a = k.view(
                task.view("a", memory, 1)[offsets[0].load()].address, memory, task.i64("a_row"), task.i64("a_step")
            )
            b = k.view(task.view("b", memory, 1)[offsets[1].load()].address, memory, n, 1)
            c = k.view(task.view("c", memory, m * n)[batch].address, memory, n, 1)
            rows = [(first + r).min(m - 1) for r in range(ROWS)]
            left, right, out = [a[row] for row in rows], b, [c[row] for row in rows]
            whole, most = n - n % wide, n - n % lanes
            with k.loop(whole, step=wide) as column:
                self._columns(k, task, left, right, out, column, lanes, _REGISTERS)
            with k.loop(most, whole, step=lanes) as column:
                self._columns(k, task, left, right, out, column, lanes, 1)
            with k.loop(n, most) as column:
                self._columns(k, task, left, right, out, column, 1, 1)

    def _columns(
        self,
        k: Kernel,
        task: Task,
        left: Sequence[View],
        right: View,
        out: Sequence[View],
        column: Val,
        lanes: int,
        registers: int,
    ) -> None:
        """Compute all rows of the tile in `registers` times `lanes` columns."""
        zero = k.const(vec(self.kind.memory, lanes), 0)
        sums = [[k.var(zero) for _ in range(registers)] for _ in left]
        with k.loop(task.i64("depth")) as d:
            row = right[d]
            loaded = [row[column + at * lanes].load(lanes) for at in range(registers)]
            for a, totals in zip(left, sums, strict=True):
                element = a[d].load()
                x = element.splat(lanes) if lanes > 1 else element
                for total, y in zip(totals, loaded, strict=True):
                    total.set(k.fma(x, y, total.get()) if self.kind.is_float else total.get() + x * y)
        for c, totals in zip(out, sums, strict=True):
            for at, total in enumerate(totals):
                c[column + at * lanes].store(total.get())
