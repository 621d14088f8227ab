"""Depthwise convolution in float32."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val
from onert_llvm.kernels.contraction.epilogue import PLAIN, Epilogue, row_windows
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW

from .depthwise_strip import Each, Pixels, Row, Strip, each_strip


@frozen
class StripsF32(Value):
    """A convolution whose work tiles are output rows, through all images, computed strip by strip; `apart` is as for
    `each_strip`.
    """

    strip: Strip
    epilogue: Epilogue = PLAIN
    apart: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return ("w", "c", "channels", "ldc", *self.strip.slots, *WINDOW, *self.epilogue.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(out: Val, pixels: Pixels) -> Each:
            width = task.i64("ldc")
            target = k.view(task.view("c", F32, width, 1)[out].address, F32, width, 1)
            others = {n: v[out] for n, v in row_windows(k, task, self.epilogue.matrices).items()}
            rows = {n: k.view(v.address, F32, task.i64(f"{n}_stride"), 1) for n, v in others.items()}

            def each(c: Val, mask: Val | None) -> None:
                given = self.epilogue.given(task, k.isa.f32)
                for x, value in enumerate(self._sums(k, task, pixels, c, mask)):
                    places = {n: v[x, c] for n, v in rows.items()}
                    target[x, c].store(self.epilogue.apply(k, task, value, c, places, mask, given), mask)

            return each

        each_strip(k, task, begin, end, self.strip, F32, body, self.apart)

    def _sums(self, k: Kernel, task: Task, pixels: Pixels, c: Val, mask: Val | None) -> list[Val]:
        """The sums of a strip's outputs, for a register of channels starting at `c`."""
        raise NotImplementedError


@frozen
class DepthwiseF32(StripsF32):
    """A depthwise convolution; weights are `[taps, channels]`.

    A filter is read once per strip of outputs, and so is a pixel that several of their windows contain.
    """

    def _sums(self, k: Kernel, task: Task, pixels: Pixels, c: Val, mask: Val | None) -> list[Val]:
        lanes, strip = k.isa.f32, self.strip
        taps, channels = strip.window[1], task.i64("channels")
        acc = [k.var(self.epilogue.start(k, task, c, lanes, mask)) for _ in range(strip.across)]
        filters = task.view("w", F32, 1)[c].address
        outer = pixels.across if strip.together > 1 else {}
        beside = {column: _inside(k, task, x, c) for column, x in outer.items()}

        def add(tap: Val, row: Row) -> None:
            weights = k.view(filters, F32, channels * taps, channels, 1)[tap]
            places = {column: row.pixels[column] if column in beside else row[column] for column in strip.columns}
            seen: dict[int, Val] = {}
            for tx in range(taps):
                w = weights[tx].load(lanes, mask)
                for x, total in enumerate(acc):
                    column = x * strip.stride + tx * strip.dilation
                    if column not in seen:  # loaded late, so that wide windows need no more registers
                        seen[column] = places[column].load(lanes, beside.get(column, mask))
                    total.set(k.fma(seen[column], w, total.get()))

        pixels.each_row(c, add)
        return [total.get() for total in acc]


def _inside(k: Kernel, task: Task, x: Val, c: Val) -> Val:
    """The mask of lanes inside the picture, starting at channel `c` of the pixel in column `x`."""
    lanes, pixel = k.isa.f32, task.i64("pixel")
    first, end = (value.cast(I32).splat(lanes) for value in (x * pixel + c, task.i64("in_w") * pixel))
    return (k.iota(I32, lanes) + first).ult(end)
