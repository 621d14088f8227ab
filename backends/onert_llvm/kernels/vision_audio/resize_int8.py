"""Images of bytes in another size: four neighbours weighted by their distance, as TFLite rounds."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, I64, Kernel, Val, View
from onert_llvm.kernels.arithmetic.requantize_int8 import as_byte, nearest


@frozen
class BilinearInt8(Value):
    """Each output pixel from four; work tiles are rows of the output through all images.

    `lines` and `columns` point to records of three 64-bit integers, one for each output row or column: the bytes from
    the beginning of an image (of a row) to the first and to the second input, and the second one's weight: in steps of
    1/1024 for signed bytes, the bits of a float32 for unsigned ones.
    """

    signed: bool = True

    slots = ("x", "out", "lines", "columns", "image", "out_h", "out_w", "channels")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, channels, across = k.isa.f32, task.i64("channels"), task.i64("out_w")
        whole = channels - channels % lanes
        with k.loop(end, begin) as row:
            image = task.view("x", I8, task.i64("image"))[row // task.i64("out_h")]
            line = task.view("lines", I64, 3, 1)[row % task.i64("out_h")]
            starts = [k.view(image.address, I8, 1)[line[i].load()] for i in (0, 1)]
            out = task.view("out", I8, across * channels, channels, 1)[row]
            with k.loop(across, nonempty=True) as x:
                column = task.view("columns", I64, 3, 1)[x]
                # top left, bottom left, top right, bottom right
                corners = [k.view(s.address, I8, 1)[column[i].load()] for i in (0, 1) for s in starts]
                weights = self._weight(k, line), self._weight(k, column)
                with k.loop(whole, step=lanes) as c:
                    self._store(k, out[x, c], corners, c, weights, None)
                with k.when(whole < channels):
                    self._store(k, out[x, whole], corners, whole, weights, k.mask(lanes, channels - whole))

    def _weight(self, k: Kernel, record: View) -> Val:
        weight = record[2].load().cast(I32)
        return (weight if self.signed else weight.bits(F32)).splat(k.isa.f32)

    def _store(
        self, k: Kernel, out: View, corners: list[View], c: Val, weights: tuple[Val, Val], mask: Val | None
    ) -> None:
        seen = [k.view(p.address, I8, 1)[c].load(k.isa.f32, mask).cast(I32, self.signed) for p in corners]
        value = _steps(seen, *weights) if self.signed else _floats(seen, *weights)
        out.store(as_byte(value), mask)


def _steps(seen: list[Val], down: Val, across: Val) -> Val:
    """Weights in steps of 1/1024, the total rounded halves away from zero."""
    up, before = down.like(1024) - down, across.like(1024) - across
    left, right = (seen[i] * up + seen[i + 1] * down for i in (0, 2))
    total = left * before + right * across
    size = (total.max(-total) + (1 << 19)) >> 20
    return (total > 0).select(size, -size)


def _floats(seen: list[Val], down: Val, across: Val) -> Val:
    """Weights in float32; the order of the operations is that of the reference."""
    top_left, bottom_left, top_right, bottom_right = (s.cast(F32) for s in seen)
    up, before = down.like(1.0) - down, across.like(1.0) - across
    total = top_left * up * before + bottom_left * down * before
    total = total + top_right * up * across + bottom_right * down * across
    return nearest(total).cast(I32)
