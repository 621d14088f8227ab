"""Pictures in another size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, I64, Kernel, Val, View, intrinsic
from onert_llvm.kernels.arithmetic.requantize_int8 import as_byte, nearest


@frozen
class ResizeBilinear(Value):
    """Each output: its four nearest inputs by their distance. Work tiles are rows of the output, through all images.

    `y_places` (int32) and `y_shares` (float32) say for each row of the output the two rows of the input that it lies
    between, and their shares. Across, neighbouring outputs between the same two columns are a run. `runs` (int32) has
    records of four: how many runs there are, then of each the two columns, the first output and the one behind the
    last. `x_shares` (float32) are the shares of both columns for each output.
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
            places, down = _taps(task, y, 2, "y_")
            above, below = (pixels[image * task.i64("in_h") + row] for row in places)
            out = task.view("out", F32, task.i64("out_w") * channels, channels, 1)[line]
            with k.loop(count, nonempty=True) as number:
                low, high, first, last = (runs[number + 1, i].load().cast(I64) for i in range(4))

                def register(at: Val, lanes: int) -> None:
                    near, far = (
                        _blend(k, above[x, at].load(lanes), below[x, at].load(lanes), down) for x in (low, high)
                    )
                    with k.loop(last, first, nonempty=True) as x:
                        shares = task.view("x_shares", F32, 2, 1)[x]
                        out[x, at].store(_blend(k, near, far, [shares[i].load() for i in range(2)]))

                _over(k, channels, k.isa.f32, register)


@frozen
class ResizePlanes(Value):
    """The same of pictures of one channel, whose neighbours are the lanes; work tiles are rows of the output.

    Each row between two of the input is put down in the thread's own of `rooms` first. `x_places` and `x_shares` are
    the columns on the left of all outputs, then those on the right. With `near` all columns of a register of outputs
    lie within two registers from the first one's on.
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
            rows, down = _taps(task, y, 2, "y_")
            above, below = (task.view("in", F32, columns, 1)[image * task.i64("in_h") + row] for row in rows)
            out = task.view("out", F32, width, 1)[line]

            def blended(at: Val, lanes: int) -> None:
                between[at].store(_blend(k, above[at].load(lanes), below[at].load(lanes), down))

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
    """Of each lane the element of two registers that an index names."""
    return intrinsic(k.b, "llvm.x86.avx512.vpermi2var.ps.512", found[0].type, found[0], index, found[1])


def planes_room(width: int, lanes: int) -> int:
    """Bytes that a thread of `ResizePlanes` takes for a row of so many inputs, and what is read behind it."""
    return -(-4 * (width + 2 * lanes) // 64) * 64


def _over(k: Kernel, count: Val, lanes: int, register: Callable[[Val, int], None]) -> None:
    """Neighbours in registers, the last of which overlaps the one before; in smaller ones where they are few."""
    with k.either(count >= lanes) as (many, few):
        with many, k.loop(count, step=lanes, nonempty=True) as at:
            register(at.min(count - lanes), lanes)
        with few:
            if lanes > 1:
                _over(k, count, lanes // 2, register)


def _blend(k: Kernel, one: Val, other: Val, shares: Sequence[Val]) -> Val:
    near, far = (share.splat(one.lanes) for share in shares)
    return k.fma(other, far, one * near)


def _taps(task: Task, at: Val, count: int, axis: str = "") -> tuple[list[Val], list[Val]]:
    """The inputs that an output along an axis is made of, and their shares."""
    places, shares = (task.view(f"{axis}{n}", kind, count, 1)[at] for n, kind in (("places", I32), ("shares", F32)))
    return [places[i].load().cast(I64) for i in range(count)], [shares[i].load() for i in range(count)]


def _mixed(k: Kernel, corners: Sequence[View], shares: Sequence[Val], out: View, at: Val, mask: Val | None) -> None:
    """One register of channels: the corners' sum by their shares."""
    lanes = k.isa.f32
    total = corners[0][at].load(lanes, mask) * shares[0]
    for corner, share in zip(corners[1:], shares[1:], strict=True):
        total = k.fma(corner[at].load(lanes, mask), share, total)
    out[at].store(total, mask)


@frozen
class Blend(Value):
    """Along one axis each output from so many inputs: `out[o, i]` is the sum of `in[o, places[i, j]] * shares[i, j]`.

    An element is `width` numbers, `inputs` and `outputs` are how many the axis has. Work tile t is `piece` outputs of
    o = t // pieces. With `filled` an element fills a register, and its last numbers are written with those before them
    as a whole one.
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
                places, parts = _taps(task, i, self.taps)
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
    """Each output pixel from four; work tiles are rows of the output through all images.

    `lines` and `columns` point to records of three 64-bit integers, one for each output row or column: the bytes from
    the beginning of an image (of a row) to the first and to the second input, and the bits of the second one's weight
    in float32.
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
                    out[x, c].store(as_byte(_floats(seen, *weights)), mask)


def _floats(seen: list[Val], down: Val, across: Val) -> Val:
    """Weights in float32; the order of the operations is that of the reference."""
    top_left, bottom_left, top_right, bottom_right = (s.cast(F32) for s in seen)
    up, before = down.like(1.0) - down, across.like(1.0) - across
    total = top_left * up * before + bottom_left * down * before
    total = total + top_right * up * across + bottom_right * down * across
    return nearest(total).cast(I32)


@frozen
class BilinearInt8(Value):
    """The same of signed bytes, with weights in whole steps of 1/1024; work tiles are rows of the output.

    Records have rows in place of bytes where they are of `lines`. Rows of the input that an output row lies between are
    first made as wide as it, in 32 bits, and stay in the thread's own of `rooms` for the output rows that follow.
    """

    slots = ("x", "out", "lines", "columns", "in_h", "line", "out_h", "out_w", "channels", "rooms", "room")

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
                # Two rows beside one another differ in their last bit.
                line = row // task.i64("out_h") * task.i64("in_h") + record[i].load()
                with k.when(here[line & 1].load().ne(line)):
                    here[line & 1].store(line)
                    self._widen(k, task, line, widened[line & 1])
                sides.append(widened[line & 1])
            down = record[2].load().cast(I32).splat(lanes)
            up, out = down.like(1024) - down, task.view("out", I8, width, 1)[row]
            for at, mask in k.registers(width, free=False):
                total = sides[0][at].load(lanes) * up + sides[1][at].load(lanes) * down
                out[at].store(as_byte((total + (total >> 31) + (1 << 19)) >> 20), mask)

    def _widen(self, k: Kernel, task: Task, line: Val, out: View) -> None:
        """A row of the input, as many pixels wide as the output: what is beyond a pixel is written over by the next."""
        lanes, channels = k.isa.f32, task.i64("channels")
        row = k.view(task.view("x", I8, task.i64("line"))[line].address, I8, 1)
        with k.loop(task.i64("out_w"), nonempty=True) as x:
            record = task.view("columns", I64, 3, 1)[x]
            across = record[2].load().cast(I32).splat(lanes)
            before, pixel = across.like(1024) - across, out[x * channels]
            low, high = (k.view(row[record[i].load()].address, I8, 1) for i in (0, 1))
            for c, mask in k.registers(channels, free=False):
                near, far = (side[c].load(lanes, mask).cast(I32) for side in (low, high))
                k.view(pixel.address, I32, 1)[c].store(near * before + far * across)


def resize_room(width: int, lanes: int) -> int:
    """Bytes that a thread of `BilinearInt8` takes for rows of so many results."""
    return -(-2 * 4 * (width + lanes) // 64) * 64
