"""Reductions over the columns of a matrix or over its rows."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, I64, Kernel, Val, Var, View, vec
from onert_llvm.kernels.arithmetic.expression import Kind

from .elements import Elements


def _slots(elements: Elements) -> tuple[str, ...]:
    return (*(("divisor",) if elements.mean else ()), *elements.slots)


def _finished(k: Kernel, task: Task, elements: Elements, total: Val) -> Val:
    """A register of results; `divisor` is for all how many elements each has, or of floats one over that."""
    if not elements.mean:
        return elements.finish(k, task, total, None)
    divisor = task.f32("divisor") if elements.divisors is F32 else task.i64("divisor").cast(I32)
    return elements.finish(k, task, total, divisor)


@frozen
class ReduceRows(Value):
    """`out[row]` from the neighbours `in[row, :width]`; work tiles are rows.

    With `few`, one to three, they are joined element by element, each in all lanes: lanes of their own take longer to
    join.
    """

    elements: Elements
    few: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return ("in", "width", "out", *_slots(self.elements))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        memory, width = self.elements.kind.memory, task.i64("width")
        with k.loop(end, begin) as row:
            source = task.view("in", memory, width, 1)[row]
            if self.few:
                total = self._one_by_one(k, source, width)
            else:
                total = self.elements.along(k, source, width).splat(k.isa.f32)
            task.view("out", memory, 1)[row].store(_finished(k, task, self.elements, total).lane(0))

    def _one_by_one(self, k: Kernel, source: View, width: Val) -> Val:
        """The first, the last, and then what is left of three: lanes are joined in this order, so bits are the same."""
        elements, lanes = self.elements, k.isa.f32
        total = k.var(elements.join(elements.start(k, lanes), elements.everywhere(source[0], lanes)))
        with k.loop(width, start=1) as at:
            total.set(elements.join(total.get(), elements.everywhere(source[width - at], lanes)))
        return total.get()


@frozen
class ReduceColumns(Value):
    """`out[block, column]` from `in[block, row, column]` for every row; all have `width` columns.

    Work tile t is block t // chunks and `vectors` registers of its columns from (t % chunks) * vectors on.
    """

    elements: Elements
    vectors: int = 4

    @property
    def slots(self) -> tuple[str, ...]:
        return ("in", "rows", "width", "chunks", "out", *_slots(self.elements))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, rows = k.isa.f32, task.i64("width"), task.i64("rows")
        with k.loop(end, begin) as t:
            block, first = t // task.i64("chunks"), (t % task.i64("chunks")) * (lanes * self.vectors)
            source = task.view("in", self.elements.kind.memory, rows * width, width, 1)[block]
            out = task.view("out", self.elements.kind.memory, width, 1)[block]
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
        start = self.elements.start(k, lanes)
        totals = [k.var(start) for _ in range(count)]

        def add(row: Val, part: list[Var]) -> None:
            here = k.view(source[row, column].address, self.elements.kind.memory, 1)
            for i, (s, mask) in enumerate(zip(part, masks, strict=True)):
                s.set(self.elements.join(s.get(), self.elements.load(here[i * lanes], lanes, mask)))

        with k.loop(rows, step=_ROWS) as first:
            sums: list[list[Var]] = [[k.var(start) for _ in range(count)] for _ in range(ways)]
            last = (first + _ROWS).min(rows)
            whole = last - (last - first) % ways if ways > 1 else last
            with k.loop(whole, first, step=ways) as row:
                for i, part in enumerate(sums):
                    add(row + i, part)
            if ways > 1:
                with k.loop(last, whole) as row:
                    add(row, sums[0])
            for part in sums:
                for total, s in zip(totals, part, strict=True):
                    total.set(self.elements.join(total.get(), s.get()))
        for i, (total, mask) in enumerate(zip(totals, masks, strict=True)):
            out[column + i * lanes].store(_finished(k, task, self.elements, total.get()), mask)


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
        return _comparable(place.load(lanes, mask), self.kind)


@frozen
class ArgNarrow(Value):
    """What `ArgRows` finds in rows of bytes (`is_narrow`).

    A byte and its place are one number of 32 bits, of which the greatest is that of the first of the best.
    """

    greatest: bool
    kind: Kind
    wide: bool

    slots = ("in", "width", "out")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, result = k.isa.f32, task.i64("width"), I64 if self.wide else I32
        order = _MOST_PLACES - 1 - k.iota(I32, lanes)
        worst = k.const(vec(I32, lanes), -(1 << 31))
        with k.loop(end, begin) as row:
            source, best = task.view("in", self.kind.memory, width, 1)[row], k.var(worst)
            for at, mask in k.registers(width):
                value = _comparable(source[at].load(lanes, mask), self.kind)
                value = ((value if self.greatest else -value) << _PLACE_BITS) + (order - at.cast(I32).splat(lanes))
                best.set(best.get().max(value if mask is None else mask.select(value, worst)))
            place = _MOST_PLACES - 1 - (best.get().over_lanes(Val.max) & (_MOST_PLACES - 1))
            task.view("out", result, 1)[row].store(place.cast(result))


_PLACE_BITS = 8
_MOST_PLACES = 1 << _PLACE_BITS


def is_narrow(kind: Kind, width: int) -> bool:
    """Whether elements are bytes, and so few in a row that to end it takes longer than to go through it."""
    return kind in (Kind.I8, Kind.U8) and width < _MOST_PLACES


@frozen
class ArgRows(Value):
    """`out[row]` = the place of the greatest (least) of in[row, :width], the first of equals; work tiles are rows.

    Lanes keep the best of their own elements and where it was; the first of the best ones is the row's. What is not a
    number is never better, and where it is the row's first element its place is the result.
    """

    greatest: bool
    kind: Kind
    wide: bool

    slots = ("in", "width", "out")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        order = k.iota(I32, lanes)
        worst = self._worst(k)
        with k.loop(end, begin) as row:
            source = task.view("in", self.kind.memory, width, 1)[row]
            best, place = k.var(worst), k.var(order)
            for at, mask in k.registers(width):
                value = _comparable(source[at].load(lanes, mask), self.kind)
                if mask is not None:
                    value = mask.select(value, worst)
                better = self._better(value, best.get())
                best.set(better.select(value, best.get()))
                place.set(better.select(order + at.cast(I32).splat(lanes), place.get()))
            extreme = best.get().over_lanes(lambda a, b: self._better(a, b).select(a, b))
            first = best.get().eq(extreme.splat(lanes)).select(place.get(), _NOWHERE).over_lanes(Val.min)
            if self.kind.is_float:
                start = source[0].load()
                first = start.ne(start).select(0, first)
            task.view("out", I64 if self.wide else I32, 1)[row].store(first.cast(I64 if self.wide else I32))

    def _better(self, one: Val, other: Val) -> Val:
        return one > other if self.greatest else one < other

    def _worst(self, k: Kernel) -> Val:
        """What nothing is worse than, in each lane."""
        element = _comparable(k.zeros(self.kind.memory, k.isa.f32), self.kind).type.element
        if self.kind.is_float:
            return k.const(vec(element, k.isa.f32), float("-inf" if self.greatest else "inf"))
        bits = int(element.width) - 1
        return k.const(vec(element, k.isa.f32), -(1 << bits) if self.greatest else (1 << bits) - 1)


@frozen
class ArgShortRows(Value):
    """As `ArgRows`, element by element: of a few, lanes take longer to agree."""

    greatest: bool
    kind: Kind
    wide: bool

    slots = ("in", "width", "out")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, result = task.i64("width"), I64 if self.wide else I32
        with k.loop(end, begin) as row:
            source = task.view("in", self.kind.memory, width, 1)[row]
            best, place = k.var(_comparable(source[0].load(), self.kind)), k.var(k.index(0))
            with k.loop(width, start=1) as at:
                value = _comparable(source[at].load(), self.kind)
                better = value > best.get() if self.greatest else value < best.get()
                best.set(better.select(value, best.get()))
                place.set(better.select(at, place.get()))
            task.view("out", result, 1)[row].store(place.get().cast(result))


_NOWHERE = (1 << 31) - 1
"""A place behind all others."""


def _comparable(found: Val, kind: Kind) -> Val:
    """Elements as numbers that compare as they do, with a sign."""
    if kind is Kind.U64:
        return found ^ -(1 << 63)
    if kind.is_float or kind in (Kind.I64, Kind.I32):
        return found
    return found.cast(I64 if kind is Kind.U32 else I32, kind.signed)
