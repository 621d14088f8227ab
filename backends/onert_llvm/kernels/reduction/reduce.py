"""Reductions over the columns of a matrix or over its rows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I1, I32, I64, Kernel, Val, Var, View, vec
from onert_llvm.kernels.arithmetic.expression import Kind


class Fold(Enum):
    """How elements are put together: `MAX` and `MIN` of floats are NaN where any is, `MAX_NUMBER` skips NaNs."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    MAX_NUMBER = "max_number"

    def start(self, kind: Kind) -> float | int:
        """What does not change an element that it is put together with."""
        if self in (Fold.SUM, Fold.PROD):
            return 0 if self is Fold.SUM else 1
        if kind.is_float:
            return float("inf" if self is Fold.MIN else "-inf")
        bits = int(kind.memory.width)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.signed else (0, (1 << bits) - 1)
        return low if self is Fold.MAX else high

    def join(self, a: Val, b: Val, kind: Kind = Kind.F32) -> Val:
        if self is Fold.SUM:
            return a + b
        if self is Fold.PROD:
            return a * b
        if self is Fold.MAX_NUMBER:
            return a.max(b)
        if not kind.unsigned:
            return a.maximum(b) if self is Fold.MAX else a.minimum(b)
        return a.umax(b) if self is Fold.MAX else a.umin(b)

    def join_numbers(self, a: Val, b: Val, kind: Kind = Kind.F32) -> Val:
        """Likewise; of floats one that is a number, or anything where `spoilt` is to tell."""
        if kind is Kind.F32 and self in (Fold.MAX, Fold.MIN):
            return a.max(b) if self is Fold.MAX else a.min(b)
        return self.join(a, b, kind)


class Spoilt:
    """Whether any element was not a number, in each lane: two elements take one comparison, and no total waits for it.

    For folds and kinds that have no such elements it does nothing.
    """

    def __init__(self, k: Kernel, fold: Fold, kind: Kind, lanes: int) -> None:
        self._is_needed = kind is Kind.F32 and fold in (Fold.MAX, Fold.MIN)
        self._lanes = k.var(k.zeros(I1, lanes)) if self._is_needed else None

    def see(self, elements: list[Val]) -> None:
        """Look at some elements."""
        if self._lanes is not None:
            for a, b in zip(elements[::2], elements[1::2] + elements[-1:], strict=False):
                self._lanes.set(self._lanes.get() | a.unordered(b))

    def mend(self, total: Val) -> Val:
        """The total, not a number in lanes of which an element was none; a scalar where any lane has one."""
        if self._lanes is None:
            return total
        seen = self._lanes.get()
        return (seen if total.lanes > 1 else seen.any()).select(total.like(float("nan")), total)


def fold_lanes(fold: Fold, x: Val, kind: Kind = Kind.F32) -> Val:
    """One value from all lanes, halves onto halves; of floats that may be numbers only, as `join_numbers`."""
    while x.lanes > 2:
        half = x.lanes // 2
        x = fold.join_numbers(x.shuffle(list(range(half))), x.shuffle(list(range(half, x.lanes))), kind)
    return fold.join_numbers(x.lane(0), x.lane(1), kind)


def fold_row(k: Kernel, fold: Fold, row: View, width: Val, kind: Kind = Kind.F32) -> Val:
    """One value from `width` neighbours: four sums side by side, then the rest, then the lanes."""
    lanes, ways = k.isa.f32, 4
    start = k.const(vec(kind.memory, lanes), fold.start(kind))
    sums, spoilt = [k.var(start) for _ in range(ways)], Spoilt(k, fold, kind, lanes)
    block = width - width % (lanes * ways)
    with k.loop(block, step=lanes * ways) as at:
        elements = [row[at + i * lanes].load(lanes) for i in range(ways)]
        for s, x in zip(sums, elements, strict=True):
            s.set(fold.join_numbers(s.get(), x, kind))
        spoilt.see(elements)
    whole = width - width % lanes

    def add(x: Val) -> None:
        sums[0].set(fold.join_numbers(sums[0].get(), x, kind))
        spoilt.see([x])

    with k.loop(whole, block, step=lanes) as at:
        add(row[at].load(lanes))
    with k.when(whole < width):
        mask = k.mask(lanes, width - whole)
        add(mask.select(row[whole].load(lanes, mask), start))
    first, second = (fold.join_numbers(sums[i].get(), sums[i + 1].get(), kind) for i in (0, 2))
    return spoilt.mend(fold_lanes(fold, fold.join_numbers(first, second, kind), kind))


def scaled(task: Task, total: Val) -> Val:
    """A float32 total times the task's scale; others as they are."""
    return total * task.f32("scale").splat(total.lanes) if total.type.element is F32 else total


