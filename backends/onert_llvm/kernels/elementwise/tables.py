"""Functions of one quantised element as a table of all their results."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I64, Kernel, Val, View
from onert_llvm.kernels.arithmetic.byte_table import loaded, looked_up
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.target.isa import Lookup


@frozen
class MapBytes(Value):
    """`out = table[x]`: any function of one quantised element. Work tiles are rows of `width`, `x_step` and `out_step`
    bytes apart; the table is indexed by unsigned byte (`byte_table.stored_table`).
    """

    slots = ("out", "out_step", "x", "x_step", "width", "table")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        if k.isa.lookup is Lookup.NONE:
            self._one_by_one(k, task, begin, end)
            return
        lanes, width = k.isa.vector_bytes, task.i64("width")
        whole = width - width % lanes
        registers = loaded(k, task.view("table", I8, 1))
        with k.loop(end, begin) as r:
            x, out = (task.view(n, I8, task.i64(f"{n}_step"), 1)[r] for n in ("x", "out"))
            with k.loop(whole, step=lanes) as at:
                out[at].store(looked_up(k, registers, x[at].load(lanes)))
            with k.when(whole < width):
                if k.isa.free_masks:
                    rest = k.mask(lanes, width - whole)
                    out[whole].store(looked_up(k, registers, x[whole].load(lanes, rest)), rest)
                else:
                    _through(k, x.after(whole), out.after(whole), width - whole, lambda x: looked_up(k, registers, x))

    def _one_by_one(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        table, width = task.view("table", I8, 1), task.i64("width")
        paired = width - width % 4
        with k.loop(end, begin) as r:
            x, out = (task.view(n, I8, task.i64(f"{n}_step"), 1)[r] for n in ("x", "out"))
            with k.loop(paired, step=4) as at:
                for i in range(4):
                    out[at + i].store(table[_index(x[at + i])].load())
            with k.loop(width, paired) as at:
                out[at].store(table[_index(x[at])].load())


def _through(k: Kernel, x: View, out: View, count: Val, function: Callable[[Val], Val]) -> None:
    """Apply a register function to fewer bytes, through scratch memory, so that none beyond are touched."""
    lanes = k.isa.vector_bytes
    room = k.view(k.scratch(I8, lanes), I8, 1)
    with k.loop(count, nonempty=True) as at:
        room[at].store(x[at].load())
    room.store(function(room.load(lanes)))
    with k.loop(count, nonempty=True) as at:
        out[at].store(room[at].load())


@frozen
class ShiftBytes(Value):
    """`out = x + by`, wrapping: converts bytes between signed and unsigned zero points. Work tiles as in `MapBytes`."""

    slots = ("out", "out_step", "x", "x_step", "width", "by")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.vector_bytes, task.i64("width")
        by = task.i64("by").cast(I8)
        with k.loop(end, begin) as r:
            x, out = (task.view(n, I8, task.i64(f"{n}_step"), 1)[r] for n in ("x", "out"))
            for at, count in k.pieces(width, lanes):
                out[at].store(x[at].load(count) + by)


@frozen
class MapShorts(Value):
    """`out = table[x]`: any function from numbers of one or two bytes to any kind.

    The table is indexed by the unsigned value. Work tiles are rows of `width`.
    """

    source: Kind
    target: Kind

    slots = ("x", "out", "width", "table")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        table, width = task.view("table", self.target.memory, 1), task.i64("width")
        ends = (("x", self.source), ("out", self.target))
        source, target = (task.view(name, kind.memory, width, 1) for name, kind in ends)
        paired = width - width % 4
        with k.loop(end, begin) as row:
            with k.loop(paired, step=4) as at:
                for i in range(4):
                    target[row, at + i].store(table[_index(source[row, at + i])].load())
            with k.loop(width, paired) as at:
                target[row, at].store(table[_index(source[row, at])].load())


def _index(place: View) -> Val:
    return place.load().cast(I64, signed=False)
