"""Copies of the groups of a convolution's picture apart, as 16-bit numbers and with margins."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, Kernel, Val, View


@frozen
class SeparateGroups(Value):
    """`out[group, y, x, :channels]` are the bytes of the pixel at `(y - pad_h, x - pad_w)`, or of the pixel at `zero`.

    For each group, `out` has `lines` rows of `line_pixels` pixels of `pitch` 16-bit numbers; a work tile is a row of
    all groups. Bytes are `signed` or not, and are copied `piece` at a time, a divisor of the channels, which are one
    piece if `single`.
    """

    signed: bool
    piece: int
    single: bool

    slots = (
        *("input", "zero", "in_h", "in_w", "pixel", "row", "pad_h", "pad_w"),
        *("out", "lines", "line_pixels", "pitch", "groups", "channels"),
    )

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        channels, line = task.i64("channels"), task.i64("line_pixels") * task.i64("pitch")
        source = task.view("input", I8, task.i64("row"), task.i64("pixel"), 1)
        target = task.view("out", I16, task.i64("lines") * line, line, task.i64("pitch"), 1)
        zero = task.ptr("zero")
        with k.loop(end, begin) as tile, k.loop(task.i64("groups"), nonempty=True) as group:
            y = tile - task.i64("pad_h")
            inside = y.ult(task.i64("in_h"))
            with k.loop(task.i64("line_pixels"), nonempty=True) as column:
                x = column - task.i64("pad_w")
                seen = inside & x.ult(task.i64("in_w"))
                pixel = k.view(seen.select(source[y, x, group * channels].address, zero), I8, 1)
                to = target[group, tile, column]

                def copy(at: Val | int, pixel: View = pixel, to: View = to) -> None:
                    to[at].store(pixel[at].load(self.piece).cast(I16, signed=self.signed))

                if self.single:
                    copy(0)
                else:
                    with k.loop(channels, step=self.piece, nonempty=True) as at:
                        copy(at)
