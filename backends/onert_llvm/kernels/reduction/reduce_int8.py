"""Sums, means, greatest and least of bytes, along rows or down columns."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, Kernel, Val, Var, View
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, as_byte, bounded, load_lanes, stored
from onert_llvm.kernels.contraction.byte_terms import add_row_sums
from onert_llvm.kernels.contraction.int8_microkernel import offset

NARROW = Requantize()


class Gather(Enum):
    """How bytes are put together; `SCALED` sums are brought to the result's scale, `AVERAGE` divides by a count."""

    SCALED = "scaled"
    AVERAGE = "average"
    MAX = "max"
    MIN = "min"


@frozen
class Ending(Value):
    """What is done to the bytes of one result, and how it is stored.

    `SCALED` finds its multiplier in slot `columns`, one register that holds the bias too. `AVERAGE` divides by slot
    `count` (below 2**16), halves away from zero: the quotient in float32 is exact enough to truncate, because
    numerators stay below 2**24. All but `SCALED` are bounded by `low` and `high` where `requantize.clamped` says so.
    """

    gather: Gather
    requantize: Requantize = NARROW
    signed: bool = True

    @property
    def slots(self) -> tuple[str, ...]:
        if self.gather is Gather.SCALED:
            return self.requantize.slots
        bounds = ("low", "high") if self.requantize.clamped else ()
        return (*(("count",) if self.gather is Gather.AVERAGE else ()), *bounds)

    def start(self, k: Kernel, lanes: int) -> Val:
        """Where a result begins: it changes nothing."""
        low, high = (-128, 127) if self.signed else (0, 255)
        return k.const(I32, {Gather.MAX: low, Gather.MIN: high}.get(self.gather, 0)).splat(lanes)

    def join(self, a: Val, b: Val) -> Val:
        if self.gather is Gather.MAX:
            return a.max(b)
        return a.min(b) if self.gather is Gather.MIN else a + b

    def finish(self, k: Kernel, task: Task, x: Val) -> Val:
        """A register of results as bytes."""
        if self.gather is Gather.SCALED:
            lanes = load_lanes(k, task, self.requantize, k.index(0))
            return as_byte(stored(task, self.requantize, self.signed, lanes["bias"] + x, lanes))
        if self.gather is Gather.AVERAGE:
            x = average(x, task.i64("count").cast(I32).splat(x.lanes))
        return as_byte(bounded(task, self.requantize.clamped, self.signed, x))


def average(total: Val, count: Val) -> Val:
    """`total / count`, halves away from zero."""
    half = count >> 1
    nudged = (total > 0).select(total + half, total - half)
    return (nudged.cast(F32) / count.cast(F32)).cast(I32)


@frozen
class ReduceColumnsInt8(Value):
    """`out[block, column]` from `x[block, row, column]` for every row; all have `width` columns.

    Work tile t is block t // chunks and its columns from (t % chunks) * `CHUNK` registers on.
    """

    ending: Ending

    CHUNK: ClassVar[int] = 4

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x", "rows", "width", "chunks", "out", *self.ending.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, rows = k.isa.f32, task.i64("width"), task.i64("rows")
        with k.loop(end, begin) as t:
            block, first = t // task.i64("chunks"), (t % task.i64("chunks")) * (lanes * self.CHUNK)
            source = task.view("x", I8, rows * width, width, 1)[block]
            out = task.view("out", I8, width, 1)[block]
            if k.isa.free_masks:
                masks = [k.mask(lanes, width - first - i * lanes) for i in range(self.CHUNK)]
                self._columns(k, task, source, out, first, masks)
            else:
                with k.either(first + lanes * self.CHUNK <= width) as (then, otherwise):
                    with then:
                        self._columns(k, task, source, out, first, [None] * self.CHUNK)
                    with otherwise, k.loop(width, first, step=lanes) as column:
                        self._columns(k, task, source, out, column, [k.mask(lanes, width - column)])

    def _columns(
        self, k: Kernel, task: Task, source: View, out: View, column: Val, masks: Sequence[Val | None]
    ) -> None:
        lanes, ending = k.isa.f32, self.ending
        found: list[Var] = [k.var(ending.start(k, lanes)) for _ in masks]
        with k.loop(task.i64("rows")) as row:
            here = k.view(source[row, column].address, I8, 1)
            for i, (total, mask) in enumerate(zip(found, masks, strict=True)):
                total.set(ending.join(total.get(), here[i * lanes].load(lanes, mask).cast(I32, ending.signed)))
        for i, (total, mask) in enumerate(zip(found, masks, strict=True)):
            out[column + i * lanes].store(ending.finish(k, task, total.get()), mask)


@frozen
class ReduceRowsInt8(Value):
    """`out[row]` from the `width` neighbours of each row of x; work tiles are rows."""

    ending: Ending

    @property
    def slots(self) -> tuple[str, ...]:
        return ("x", "width", "out", *self.ending.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, ending = k.isa.f32, task.i64("width"), self.ending
        with k.loop(end, begin) as r:
            row = task.view("x", I8, width, 1)[r]
            if ending.gather in (Gather.MAX, Gather.MIN):
                result = self._extreme(k, row, width).splat(lanes)
            else:
                total = k.var(k.zeros(I32, lanes))
                add_row_sums(k, [total], [row], width, ending.signed)
                moved = width.cast(I32) * offset(k.isa, ending.signed)
                result = (total.get().over_lanes(Val.__add__) - moved).splat(lanes)
            task.view("out", I8, 1)[r].store(ending.finish(k, task, result).lane(0))

    def _extreme(self, k: Kernel, row: View, width: Val) -> Val:
        lanes, ending = k.isa.f32, self.ending
        whole = width - width % lanes
        best = k.var(ending.start(k, lanes))
        with k.loop(whole, step=lanes) as at:
            best.set(ending.join(best.get(), row[at].load(lanes).cast(I32, ending.signed)))
        one = k.var(ending.start(k, lanes).lane(0))
        for lane in range(lanes):
            one.set(ending.join(one.get(), best.get().lane(lane)))
        with k.loop(width, whole) as at:
            one.set(ending.join(one.get(), row[at].load().cast(I32, ending.signed)))
        return one.get()
