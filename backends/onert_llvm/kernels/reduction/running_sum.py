"""Running sums along an axis."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Val, vec
from onert_llvm.kernels.arithmetic.expression import Kind


@frozen
class RunningSum(Value):
    """`out[block, row, column]` = the sum of `x[block, r, column]` for the rows r up to this one, one after the other.

    `exclusive` leaves the row itself out, `reverse` begins at the last one. There are `rows` of `width` columns; work
    tile t is block t // `pieces`, and `piece` of its columns.
    """

    kind: Kind
    exclusive: bool
    reverse: bool

    slots = ("x", "out", "rows", "width", "piece", "pieces")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        with k.loop(end, begin) as tile:
            block, first = tile // task.i64("pieces"), (tile % task.i64("pieces")) * task.i64("piece")
            last = (first + task.i64("piece")).min(width)
            whole = last - (last - first) % lanes
            with k.loop(whole, first, step=lanes) as column:
                self._columns(k, task, block, column, lanes)
            with k.loop(last, whole) as column:
                self._columns(k, task, block, column, 1)

    def _columns(self, k: Kernel, task: Task, block: Val, column: Val, lanes: int) -> None:
        memory, rows, width = self.kind.memory, task.i64("rows"), task.i64("width")
        x, out = (k.view(task.view(n, memory, rows * width)[block].address, memory, width, 1) for n in ("x", "out"))
        total = k.var(k.const(vec(memory, lanes), 0))
        with k.loop(rows) as row:
            at = rows - 1 - row if self.reverse else row
            before = total.get()
            total.set(before + x[at, column].load(lanes))
            out[at, column].store(before if self.exclusive else total.get())
