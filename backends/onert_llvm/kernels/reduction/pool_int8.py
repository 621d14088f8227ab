"""Pooling of bytes through windows of any size, tap by tap."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import I8, I32, Kernel, Val
from onert_llvm.kernels.arithmetic.requantize_int8 import as_byte
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW
from onert_llvm.kernels.contraction.implicit_im2col import each_tap, origin

from .reduce_int8 import average


@frozen
class WindowPoolInt8(Value):
    """What `PoolInt8` computes, with its slots, for windows too large to be written out; work tiles are rows."""

    mean: bool
    signed: bool = True

    name = "window_pool_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("c", "channels", "ldc", *WINDOW, "low", "high", *(("count",) if self.mean else ())))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        channels, across = task.i64("channels"), task.i64("out_w")
        area = across * task.i64("out_h")
        with k.loop(end * across, begin * across) as pixel, k.loop(channels, step=k.isa.f32, nonempty=True) as c:
            self._channels(k, task, pixel, c, pixel % area)

    def _channels(self, k: Kernel, task: Task, pixel: Val, c: Val, position: Val) -> None:
        lanes = k.isa.f32
        mask = k.mask(lanes, task.i64("channels") - c)
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
