"""Reductions over the columns or the rows of a matrix."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, I64, Kernel, Val, Var, View, vec
from onert_llvm.kernels.arithmetic.expression import Kind

from .elements import Elements
from .fold import NanTracker


def _slots(elements: Elements) -> tuple[str, ...]:
    return (*(("divisor",) if elements.mean else ()), *elements.slots)


def _finished(k: Kernel, task: Task, elements: Elements, total: Val) -> Val:
    """A register of results; slot `divisor` is the number of elements of each, or for floats its reciprocal."""
    if not elements.mean:
        return elements.finish(k, task, total, None)
    divisor = task.f32("divisor") if elements.divisors is F32 else task.i64("divisor").cast(I32)
    return elements.finish(k, task, total, divisor)


@frozen
class ReduceRows(Value):
    """`out[row]` from the contiguous `in[row, :width]`; work tiles are rows.

    Rows of a `known` width of at most two registers are reduced in groups of as many rows as a register has lanes:
    halves of two registers are combined into one, until that has one lane per row. The order is that of
    `Elements.along`, and so are the bits.
    """

    elements: Elements
    known: int = 0

    @property
    def slots(self) -> tuple[str, ...]:
        return ("in", "width", "out", *_slots(self.elements))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        first, lanes = begin, k.isa.f32
        if 1 < self.known <= 2 * lanes:
            count = (end - begin - self._behind(lanes)).max(0) // lanes
            first = begin + count * lanes
            with k.loop(first, begin, step=lanes) as group:
                self._group(k, task, group)
        self._rows(k, task, first, end)

    def _rows(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        """Reduce row by row."""
        memory, width = self.elements.kind.memory, task.i64("width")
        with k.loop(end, begin) as row:
            total = self.elements.along(k, task.view("in", memory, width, 1)[row], width).splat(k.isa.f32)
            task.view("out", self.elements.stored, 1)[row].store(_finished(k, task, self.elements, total).lane(0))

    def _lanes_of_row(self, lanes: int) -> int:
        """The lanes, a power of two, that each row of at most a register occupies in it."""
        return min(lanes, 1 << (self.known - 1).bit_length())

    def _behind(self, lanes: int) -> int:
        """How many rows are read beyond the last of a group."""
        width, span = self.known, self._lanes_of_row(lanes)
        read = 2 * lanes - width if width > lanes else (lanes // span) * (span - width)
        return 0 if width in (lanes, 2 * lanes) else -(-read // width)

    def _group(self, k: Kernel, task: Task, first: Val) -> None:
        """As many rows as a register has lanes; row by row if an element is NaN and the result depends on it."""
        elements, lanes, memory = self.elements, k.isa.f32, self.elements.kind.memory
        span, nan_tracker = self._lanes_of_row(lanes), elements.nan_tracker(k)
        together = lanes // span
        source = k.view(task.view("in", memory, self.known, 1)[first].address, memory, self.known, 1)
        found = [self._loaded(k, source[row], nan_tracker) for row in range(0, lanes, together)]
        while span > 1:
            found = [self._halved(a, b, span) for a, b in zip(found[::2], found[1::2], strict=True)]
            span //= 2
        total = elements.join_numbers(elements.start(k, lanes), found[0])
        task.view("out", memory, 1)[first].store(_finished(k, task, elements, total))
        if nan_tracker.seen is not None:
            with k.when(nan_tracker.seen.any()):
                self._rows(k, task, first, first + lanes)

    def _loaded(self, k: Kernel, place: View, nan_tracker: NanTracker) -> Val:
        """A register of rows, each in a power of two of lanes; a row's second register is joined to the first."""
        elements, lanes, width = self.elements, k.isa.f32, self.known
        start, span, numbers = elements.start(k, lanes), self._lanes_of_row(lanes), k.iota(I32, lanes)
        found = elements.load(place, lanes)
        if width < lanes and width != span:
            order = [min(lane // span * width + lane % span, lanes - 1) for lane in range(lanes)]
            found = ((numbers & (span - 1)) < width).select(found.shuffle(order), start)
        if width > lanes:
            rest = elements.load(place[lanes], lanes)
            rest = rest if width == 2 * lanes else (numbers < width - lanes).select(rest, start)
            nan_tracker.see([found, rest])
            return elements.join_numbers(found, rest)
        nan_tracker.see([found])
        return found

    def _halved(self, a: Val, b: Val, span: int) -> Val:
        """The rows of two registers, `span` lanes each, with their second halves joined to the first."""
        half, lanes = span // 2, a.lanes
        low = [row + lane for row in range(0, 2 * lanes, span) for lane in range(half)]
        return self.elements.join_numbers(a.shuffle(low, b), a.shuffle([at + half for at in low], b))


@frozen
class ReduceColumns(Value):
    """`out[block, column]` from `in[block, row, column]` for every row; all have `width` columns.

    Work tile t is block t // chunks and `vectors` registers of its columns from register (t % chunks) * vectors on.
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
            out = task.view("out", self.elements.stored, width, 1)[block]
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
        """Fold several rows in parallel if there are few registers, so that additions do not wait for one another.

        Each block of rows is summed separately first: in one long sum, late elements are rounded off.
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
"""Rows that are summed separately."""


@frozen
class ArgColumns(Value):
    """`out[block, column]` = the row of the greatest (least) of in[block, :, column], the first of equals.

    Work tile t is block t // chunks and a register of its columns; `wide`: results are 64-bit integers.
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
class _OfRows(Value):
    """Kernels for the position of each row's greatest (least) element; `wide`: results are 64-bit integers."""

    greatest: bool
    kind: Kind
    wide: bool

    slots = ("in", "width", "out")

    def _store(self, task: Task, row: Val, place: Val) -> None:
        result = I64 if self.wide else I32
        task.view("out", result, 1)[row].store(place.cast(result))


@frozen
class ArgNarrow(_OfRows):
    """The result of `ArgRows` for rows of bytes (`is_narrow`).

    A byte and its position are combined in one 32-bit number, whose maximum is that of the first of the best.
    """

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("width")
        order = _MOST_PLACES - 1 - k.iota(I32, lanes)
        worst = k.const(vec(I32, lanes), -(1 << 31))
        with k.loop(end, begin) as row:
            source, best = task.view("in", self.kind.memory, width, 1)[row], k.var(worst)
            for at, mask in k.registers(width):
                value = _comparable(source[at].load(lanes, mask), self.kind)
                value = ((value if self.greatest else -value) << _PLACE_BITS) + (order - at.cast(I32).splat(lanes))
                best.set(best.get().max(value if mask is None else mask.select(value, worst)))
            place = _MOST_PLACES - 1 - (best.get().over_lanes(Val.max) & (_MOST_PLACES - 1))
            self._store(task, row, place)


_PLACE_BITS = 8
_MOST_PLACES = 1 << _PLACE_BITS


def is_narrow(kind: Kind, width: int) -> bool:
    """Whether elements are bytes, and rows so short that the final reduction dominates."""
    return kind in (Kind.I8, Kind.U8) and width < _MOST_PLACES


@frozen
class ArgRows(_OfRows):
    """`out[row]` = the position of the greatest (least) of in[row, :width], the first of equals; work tiles are rows.

    Each lane keeps the best of its own elements and its position; the first of the lanes' best ones is the result. NaN
    is never better; if it is the row's first element, its position is the result.
    """

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
            self._store(task, row, first)

    def _better(self, one: Val, other: Val) -> Val:
        return one > other if self.greatest else one < other

    def _worst(self, k: Kernel) -> Val:
        """The neutral element of the comparison, in each lane."""
        element = _comparable(k.zeros(self.kind.memory, k.isa.f32), self.kind).type.element
        if self.kind.is_float:
            return k.const(vec(element, k.isa.f32), float("-inf" if self.greatest else "inf"))
        bits = int(element.width) - 1
        return k.const(vec(element, k.isa.f32), -(1 << bits) if self.greatest else (1 << bits) - 1)


@frozen
class ArgShortRows(_OfRows):
    """As `ArgRows`, element by element: for short rows, reducing the lanes takes longer."""

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width = task.i64("width")
        with k.loop(end, begin) as row:
            source = task.view("in", self.kind.memory, width, 1)[row]
            best, place = k.var(_comparable(source[0].load(), self.kind)), k.var(k.index(0))
            with k.loop(width, start=1) as at:
                value = _comparable(source[at].load(), self.kind)
                better = value > best.get() if self.greatest else value < best.get()
                best.set(better.select(value, best.get()))
                place.set(better.select(at, place.get()))
            self._store(task, row, place.get())


_NOWHERE = (1 << 31) - 1
"""A position beyond all others."""


def _comparable(found: Val, kind: Kind) -> Val:
    """Elements as signed numbers with the same order."""
    if kind is Kind.U64:
        return found ^ -(1 << 63)
    if kind.is_float or kind in (Kind.I64, Kind.I32):
        return found
    return found.cast(I64 if kind is Kind.U32 else I32, kind.signed)
