"""Products of bytes on targets that multiply 16-bit pairs: activations are widened once, not in the inner loop.

A thread copies the rows that its next work tiles share to its own memory, window by window, as 16-bit numbers. There
every panel reads them; the inner loop broadcasts a pair by its load, and only weights are widened on the way.
"""

from __future__ import annotations

from functools import partial

from attrs import evolve, frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I16, Kernel, Val, View

from .byte_terms import ByteTerms
from .contraction import Contraction, multiply
from .operands import straight
from .register_tile import Block, Body, Rows, each_group

_ROOM = ("rooms", "room", "room_row", "room_run", "terms")


@frozen
class WidenedProduct(Contraction):
    """`Contraction` of bytes whose rows are first widened to 16 bits in a thread's own memory, where `terms` read them.

    Its slots: `rooms` and `room`, that memory and its bytes per thread; `room_row` and `room_run`, the elements from
    one row to the next and from one run of terms to the next, both even; `terms`, the elements of a row.
    """

    terms: ByteTerms

    @property
    def name(self) -> str:
        return f"wide_{self.operand.name}_int8"

    @property
    def slots(self) -> tuple[str, ...]:
        return (*super().slots, *_ROOM)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        seen = self.ending.observer(k)
        own = k.view(task.own("rooms", "room"), I16, task.i64("room_row"), 1)

        def body(wide: View, block: Block) -> None:
            rows = block.rows(wide)
            at = partial(_at, rows, task.i64("room_run"))
            reading = evolve(straight(rows, task.i64("terms")), at=at)
            multiply(k, task, self.tile, block, self.terms, self.ending, reading, seen)

        def rows(t: Val, first: Val, last: Val) -> Body:
            lowest = first.min(last - self.tile.mr)
            wide = own.after((0 - lowest) * task.i64("room_row"))
            with k.when(t.eq(begin) | (t % task.i64("panels")).eq(0)):
                self._widen(k, task, lowest, last, wide)
            return partial(body, wide)

        each_group(k, task, begin, end, self.tile, rows)
        if seen is not None:
            seen.write(k, task, begin, end)

    def _widen(self, k: Kernel, task: Task, first: Val, last: Val, wide: View) -> None:
        """Widen all runs of the rows from `first` up to `last`."""
        with k.loop(last, first, nonempty=True) as row:
            reading = self.operand.read(k, task, Rows(k, row, 1, 1), ByteTerms(0, self.terms.signed))
            with reading.each() as run:
                target = wide[row] if run.tap is None else wide[row].after(run.tap * task.i64("room_run"))
                _copy(k, run.rows[0], target, run.depth, self.terms.signed)


def _at(rows: list[View], run: Val, tap: Val) -> list[View]:
    """The rows from a tap on."""
    return [row.after(tap * run) for row in rows]


def _copy(k: Kernel, source: View, target: View, count: Val, signed: bool) -> None:
    """Widen `count` bytes, whole registers at a time; the last register may overlap the one before."""
    lanes = k.isa.f32 * 2

    def some(at: Val, size: int) -> None:
        target[at].store(source[at].load(size).cast(I16, signed=signed))

    if count.constant is None:
        for at, size in k.overlapping(count, lanes):
            some(at, size)
        return
    done, size = 0, lanes
    while done < count.constant:
        while size > count.constant - done:
            size //= 2
        some(k.index(done), size)
        done += size
