"""Windows that slide along a row: each column of pixels is read once and added to every output that contains it.

The partial sums of these outputs are carried from one step to the next, channels in the lanes. An output's products are
added in the order of the columns, so this is for sums that are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, lcm

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I32, I64, PTR, Kernel, Type, Val, View
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW
from onert_llvm.target.isa import Isa

SLOTS = (*WINDOW, "lines", "shared")
"""`lines` are the output rows computed together, `shared` the steps that end one row and begin the next: at both ends
windows contain only columns of padding.
"""


@frozen
class Slide(Value):
    """`window` is (height, width) in taps; `stride` is its horizontal step, in distances between adjacent taps.

    With a dilation, outputs whose windows share columns are some outputs apart; these form a row of their own
    (`slide`). If the channels end inside a register, it `overlaps` the previous one or is the only one (`masked`).
    `again`: the last window row repeats another one, given by the slot `again`.
    """

    window: tuple[int, int]
    stride: int
    masked: bool
    overlaps: bool
    again: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return (*SLOTS, *(("again",) if self.again else ()))

    def parts(self, isa: Isa, registers: int) -> list[_Part]:
        """The horizontal taps, split so that what is carried needs at most half of the target's registers.

        The sums of an output take `registers` registers.
        """
        most = (isa.registers // 2 // registers + 1) * self.stride
        width = self.window[1]
        return [_Part(t, min(most, width - t), self.stride) for t in range(0, width, most)]

    def before(self, isa: Isa, registers: int) -> int:
        """Outputs before a line's first that share columns of its window."""
        return max(part.carried for part in self.parts(isa, registers))


