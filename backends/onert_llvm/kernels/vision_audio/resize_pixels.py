"""Bilinear resizing of pictures with two to eight channels, several pixels in a register."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, I64, Kernel, Type, Val
from onert_llvm.kernels.arithmetic.requantize_int8 import as_byte

from .pixels import LANES, Pixels
from .resize import blend, nearest_of_corners, taps


@frozen
class ResizePixels(Value):
    """As `ResizeBilinear`, for `element`s that are floats or unsigned bytes; bytes are rounded as by `BilinearUint8`.

    `x_offsets` (int32) has the offsets in a row of each output's left inputs, then of the right ones. `x_shares` has
    their weights, repeated for each lane of a pixel. `rows` are the rows of all images. The last row of memory, beyond
    which nothing may be read, is read element by element.
    """

    pixels: Pixels
    element: Type = F32

    slots = ("in", "out", "in_h", "in_w", "out_h", "out_w", "rows", "y_places", "y_shares", "x_offsets", "x_shares")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        channels, span, width = self.pixels.channels, self.pixels.span, task.i64("out_w")
        offsets = task.view("x_offsets", I32, width, 1)
        shares = task.view("x_shares", F32, width * span, span, 1)
        source = task.view("in", self.element, task.i64("in_w") * channels, 1)
        with k.loop(end, begin) as line:
            image, y = line // task.i64("out_h"), line % task.i64("out_h")
            places, down = taps(task, y, 2, "y_")
            numbers = [image * task.i64("in_h") + place for place in places]
            rows = [source[number] for number in numbers]
            out = task.view("out", self.element, width * channels, channels, 1)[line]

            def several(x: Val) -> None:
                places = [[offsets[side, x + i].load().cast(I64) for i in range(self.pixels.count)] for side in (0, 1)]
                corners = [self.pixels.load(row, own) for own in places for row in rows]
                across = [shares[side, x].load(LANES) for side in (0, 1)]
                self.pixels.store(out[x], self._mixed(k, corners, down, across))

            with k.either(self.pixels.readable(numbers[0].max(numbers[1]), task.i64("rows"))) as (then, otherwise):
                with then, k.loop(width, step=self.pixels.count, nonempty=True) as x:
                    several(x.min(width - self.pixels.count))
                with otherwise, k.loop(width, nonempty=True) as x, k.loop(channels) as c:
                    corners = [row[offsets[i, x].load().cast(I64) + c].load() for i in (0, 1) for row in rows]
                    across = [shares[side, x].load() for side in (0, 1)]
                    out[x, c].store(self._mixed(k, corners, down, across))

    def _mixed(self, k: Kernel, corners: Sequence[Val], down: Sequence[Val], across: Sequence[Val]) -> Val:
        """The results of the corners top left, bottom left, top right and bottom right."""
        if self.element is I8:
            seen = [corner.cast(I32, signed=False) for corner in corners]
            return as_byte(nearest_of_corners(seen, down[1].splat(seen[0].lanes), across[1]))
        near, far = (blend(k, corners[i], corners[i + 1], down) for i in (0, 2))
        return k.fma(far, across[1], near * across[0])