@frozen
class ReduceRows(Value):
    """`out[row] = scale * fold of in[row, :width]`; work tiles are rows, `step` elements apart.

    Only float32 is scaled.
    """

    fold: Fold
    kind: Kind = Kind.F32

    slots = ("in", "step", "width", "out", "scale")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as row:
            source = task.view("in", self.kind.memory, task.i64("step"), 1)[row]
            total = fold_row(k, self.fold, source, task.i64("width"), self.kind)
            task.view("out", self.kind.memory, 1)[row].store(scaled(task, total))


@frozen
class ReduceColumns(Value):
    """`out[block, column] = scale * fold over rows of in[block, row, column]`, all of `width` columns.

    Work tile t is block t // chunks and `vectors` registers of its columns from (t % chunks) * vectors on. Only
    float32 is scaled.
    """

    fold: Fold
    vectors: int = 4
    kind: Kind = Kind.F32

    slots = ("in", "rows", "width", "chunks", "out", "scale")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, rows = k.isa.f32, task.i64("width"), task.i64("rows")
        with k.loop(end, begin) as t:
            block, first = t // task.i64("chunks"), (t % task.i64("chunks")) * (lanes * self.vectors)
            source = task.view("in", self.kind.memory, rows * width, width, 1)[block]
            out = task.view("out", self.kind.memory, width, 1)[block]
            if k.isa.free_masks:
                masks = [k.mask(lanes, width - first - i * lanes) for i in range(self.vectors)]
                self._columns(k, task, source, out, first, masks)
            else:
                with k.either(first + lanes * self.vectors <= width) as (then, otherwise):
                    with then:
                        self._columns(k, task, source, out, first, [None] * self.vectors)
                    with otherwise, k.loop(width, first, step=lanes) as column:
                        self._columns(k, task, source, out, column, [k.mask(lanes, width - column)])

    def _columns(
        self, k: Kernel, task: Task, source: View, out: View, column: Val, masks: Sequence[Val | None]
    ) -> None:
        """Several rows at a time where there are few registers, so that additions need not wait for one another.

        Each block of rows is added up by itself first: in one long sum what comes late is rounded off.
        """
        count = len(masks)
        lanes, rows, ways = k.isa.f32, task.i64("rows"), max(1, 4 // count)
        start = k.const(vec(self.kind.memory, lanes), self.fold.start(self.kind))
        totals = [k.var(start) for _ in range(count)]

        def add(row: Val, part: list[Var]) -> None:
            here = k.view(source[row, column].address, self.kind.memory, 1)
            for i, (s, mask) in enumerate(zip(part, masks, strict=True)):
                s.set(self.fold.join(s.get(), here[i * lanes].load(lanes, mask), self.kind))

        with k.loop(rows, step=_ROWS) as first:
            sums: list[list[Var]] = [[k.var(start) for _ in range(count)] for _ in range(ways)]
            last = (first + _ROWS).min(rows)
            whole = last - (last - first) % ways if ways > 1 else first
            if ways > 1:
                with k.loop(whole, first, step=ways) as row:
                    for i, part in enumerate(sums):
                        add(row + i, part)
            with k.loop(last, whole) as row:
                add(row, sums[0])
            for part in sums:
                for total, s in zip(totals, part, strict=True):
                    total.set(self.fold.join(total.get(), s.get(), self.kind))
        for i, (total, mask) in enumerate(zip(totals, masks, strict=True)):
            out[column + i * lanes].store(scaled(task, total.get()), mask)


_ROWS = 128
"""Rows of a column that are added up by themselves."""


@frozen
class ArgColumns(Value):
    """`out[block, column]` = the row of the greatest (least) of in[block, :, column], the first of equals.

    Work tile t is block t // chunks and a register of its columns; `wide` says that results are 64-bit integers.
    """

    greatest: bool
    kind: Kind
    wide: bool

    slots = ("in", "rows", "width", "chunks", "out")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, rows = k.isa.f32, task.i64("width"), task.i64("rows")
        result = I64 if self.wide else I32
        with k.loop(end, begin) as t:
            block, first = t // task.i64("chunks"), (t % task.i64("chunks")) * lanes
            mask = k.mask(lanes, width - first)
            column = task.view("in", self.kind.memory, rows * width, width, 1)[block, 0, first]
            best, place = k.var(self._load(column, lanes, mask)), k.var(k.zeros(I32, lanes))
            with k.loop(rows, start=1) as row:
                here = k.view(column.address, self.kind.memory, width)[row]
                value = self._load(here, lanes, mask)
                better = value > best.get() if self.greatest else value < best.get()
                best.set(better.select(value, best.get()))
                place.set(better.select(row.cast(I32).splat(lanes), place.get()))
            out = task.view("out", result, width, 1)[block, first]
            out.store(place.get().cast(result), mask)

    def _load(self, place: View, lanes: int, mask: Val) -> Val:
        """Elements as numbers that compare as they do, with a sign."""
        found = place.load(lanes, mask)
        if self.kind is Kind.U64:
            return found ^ -(1 << 63)
        if self.kind.is_float or self.kind in (Kind.I64, Kind.I32):
            return found
        return found.cast(I64 if self.kind is Kind.U32 else I32, self.kind.signed)