@frozen
class _Part(Value):
    """A range of horizontal taps: the first one and how many."""

    first: int
    count: int
    stride: int

    @property
    def carried(self) -> int:
        """Partial sums in flight at the start of a step: outputs that have some of these taps."""
        return -(-self.count // self.stride) - 1

    @property
    def columns(self) -> range:
        """The columns that a step reads, as taps of the output that it completes."""
        return range(max(0, self.count - self.stride), self.count)

    def of(self, column: int) -> list[tuple[int, int]]:
        """The outputs that contain a column, counted from the one that a step completes, and their taps for it."""
        taps = [(x, column - x * self.stride) for x in range(self.carried + 1)]
        return [(x, self.first + tap) for x, tap in taps if 0 <= tap < self.count]


def slide(window: tuple[int, int], stride: int, dilation: int, channels: int, isa: Isa) -> Slide:
    """How a window slides; `stride` and `dilation` are horizontal, in pixels."""
    return Slide(
        window, stride // gcd(stride, dilation), channels < isa.f32, channels > isa.f32 and channels % isa.f32 != 0
    )


_TOGETHER = 32
"""Outputs whose sums are stored on the stack before they are finished: 64 are no faster."""

_LINES = 8
"""The most output rows that are computed together."""


def together(window: int, stride: int, dilation: int, pad: int, size: int, out: int) -> dict[str, int]:
    """The slots `lines` and `shared` for a window that moves over rows of `size` columns; all horizontal, in pixels.

    If outputs some columns apart form rows of their own, `shared` is what all these rows can share.
    """
    step = lcm(stride, dilation)
    taps, apart = step // dilation, step // stride
    before, longest = -(-window // taps) - 1, -(-out // apart)
    shared = before
    for first in range(min(apart, out)):
        left, count = first * stride - pad, -(-(out - first) // apart)
        leading = (before * step - dilation * (window - 1) - left + step - 1) // step
        inside = -(-(size - left - dilation * max(0, window - taps)) // step)
        shared = min(shared, max(0, leading), max(0, count - inside))
    return {"lines": min(_LINES, max(1, _TOGETHER // (longest + before))), "shared": shared}


Finish = Callable[[Sequence[Val], Val], None]
"""Stores an output: (sums, its row in the matrix of all outputs)."""


@frozen(eq=False)
class Sums:
    """How an output is computed in some registers of channels.

    `start` are its initial sums, `seen` what a column of pixels (from the top) contributes to all of its outputs,
    `plus` adds that to sums at a horizontal tap. `finish` prepares the storing of an output's sums.
    """

    start: Sequence[Val]
    seen: Callable[[Sequence[View]], Sequence[Val]]
    plus: Callable[[Sequence[Val], Sequence[Val], int], Sequence[Val]]
    finish: Callable[[], Finish]


Body = Callable[[Val, Val, Val | None], Sums]
"""Prepares the computation of some channels: (their first lane of all, the first channel, mask)."""


@frozen(eq=False)
class _Lines:
    """`count` output rows, and for each of them the rows of its windows.

    `places` has the address of their column 0, `pixels` the elements between two columns. A row outside of the picture
    repeats the padding pixel.
    """

    count: Val
    places: View
    pixels: View
    height: int


@frozen(eq=False)
class _Block:
    """Outputs `first`, `first + apart`, ..., `count` of them, and as many of each of the following lines.

    The window of the first begins at column `left`. Sums are stored at `stored_sums`.
    """

    first: Val
    apart: Val
    count: Val
    left: Val
    lines: _Lines
    stored_sums: Val


def each_slide(
    k: Kernel, task: Task, begin: Val, end: Val, slide: Slide, element: Type, bodies: Sequence[tuple[int, Body]]
) -> None:
    """Emit the loops around `bodies`, each for a number of registers of channels, the most first and one last.

    Work tiles are output rows through all images.
    """
    width, dilation, together = task.i64("out_w"), task.i64("dilation_w"), task.i64("lines")
    apart = dilation * slide.stride // task.i64("stride_w")
    height = slide.window[0]
    places = k.view(k.scratch(PTR, _LINES * height), PTR, height, 1)
    pixels = k.view(k.scratch(I64, _LINES * height), I64, height, 1)
    room = max((_TOGETHER + slide.before(k.isa, registers)) * registers for registers, _ in bodies)
    stored_sums = k.scratch(I32, room * k.isa.f32)
    with k.loop(end, begin, step=together) as line:
        lines = _Lines((end - line).min(together), places, pixels, height)
        _find(k, task, slide, element, line, lines)
        with k.loop(apart.min(width), nonempty=True) as x:
            count = (width - x + (apart - 1)) // apart
            with k.loop(count, step=_TOGETHER, nonempty=True) as done:
                first = x + done * apart
                left = first * task.i64("stride_w") - task.i64("pad_w")
                block = _Block(line * width + first, apart, (count - done).min(_TOGETHER), left, lines, stored_sums)
                _channels(k, task, slide, element, block, bodies)


def _find(k: Kernel, task: Task, slide: Slide, element: Type, first: Val, lines: _Lines) -> None:
    """Store the addresses of the window rows."""
    with k.loop(lines.count, nonempty=True) as i:
        line = first + i
        image, y = line // task.i64("out_h"), line % task.i64("out_h")
        top = y * task.i64("stride_h") - task.i64("pad_h")
        source = task.view("input", element, task.i64("image"), task.i64("row"))[image]
        for j in range(slide.window[0]):
            row = task.i64("again") if slide.again and j == slide.window[0] - 1 else k.index(j)
            at = top + task.i64("dilation_h") * row
            inside = at.ult(task.i64("in_h"))
            lines.places[i, j].store(inside.select(source[at].address, task.ptr("zero")))
            lines.pixels[i, j].store(inside.select(task.i64("pixel"), k.index(0)))


def _channels(
    k: Kernel, task: Task, slide: Slide, element: Type, block: _Block, bodies: Sequence[tuple[int, Body]]
) -> None:
    lanes, channels = k.isa.f32, task.i64("channels")
    start = k.index(0)
    for registers, body in bodies[:-1]:
        step = lanes * registers
        stop = channels - channels % step
        with k.loop(stop, start, step=step) as c:
            _outputs(k, task, slide, element, block, c, body(c, c, None))
        start = stop
    _, body = bodies[-1]
    if slide.masked:
        zero = k.index(0)
        _outputs(k, task, slide, element, block, zero, body(zero, zero, k.mask(lanes, channels)))
        return
    with k.loop(channels, start, step=lanes) as lane:
        c = lane.min(channels - lanes) if slide.overlaps else lane
        _outputs(k, task, slide, element, block, c, body(lane, c, None))


def _outputs(k: Kernel, task: Task, slide: Slide, element: Type, block: _Block, c: Val, sums: Sums) -> None:
    """Emit the outputs of a block: store all sums, then finish them."""
    registers = len(sums.start)
    parts = slide.parts(k.isa, registers)
    before = slide.before(k.isa, registers)
    shared = task.i64("shared") if len(parts) == 1 else k.index(0)
    for part in parts:
        _sums(k, task, part, element, block, (before, shared), c, sums)
    store, place = sums.finish(), k.var(block.stored_sums)
    size = registers * k.isa.f32
    with k.loop(block.lines.count, nonempty=True) as line:
        rows, out = k.view(place.get(), I32, size, k.isa.f32, 1), block.first + line * task.i64("out_w")
        place.set(rows[block.count + (before - shared)].address)
        with k.loop(block.count, nonempty=True) as i:
            store([rows[before + i, r].load(k.isa.f32) for r in range(registers)], out + i * block.apart)


def _sums(
    k: Kernel,
    task: Task,
    part: _Part,
    element: Type,
    block: _Block,
    steps: tuple[int, Val],
    c: Val,
    sums: Sums,
) -> None:
    """Store or add the sums of some taps; in each line, outputs that have only some of their columns come first.

    `steps` are the number of those outputs, and how many of them also end the line before.
    """
    begin = list(sums.start) if part.first == 0 else [k.zeros(I32, k.isa.f32) for _ in sums.start]
    carried = [[k.var(v) for v in begin] for _ in range(part.carried)]
    dilation, in_w = task.i64("dilation_w"), task.i64("in_w")
    step = dilation * part.stride
    zero = task.view("zero", element, 1)[c].address
    before, shared = steps
    left = block.left + dilation * (part.first + part.columns.start - before * part.stride)
    stop = left + (block.count + before) * step
    start, to = k.var(left), k.var(block.stored_sums)
    with k.loop(block.lines.count, nonempty=True) as line:
        pixels = [block.lines.pixels[line, y].load() for y in range(block.lines.height)]
        places = [block.lines.places[line, y].load() for y in range(block.lines.height)]
        ways = [k.view(p, element, pixel, 1)[start.get(), c] for p, pixel in zip(places, pixels, strict=True)]
        at = [k.var(_whole(k, way.address)) for way in ways]
        with k.loop(stop, start.get(), step=step, nonempty=True) as across:
            rows = [k.view(p.get(), element, 1) for p in at]
            for place, pixel in zip(at, pixels, strict=True):
                place.set(k.view(place.get(), element, pixel)[step].address)
            totals = [*([v.get() for v in one] for one in carried), begin]
            for j, column in enumerate(part.columns):
                if j:
                    across = across + dilation
                    rows = [
                        k.view(r.address, element, pixel, 1)[dilation] for r, pixel in zip(rows, pixels, strict=True)
                    ]
                inside = across.ult(in_w)
                seen = sums.seen([k.view(inside.select(r.address, zero), element, 1) for r in rows])
                for x, tap in part.of(column):
                    totals[x] = list(sums.plus(totals[x], seen, tap))
            put = k.view(to.get(), I32, k.isa.f32, 1)
            for r, value in enumerate(totals[0]):
                put[r].store(value + put[r].load(k.isa.f32) if part.first else value)
            to.set(put[len(begin)].address)
            for one, total in zip(carried, totals[1:], strict=True):
                for var, value in zip(one, total, strict=True):
                    var.set(value)
        start.set(left + shared * step)


def _whole(k: Kernel, address: Val) -> Val:
    """An opaque copy of an address, which LLVM's loop strength reduction cannot take apart.

    Otherwise it would add the part that all rows share, the channel, in every step.
    """
    return Val(k.b, k.b.value(PTR, f"freeze ptr {address.v.text}"))
