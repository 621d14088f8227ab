"""Windows and runs of 16-bit numbers put together: means, sums, the greatest and the least."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F64, I16, I32, I64, Kernel, Val, Var, View
from onert_llvm.kernels.arithmetic.requantize_int8 import nearest
from onert_llvm.kernels.arithmetic.requantize_int16 import Rounding, ShortScaling
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW
from onert_llvm.kernels.contraction.implicit_im2col import each_tap, origin
from onert_llvm.kernels.elementwise.quantize_dequantize import each_register

from .pool_int8 import each_register_of_channels
from .reduce_int8 import Gather

_STARTS = {Gather.MAX: -(1 << 15), Gather.MIN: (1 << 15) - 1}


def _join(gather: Gather, total: Var, value: Val) -> None:
    old = total.get()
    total.set(old.max(value) if gather is Gather.MAX else old.min(value) if gather is Gather.MIN else old + value)


@frozen
class WindowPoolInt16(Value):
    """Pooling that keeps its quantisation, clamped to [`low`, `high`]; work tiles are rows of the output.

    A mean is rounded halves away from zero: `count[output]` (int32) says how many pixels an output has, whose sums fit
    32 bits; the row of padding holds zeros for a mean and the least number for the greatest.
    """

    gather: Gather

    @property
    def slots(self) -> tuple[str, ...]:
        counts = ("count",) if self.gather is Gather.AVERAGE else ()
        return ("c", "channels", *WINDOW, "low", "high", *counts)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with each_register_of_channels(k, task, begin, end) as (pixel, c, mask, position):
            self._channels(k, task, pixel, c, mask, position)

    def _channels(self, k: Kernel, task: Task, pixel: Val, c: Val, mask: Val, position: Val) -> None:
        lanes = k.isa.f32
        total = k.var(k.const(I32, _STARTS.get(self.gather, 0)).splat(lanes))
        with each_tap(k, task, [origin(k, task, pixel)], I16) as (_, (seen,)):
            _join(self.gather, total, seen[c].load(lanes, mask).cast(I32))
        result = total.get()
        if self.gather is Gather.AVERAGE:
            count = task.view("count", I32, 1)[position].load().cast(F64).splat(lanes)
            result = nearest(result.cast(F64) / count).cast(I32)
        kept = result.clamp(*(task.i64(n).cast(I32).splat(lanes) for n in ("low", "high")))
        task.view("c", I16, task.i64("channels"), 1)[pixel, c].store(kept.cast(I16), mask)


@frozen
class ReduceInt16(Value):
    """`out[block, column]` from `x[block, row, column]` for every row; all have `width` columns.

    Work tiles are registers of columns, `chunks` of each block; where there is but one column (`single`) they are
    blocks. Sums are scaled as `rounding` says, from where the task has them begin; their magnitude fits 32 bits.
    """

    gather: Gather
    rounding: Rounding = Rounding.FIXED
    single: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        own = ShortScaling(self.rounding).slots if self.gather is Gather.SCALED else ()
        return ("x", "rows", "width", "chunks", "out", *own)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, width, rows = k.isa.f32, task.i64("width"), task.i64("rows")
        with k.loop(end, begin) as t:
            if self.single:
                value = self._along(k, task, task.view("x", I16, rows, 1)[t], rows)
                task.view("out", I16, 1)[t].store(self._stored(k, task, value).lane(0))
                return
            block, column = t // task.i64("chunks"), (t % task.i64("chunks")) * lanes
            source = task.view("x", I16, rows * width, width, 1)[block]
            mask = k.mask(lanes, width - column)
            total = k.var(self._start(k).splat(lanes))
            with k.loop(rows) as row:
                _join(self.gather, total, source[row, column].load(lanes, mask).cast(I32))
            task.view("out", I16, width, 1)[block, column].store(self._stored(k, task, total.get()), mask)

    def _start(self, k: Kernel) -> Val:
        return k.const(I32, _STARTS.get(self.gather, 0))

    def _along(self, k: Kernel, task: Task, row: View, count: Val) -> Val:
        """What a row of neighbours comes to, in every lane."""
        lanes = k.isa.f32
        total, one = k.var(self._start(k).splat(lanes)), k.var(self._start(k))
        whole = count - count % lanes
        with k.loop(whole, step=lanes) as at:
            _join(self.gather, total, row[at].load(lanes).cast(I32))
        with k.loop(count, whole) as at:
            _join(self.gather, one, row[at].load().cast(I32))
        for lane in range(lanes):
            _join(self.gather, one, total.get().lane(lane))
        return one.get().splat(lanes)

    def _stored(self, k: Kernel, task: Task, value: Val) -> Val:
        if self.gather is not Gather.SCALED:
            return value.cast(I16)
        how = ShortScaling(self.rounding)
        return how.stored(k, task, value + how.bias(k, task, k.index(0)), how.lanes(k, task, k.index(0)))


@frozen
class SoftmaxInt16(Value):
    """TFLite's softmax of 16-bit numbers, row by row; work tiles are rows of `width`.

    `exps` holds the exponential of every distance from the greatest, `inverses` 513 samples of the reciprocal.
    """

    slots = ("x", "out", "width", "exps", "inverses")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width = task.i64("width")
        x, out = (task.view(name, I16, width, 1) for name in ("x", "out"))
        exps = task.view("exps", I16, 1)
        with k.loop(end, begin) as row:
            top = k.var(k.const(I32, -(1 << 15)))
            with k.loop(width) as at:
                top.set(top.get().max(x[row, at].load().cast(I32)))
            total = k.var(k.index(0))
            greatest = top.get()
            with k.loop(width) as at:
                below = greatest - x[row, at].load().cast(I32)
                found = exps[_index(below & 0xFFFF)].load()  # in the table even if the element was changed since
                out[row, at].store(found)
                total.set(total.get() + _index(found.cast(I32)))
            inverse, right = self._inverse(k, task, total.get().min((1 << 31) - 1).cast(I32))
            half = k.const(I32, 1) << (right - 1)

            def share(r: Val, at: Val, mask: Val | None) -> None:
                value = out[r, at].load(k.isa.f32, mask).cast(I32) * inverse.splat(k.isa.f32)
                shifted = (value + half.splat(k.isa.f32)) >> right.splat(k.isa.f32)
                out[r, at].store(shifted.clamp(0, 32767).cast(I16), mask)

            each_register(k, row, row + 1, width, share)

    def _inverse(self, k: Kernel, task: Task, total: Val) -> tuple[Val, Val]:
        """One over the sum as a number of 15 bits, and by how many bits products with it are shifted."""
        headroom = total.leading_zeros()
        shifted = ((total << (headroom - 1)) + (1 << 13)) >> 14
        at = (shifted - ((1 << 15) + (1 << 16))).clamp(-32768, 32767)
        samples = k.view(task.view("inverses", I16, 1)[_index((at >> 7) + 256)].address, I16, 1)
        base, following = (samples[i].load().cast(I32) for i in range(2))
        return base + (((following - base) * (at & 127) + 64) >> 7), k.const(I32, 31) - headroom


def _index(value: Val) -> Val:
    return value.cast(I64)
