"""Reductions in float32, over the columns of a matrix or over its rows, and softmax."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import F32, Kernel, Val, Var, View
from onert_llvm.build.math import exp
from onert_llvm.layout import TaskLayout


class Fold(Enum):
    """How elements are put together, from which value on."""

    SUM = 0.0
    MAX = float("-inf")
    MIN = float("inf")

    def join(self, a: Val, b: Val) -> Val:
        if self is Fold.SUM:
            return a + b
        return a.max(b) if self is Fold.MAX else a.min(b)


def fold_lanes(fold: Fold, x: Val) -> Val:
    """One value from all lanes, halves onto halves."""
    while x.lanes > 2:
        half = x.lanes // 2
        x = fold.join(x.shuffle(list(range(half))), x.shuffle(list(range(half, x.lanes))))
    return fold.join(x.lane(0), x.lane(1))


def fold_row(k: Kernel, fold: Fold, row: View, width: Val) -> Val:
    """One value from `width` neighbours: four sums side by side, then the rest, then the lanes."""
    lanes, ways = k.isa.f32, 4
    sums = [k.var(k.const(k.zeros(F32, lanes).type, fold.value)) for _ in range(ways)]
    block = width - width % (lanes * ways)
    with k.loop(block, step=lanes * ways) as at:
        for i, s in enumerate(sums):
            s.set(fold.join(s.get(), row[at + i * lanes].load(lanes)))
    whole = width - width % lanes
    with k.loop(whole, block, step=lanes) as at:
        sums[0].set(fold.join(sums[0].get(), row[at].load(lanes)))
    with k.when(whole < width):
        mask = k.mask(lanes, width - whole)
        rest = row[whole].load(lanes, mask)
        sums[0].set(fold.join(sums[0].get(), mask.select(rest, rest.like(fold.value))))
    first, second = fold.join(sums[0].get(), sums[1].get()), fold.join(sums[2].get(), sums[3].get())
    return fold_lanes(fold, fold.join(first, second))


@frozen
class ReduceRows:
    """`out[row] = scale * fold of in[row, :width]`; work tiles are rows, `step` elements apart."""

    fold: Fold

    @property
    def name(self) -> str:
        return "reduce_rows"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("in", "step", "width", "out", "scale"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as row:
            total = fold_row(k, self.fold, task.view("in", F32, task.i64("step"), 1)[row], task.i64("width"))
            task.view("out", F32, 1)[row].store(total * task.f32("scale"))


@frozen
class ReduceColumns:
    """`out[block, column] = scale * fold over rows of in[block, row, column]`, all of `width` columns.

    Work tile t is block t // chunks and its columns from (t % chunks) * `CHUNK` registers on.
    """

    fold: Fold

    CHUNK: ClassVar[int] = 4

    @property
    def name(self) -> str:
        return "reduce_columns"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("in", "rows", "width", "chunks", "out", "scale"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, rows = k.isa.f32, task.i64("width"), task.i64("rows")
        with k.loop(end, begin) as t:
            block, first = t // task.i64("chunks"), (t % task.i64("chunks")) * (lanes * self.CHUNK)
            source = task.view("in", F32, rows * width, width, 1)[block]
            out = task.view("out", F32, width, 1)[block]
            with k.either(first + lanes * self.CHUNK <= width) as (then, otherwise):
                with then:
                    self._columns(k, task, source, out, first, self.CHUNK, None)
                with otherwise, k.loop(width, first, step=lanes) as column:
                    self._columns(k, task, source, out, column, 1, k.mask(lanes, width - column))

    def _columns(
        self, k: Kernel, task: Task, source: View, out: View, column: Val, count: int, mask: Val | None
    ) -> None:
        lanes = k.isa.f32
        start = k.const(k.zeros(F32, lanes).type, self.fold.value)
        sums: list[Var] = [k.var(start) for _ in range(count)]
        with k.loop(task.i64("rows")) as row:
            for i, s in enumerate(sums):
                s.set(self.fold.join(s.get(), source[row, column + i * lanes].load(lanes, mask)))
        for i, s in enumerate(sums):
            out[column + i * lanes].store(s.get() * task.f32("scale"), mask)


@frozen
class Softmax:
    """`exp(beta * (x - max)) / sum` of each row of `width`; work tiles are rows. `out` may be `in`."""

    @property
    def name(self) -> str:
        return "softmax"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("in", "step", "width", "out", "out_step", "beta"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        beta = task.f32("beta").splat(lanes)
        whole = width - width % lanes
        with k.loop(end, begin) as r:
            row = task.view("in", F32, task.i64("step"), 1)[r]
            out = task.view("out", F32, task.i64("out_step"), 1)[r]
            top = fold_row(k, Fold.MAX, row, width).splat(lanes)
            total = k.var(k.zeros(F32, lanes))
            with k.loop(whole, step=lanes) as at:
                e = exp(k, (row[at].load(lanes) - top) * beta)
                out[at].store(e)
                total.set(total.get() + e)
            with k.when(whole < width):
                mask = k.mask(lanes, width - whole)
                e = exp(k, (row[whole].load(lanes, mask) - top) * beta)
                out[whole].store(e, mask)
                total.set(total.get() + mask.select(e, 0.0))
            scale = (k.f32(1.0) / fold_lanes(Fold.SUM, total.get())).splat(lanes)
            with k.loop(whole, step=lanes) as at:
                out[at].store(out[at].load(lanes) * scale)
            with k.when(whole < width):
                mask = k.mask(lanes, width - whole)
                out[whole].store(out[whole].load(lanes, mask) * scale, mask)
