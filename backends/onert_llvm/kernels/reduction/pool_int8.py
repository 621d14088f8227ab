"""Pooling of bytes through windows of any size, tap by tap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, Kernel, Val
from onert_llvm.kernels.arithmetic.requantize_int8 import as_byte
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW
from onert_llvm.kernels.contraction.implicit_im2col import each_tap, origin

from .reduce_int8 import average


@contextmanager
def each_register_of_channels(k: Kernel, task: Task, begin: Val, end: Val) -> Iterator[tuple[Val, Val, Val, Val]]:
    """The pixels of rows of the output, and of each its channels a register at a time.

    Gives the pixel through all images, the first channel, the mask of channels, and the pixel's place in its image.
    """
    channels, across = task.i64("channels"), task.i64("out_w")
    area, lanes = across * task.i64("out_h"), k.isa.f32
    with k.loop(end * across, begin * across) as pixel, k.loop(channels, step=lanes, nonempty=True) as c:
        yield pixel, c, k.mask(lanes, channels - c), pixel % area


@frozen
class WindowPoolInt8(Value):
    """What `PoolInt8` computes, with its slots, for windows too large to be written out; work tiles are rows."""

    mean: bool
    signed: bool = True

    @property
    def slots(self) -> tuple[str, ...]:
        return ("c", "channels", "ldc", *WINDOW, "low", "high", *(("count",) if self.mean else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with each_register_of_channels(k, task, begin, end) as (pixel, c, mask, position):
            self._channels(k, task, pixel, c, mask, position)

    def _channels(self, k: Kernel, task: Task, pixel: Val, c: Val, mask: Val, position: Val) -> None:
        lanes = k.isa.f32
        start = 0 if self.mean else -128 if self.signed else 0
        total = k.var(k.const(I32, start).splat(lanes))
        with each_tap(k, task, [origin(k, task, pixel)], I8) as (_, (seen,)):
            value = seen[c].load(lanes, mask).cast(I32, self.signed)
            total.set(total.get() + value if self.mean else total.get().max(value))
        result = total.get()
        if self.mean:
            result = average(result, task.view("count", I32, 1)[position].load().splat(lanes))
        kept = result.clamp(*(task.i64(n).cast(I32).splat(lanes) for n in ("low", "high")))
        task.view("c", I8, task.i64("ldc"), 1)[pixel, c].store(as_byte(kept), mask)
