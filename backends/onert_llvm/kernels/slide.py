"""Windows that slide along a row: each column of pixels is read once and added to every output that sees it.

The sums of the outputs that a column belongs to are carried from one step to the next, channels in the lanes. The order
in which an output's products are added is that of the columns: for sums that are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import I32, Kernel, Type, Val, View
from onert_llvm.target import Isa


@frozen
class Slide:
    """`window` is (height, width) in taps; `stride` is what it moves across, in distances between neighbouring taps.

    With a dilation, outputs whose windows see the same columns are some outputs apart; these make a row of their own
    (`slide`). `masked`: the channels end inside a register.
    """

    window: tuple[int, int]
    stride: int
    masked: bool

    def parts(self, isa: Isa, registers: int) -> list[_Part]:
        """The window's taps across, as few at a time as need half of the target's registers for what is carried.

        The sums of an output take so many `registers`.
        """
        most = (isa.registers // 2 // registers + 1) * self.stride
        width = self.window[1]
        return [_Part(t, min(most, width - t), self.stride) for t in range(0, width, most)]


@frozen
class _Part:
    """Some taps across: how many, and from which on."""

    first: int
    count: int
    stride: int

    @property
    def carried(self) -> int:
        """Outputs that have some of these taps when a step begins."""
        return -(-self.count // self.stride) - 1

    @property
    def columns(self) -> range:
        """The columns that a step reads, as taps of the output that has all of these after it."""
        return range(max(0, self.count - self.stride), self.count)

    def of(self, column: int) -> list[tuple[int, int]]:
        """The outputs that see a column, counted from the one that a step completes, and the tap at which they do."""
        taps = [(x, column - x * self.stride) for x in range(self.carried + 1)]
        return [(x, self.first + tap) for x, tap in taps if 0 <= tap < self.count]


def slide(window: tuple[int, int], stride: int, dilation: int, channels: int, isa: Isa) -> Slide:
    """How a window of so many taps slides; `stride` and `dilation` are across, in pixels."""
    return Slide(window, stride // gcd(stride, dilation), channels % isa.f32 != 0)


_TOGETHER = 32
"""Outputs whose sums are put down in memory, inside of the first cache, before anything becomes of them."""


@frozen(eq=False)
class Outputs:
    """Outputs of a row: their numbers are `first`, `first + apart` and so on."""

    first: Val
    apart: Val

    def of(self, matrix: View, column: Val) -> View:
        """Their rows of a matrix, from a column on."""
        stride = matrix.strides[0]
        base = matrix[self.first, column]
        return View(base.b, base.base, base.element, (self.apart * stride, 1))


Finish = Callable[[Sequence[Val], Val], None]
"""Writes an output: (sums, which one of the outputs)."""


@frozen(eq=False)
class Sums:
    """What is computed for some registers of channels, of one output at a time.

    `start` is what its sums begin with, `seen` what the pixels of a column (from the top) become for all of its outputs
    together, `plus` the sums with that at a tap across. `finish` prepares what becomes of an output's sums.
    """

    start: Sequence[Val]
    seen: Callable[[Sequence[View]], Sequence[Val]]
    plus: Callable[[Sequence[Val], Sequence[Val], int], Sequence[Val]]
    finish: Callable[[Outputs], Finish]


Body = Callable[[Val, Val | None], Sums]
"""Prepares what is computed for the channels from one on: (channel, mask)."""


@frozen(eq=False)
class _Row:
    """Outputs `first`, `first + apart`, ... of a row, `count` of them; their windows begin at column `left`.

    `rows` are the window's: where column 0 is and how many elements lie between taps. One outside of the picture is the
    pixel of padding again and again.
    """

    first: Val
    apart: Val
    count: Val
    left: Val
    rows: Sequence[tuple[Val, Val]]


def each_slide(
    k: Kernel, task: Task, begin: Val, end: Val, slide: Slide, element: Type, bodies: Sequence[tuple[int, Body]]
) -> None:
    """Write the loops around `bodies`, each for so many registers of channels, the most first and one at last.

    Work tiles are rows of the output through all images.
    """
    width, dilation = task.i64("out_w"), task.i64("dilation_w")
    apart = dilation * slide.stride // task.i64("stride_w")
    with k.loop(end, begin) as line:
        image, y = line // task.i64("out_h"), line % task.i64("out_h")
        rows = _rows(k, task, slide, element, image, y)
        with k.loop(apart.min(width), nonempty=True) as first:
            count = (width - first + (apart - 1)) // apart
            left = first * task.i64("stride_w") - task.i64("pad_w")
            row = _Row(line * width + first, apart, count, left, rows)
            _channels(k, task, slide, element, row, bodies)


def _rows(k: Kernel, task: Task, slide: Slide, element: Type, image: Val, y: Val) -> list[tuple[Val, Val]]:
    top = y * task.i64("stride_h") - task.i64("pad_h")
    source, found = task.view("input", element, task.i64("image"), task.i64("row"))[image], []
    for i in range(slide.window[0]):
        at = top + task.i64("dilation_h") * i
        inside = at.ult(task.i64("in_h"))
        place = inside.select(source[at].address, task.ptr("zero"))
        found.append((place, inside.select(task.i64("pixel"), k.index(0))))
    return found


def _channels(
    k: Kernel, task: Task, slide: Slide, element: Type, row: _Row, bodies: Sequence[tuple[int, Body]]
) -> None:
    lanes, channels = k.isa.f32, task.i64("channels")
    start = k.index(0)
    for registers, body in bodies[:-1]:
        step = lanes * registers
        stop = channels - channels % step
        with k.loop(stop, start, step=step) as c:
            _outputs(k, task, slide, element, row, c, body(c, None))
        start = stop
    _, body = bodies[-1]
    if slide.masked and free_masks(k.isa):
        with k.loop(channels, start, step=lanes) as c:
            _outputs(k, task, slide, element, row, c, body(c, k.mask(lanes, channels - c)))
        return
    whole = channels - channels % lanes if slide.masked else channels
    with k.loop(whole, start, step=lanes) as c:
        _outputs(k, task, slide, element, row, c, body(c, None))
    if slide.masked:
        _outputs(k, task, slide, element, row, whole, body(whole, k.mask(lanes, channels - whole)))


def free_masks(isa: Isa) -> bool:
    """Whether it costs next to nothing to mask every load and store, so that all registers are treated as the last."""
    return isa.vector_bytes == 64


def _outputs(k: Kernel, task: Task, slide: Slide, element: Type, row: _Row, c: Val, sums: Sums) -> None:
    """The outputs of a row: the sums of some of them, put down in memory, and then what becomes of these."""
    registers = len(sums.start)
    size, parts = registers * k.isa.f32, slide.parts(k.isa, registers)
    before = max(part.carried for part in parts)
    parked = k.view(k.scratch(I32, (_TOGETHER + before) * size), I32, size, k.isa.f32, 1)
    with k.loop(row.count, step=_TOGETHER, nonempty=True) as begin:
        count = (row.count - begin).min(_TOGETHER)
        for part in parts:
            to = k.view(parked[before - part.carried].address, I32, size, k.isa.f32, 1)
            _sums(k, task, part, element, row, (begin, count), c, sums, to)
        store = sums.finish(Outputs(row.first + begin * row.apart, row.apart))
        with k.loop(count, nonempty=True) as i:
            store([parked[i + before, r].load(k.isa.f32) for r in range(registers)], i)


def _sums(
    k: Kernel, task: Task, part: _Part, element: Type, row: _Row, span: tuple[Val, Val], c: Val, sums: Sums, to: View
) -> None:
    """Write or add the sums of some taps, after those of the outputs before that have only some of their columns."""
    begin = list(sums.start) if part.first == 0 else [k.zeros(I32, k.isa.f32) for _ in sums.start]
    carried = [[k.var(v) for v in begin] for _ in range(part.carried)]
    dilation, in_w = task.i64("dilation_w"), task.i64("in_w")
    step = dilation * part.stride
    zero = task.view("zero", element, 1)[c].address
    left = span[0] * part.stride + (part.first + part.columns.start - part.carried * part.stride)
    at = k.var(row.left + dilation * left)
    places = [k.var(k.view(p, element, pixel, 1)[at.get(), c].address) for p, pixel in row.rows]
    with k.loop(span[1] + part.carried, nonempty=True) as i:
        across, rows = at.get(), [k.view(p.get(), element, 1) for p in places]
        at.set(across + step)
        for place, (_, pixel) in zip(places, row.rows, strict=True):
            place.set(k.view(place.get(), element, pixel)[step].address)
        totals = [*([v.get() for v in one] for one in carried), begin]
        for j, column in enumerate(part.columns):
            if j:
                across = across + dilation
                rows = [
                    k.view(r.address, element, pixel, 1)[dilation] for r, (_, pixel) in zip(rows, row.rows, strict=True)
                ]
            inside = across.ult(in_w)
            seen = sums.seen([k.view(inside.select(r.address, zero), element, 1) for r in rows])
            for x, tap in part.of(column):
                totals[x] = list(sums.plus(totals[x], seen, tap))
        for r, value in enumerate(totals[0]):
            to[i, r].store(value + to[i, r].load(k.isa.f32) if part.first else value)
        for one, total in zip(carried, totals[1:], strict=True):
            for var, value in zip(one, total, strict=True):
                var.set(value)
