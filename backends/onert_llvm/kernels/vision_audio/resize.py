"""Resizing of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I16, I32, I64, Kernel, Type, Val, View, intrinsic
from onert_llvm.kernels.arithmetic.requantize_int8 import as_byte, nearest

from .pixels import LANES, Pixels


@frozen
class ResizeBilinear(Value):
    """Bilinear: each output from its four nearest inputs, weighted by distance. Work tiles are output rows, through all
    images.

    `y_places` (int32) and `y_shares` (float32) have for each output row the two input rows around it and their weights.
    Adjacent outputs between the same two columns form a run. `runs` (int32) has records of four: the number of runs,
    then for each run its two columns, the first output and the one after the last. `x_shares` (float32) are the weights
    of both columns for each output.
    """

    slots = (
        *("in", "out", "in_h", "in_w", "out_h", "out_w", "channels"),
        *("y_places", "y_shares", "runs", "x_shares"),
    )

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        channels = task.i64("channels")
        runs = task.view("runs", I32, 4, 1)
        count = runs[0, 0].load().cast(I64)
        with k.loop(end, begin) as line:
            image, y = line // task.i64("out_h"), line % task.i64("out_h")
            pixels = task.view("in", F32, task.i64("in_w") * channels, channels, 1)
            places, down = taps(task, y, 2, "y_")
            above, below = (pixels[image * task.i64("in_h") + row] for row in places)
            out = task.view("out", F32, task.i64("out_w") * channels, channels, 1)[line]
            with k.loop(count, nonempty=True) as number:
                low, high, first, last = (runs[number + 1, i].load().cast(I64) for i in range(4))

                def register(at: Val, lanes: int) -> None:
                    near, far = (
                        blend(k, above[x, at].load(lanes), below[x, at].load(lanes), down) for x in (low, high)
                    )
                    with k.loop(last, first, nonempty=True) as x:
                        shares = task.view("x_shares", F32, 2, 1)[x]
                        out[x, at].store(blend(k, near, far, [shares[i].load() for i in range(2)]))

                _over(k, channels, k.isa.f32, register)


@frozen
class ResizePlanes(Value):
    """The same for pictures of one channel, with adjacent outputs in the lanes; work tiles are output rows.

    Each row is first interpolated vertically into the thread's own part of `rooms`. `x_places` and `x_shares` are the
    left columns of all outputs, then the right ones. `near`: all columns of a register of outputs are within two
    registers, starting at the first output's column.
    """

    near: bool = False

    slots = (
        *("in", "out", "in_h", "in_w", "out_h", "out_w", "rooms", "room"),
        *("y_places", "y_shares", "x_places", "x_shares"),
    )

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        columns, width, between = task.i64("in_w"), task.i64("out_w"), k.view(task.own("rooms", "room"), F32, 1)
        places, shares = (task.view(f"x_{n}", kind, width, 1) for n, kind in (("places", I32), ("shares", F32)))
        with k.loop(end, begin) as line:
            image, y = line // task.i64("out_h"), line % task.i64("out_h")
            rows, down = taps(task, y, 2, "y_")
            above, below = (task.view("in", F32, columns, 1)[image * task.i64("in_h") + row] for row in rows)
            out = task.view("out", F32, width, 1)[line]

            def blended(at: Val, lanes: int) -> None:
                between[at].store(blend(k, above[at].load(lanes), below[at].load(lanes), down))

            def picked(at: Val, lanes: int) -> None:
                first = places[0, at].load()
                found = [between[first.cast(I64) + i * lanes].load(lanes) for i in range(2)]
                ends = [_picked(k, found, places[i, at].load(lanes) - first.splat(lanes)) for i in range(2)]
                one, other = (shares[i, at].load(lanes) for i in range(2))
                out[at].store(k.fma(ends[1], other, ends[0] * one))

            _over(k, columns, k.isa.f32, blended)
            if self.near:
                with k.loop(width, step=k.isa.f32, nonempty=True) as x:
                    picked(x.min(width - k.isa.f32), k.isa.f32)
            else:
                with k.loop(width, nonempty=True) as x:
                    one, other = (between[places[i, x].load().cast(I64)].load() for i in range(2))
                    out[x].store(k.fma(other, shares[1, x].load(), one * shares[0, x].load()))


def _picked(k: Kernel, found: Sequence[Val], index: Val) -> Val:
    """For each lane, the element of two registers selected by an index."""
    return intrinsic(k.b, "llvm.x86.avx512.vpermi2var.ps.512", found[0].type, found[0], index, found[1])


def planes_room(width: int, lanes: int) -> int:
    """Bytes that a thread of `ResizePlanes` needs for a row of `width` inputs, including those read beyond it."""
    return -(-4 * (width + 2 * lanes) // 64) * 64


def _over(k: Kernel, count: Val, lanes: int, register: Callable[[Val, int], None]) -> None:
    """Registers of neighbours, the last of which overlaps the one before; narrower ones for short rows."""
    with k.either(count >= lanes) as (many, few):
        with many, k.loop(count, step=lanes, nonempty=True) as at:
            register(at.min(count - lanes), lanes)
        with few:
            if lanes > 1:
                _over(k, count, lanes // 2, register)


def blend(k: Kernel, one: Val, other: Val, shares: Sequence[Val]) -> Val:
    """Two values, weighted."""
    near, far = (share.splat(one.lanes) for share in shares)
    return k.fma(other, far, one * near)


def taps(task: Task, at: Val, count: int, axis: str = "") -> tuple[list[Val], list[Val]]:
    """The inputs of an output along an axis, and their weights."""
    places, shares = (task.view(f"{axis}{n}", kind, count, 1)[at] for n, kind in (("places", I32), ("shares", F32)))
    return [places[i].load().cast(I64) for i in range(count)], [shares[i].load() for i in range(count)]


def _mixed(k: Kernel, corners: Sequence[View], shares: Sequence[Val], out: View, at: Val, mask: Val | None) -> None:
    """Store one register of channels: the weighted sum of the corners."""
    lanes = k.isa.f32
    total = corners[0][at].load(lanes, mask) * shares[0]
    for corner, share in zip(corners[1:], shares[1:], strict=True):
        total = k.fma(corner[at].load(lanes, mask), share, total)
    out[at].store(total, mask)


@frozen
class Blend(Value):
    """Outputs along one axis from `taps` inputs each: `out[o, i]` is the sum of `in[o, places[i, j]] * shares[i, j]`.

    An element is `width` numbers; `inputs` and `outputs` are the axis's lengths. Work tile t is `piece` outputs of
    o = t // pieces. With `filled` an element fills a register, and its last numbers are stored as a whole register that
    overlaps the previous one.
    """

    taps: int = 2
    filled: bool = False

    slots = ("in", "out", "places", "shares", "inputs", "outputs", "width", "piece", "pieces")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, count = task.i64("width"), task.i64("outputs")
        with k.loop(end, begin) as tile:
            outer, first = tile // task.i64("pieces"), (tile % task.i64("pieces")) * task.i64("piece")
            source = task.view("in", F32, task.i64("inputs") * width, width, 1)[outer]
            target = task.view("out", F32, count * width, width, 1)[outer]
            with k.loop((first + task.i64("piece")).min(count), first, nonempty=True) as i:
                places, parts = taps(task, i, self.taps)
                shares = [part.splat(k.isa.f32) for part in parts]
                self._element(k, width, partial(_mixed, k, [source[p] for p in places], shares, target[i]))

    def _element(self, k: Kernel, width: Val, register: Callable[[Val, Val | None], None]) -> None:
        if not self.filled:
            for at, mask in k.registers(width):
                register(at, mask)
            return
        lanes = k.isa.f32
        whole = width - width % lanes
        with k.loop(whole, step=lanes, nonempty=True) as at:
            register(at, None)
        with k.when(whole < width):
            register(width - lanes, None)


@frozen
class BilinearUint8(Value):
    """Each output pixel from four; work tiles are output rows through all images.

    `lines` and `columns` point to records of three 64-bit integers per output row or column: the byte offsets within an
    image (a row) of the first and the second input, and the float32 bits of the second one's weight.
    """

    slots = ("x", "out", "lines", "columns", "image", "out_h", "out_w", "channels")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, channels, across = k.isa.f32, task.i64("channels"), task.i64("out_w")
        with k.loop(end, begin) as row:
            image = task.view("x", I8, task.i64("image"))[row // task.i64("out_h")]
            line = task.view("lines", I64, 3, 1)[row % task.i64("out_h")]
            starts = [k.view(image.address, I8, 1)[line[i].load()] for i in (0, 1)]
            out = task.view("out", I8, across * channels, channels, 1)[row]
            with k.loop(across, nonempty=True) as x:
                column = task.view("columns", I64, 3, 1)[x]
                # top left, bottom left, top right, bottom right
                corners = [k.view(s.address, I8, 1)[column[i].load()] for i in (0, 1) for s in starts]
                weights = [record[2].load().cast(I32).bits(F32).splat(lanes) for record in (line, column)]
                for c, mask in k.registers(channels, free=False):
                    seen = [k.view(p.address, I8, 1)[c].load(lanes, mask).cast(I32, signed=False) for p in corners]
                    out[x, c].store(as_byte(nearest_of_corners(seen, *weights)), mask)


def nearest_of_corners(seen: list[Val], down: Val, across: Val) -> Val:
    """Bytes with weights in float32, rounded; the order of operations is that of the reference."""
    top_left, bottom_left, top_right, bottom_right = (s.cast(F32) for s in seen)
    up, before = down.like(1.0) - down, across.like(1.0) - across
    total = top_left * up * before + bottom_left * down * before
    total = total + top_right * up * across + bottom_right * down * across
    return nearest(total).cast(I32)


@frozen
class BilinearIntegers(Value):
    """The same for signed integers of 8 or 16 bits (`element`), with weights in units of 1/1024.

    Records of `lines` have row numbers in place of byte offsets. The input rows around an output row are first resized
    horizontally, in 32 bits, and stay in the thread's own part of `rooms` for the following output rows. If there are
    few channels, several `pixels` are resized together: `shares` are the weights of columns for each lane of a pixel,
    and `rows` those of all images, beyond the last of which nothing may be read.
    """

    element: Type = I8
    pixels: Pixels | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        own = ("x", "out", "lines", "columns", "in_h", "line", "out_h", "out_w", "channels", "rooms", "room")
        return own if self.pixels is None else (*own, "rows", "shares")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width = k.isa.f32, task.i64("out_w") * task.i64("channels")
        widened = k.view(task.own("rooms", "room"), I32, width + lanes, 1)
        here = k.view(k.scratch(I64, 2), I64, 1)
        for i in (0, 1):
            here[i].store(k.const(I64, -1))
        with k.loop(end, begin) as row:
            record = task.view("lines", I64, 3, 1)[row % task.i64("out_h")]
            sides = []
            for i in (0, 1):
                # Adjacent rows differ in their last bit.
                line = row // task.i64("out_h") * task.i64("in_h") + record[i].load()
                with k.when(here[line & 1].load().ne(line)):
                    here[line & 1].store(line)
                    self._widen(k, task, line, widened[line & 1])
                sides.append(widened[line & 1])
            down = record[2].load().cast(I32).splat(lanes)
            up, out = down.like(1024) - down, task.view("out", self.element, width, 1)[row]
            for at, mask in k.registers(width, free=False):
                seen = [side[at].load(lanes) for side in sides]
                out[at].store(self._scaled(seen, (up, down)), mask)

    def _scaled(self, seen: Sequence[Val], weights: Sequence[Val]) -> Val:
        """The weighted sum of 26-bit numbers, in 64 bits for 16-bit elements, halves rounded away from zero."""
        if self.element is I8:
            total = seen[0] * weights[0] + seen[1] * weights[1]
            return as_byte((total + (total >> 31) + (1 << 19)) >> 20)
        near, far = (x.cast(I64) * weight.cast(I64) for x, weight in zip(seen, weights, strict=True))
        total = near + far
        return ((total + (total >> 63) + (1 << 19)) >> 20).cast(I16)

    def _widen(self, k: Kernel, task: Task, line: Val, out: View) -> None:
        """Resize an input row to the output's width; what exceeds a pixel is overwritten by the next."""
        row = k.view(task.view("x", self.element, task.i64("line"))[line].address, self.element, 1)
        if self.pixels is None:
            self._one_by_one(k, task, row, out)
            return
        with k.either(self.pixels.readable(line, task.i64("rows"))) as (then, otherwise):
            with then:
                self._together(k, task, row, out, self.pixels)
            with otherwise:
                self._one_by_one(k, task, row, out)

    def _together(self, k: Kernel, task: Task, row: View, out: View, pixels: Pixels) -> None:
        records, count = task.view("columns", I64, 3, 1), pixels.count
        with k.loop(task.i64("out_w"), step=count, nonempty=True) as at:
            x = at.min(task.i64("out_w") - count)
            low, high = (
                pixels.load(row, [records[x + i, side].load() for i in range(count)]).cast(I32) for side in (0, 1)
            )
            across = task.view("shares", I32, pixels.span, 1)[x].load(LANES)
            place = k.view(out[x * pixels.channels].address, I32, 1)
            pixels.store(place, low * (across.like(1024) - across) + high * across)

    def _one_by_one(self, k: Kernel, task: Task, row: View, out: View) -> None:
        lanes, channels = k.isa.f32, task.i64("channels")
        with k.loop(task.i64("out_w"), nonempty=True) as x:
            record = task.view("columns", I64, 3, 1)[x]
            across = record[2].load().cast(I32).splat(lanes)
            before, pixel = across.like(1024) - across, out[x * channels]
            low, high = (k.view(row[record[i].load()].address, self.element, 1) for i in (0, 1))
            for c, mask in k.registers(channels, free=False):
                near, far = (side[c].load(lanes, mask).cast(I32) for side in (low, high))
                k.view(pixel.address, I32, 1)[c].store(near * before + far * across)


def resize_room(width: int, lanes: int) -> int:
    """Bytes that a thread of `BilinearIntegers` needs for rows of `width` results."""
    return -(-2 * 4 * (width + lanes) // 64) * 64
