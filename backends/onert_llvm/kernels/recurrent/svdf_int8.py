"""SVDF (filters over features and time) of bytes: the stateful part, bit for bit as in TFLite."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, Kernel, Val
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.arithmetic.requantize_int8 import as_byte, fixed
from onert_llvm.kernels.reduction.fold import Fold, fold_lanes


@frozen
class FilterOverTime(Value):
    """One step of each item of the batch; a work tile is an item.

    `newest` has each filter's feature product, in 32 bits without a zero point, rows `padded` numbers apart; it is
    clamped to the state's type. The state of a filter are its last `memory` ones, the oldest first; they and their
    weights `time` are bytes with `state_zero`, or with `wide` 16-bit integers. The sums over `rank` filters of each of
    the `units` go to `sums` (rows also `padded` apart); these, with `bias`, times the multiplier `by_*` go to `y`.
    """

    wide: bool
    biased: bool

    @property
    def slots(self) -> tuple[str, ...]:
        ends = ("newest", "padded", "state", "state_out", "time", "y", "sums")
        sizes = ("memory", "units", "rank", "state_zero", "zero", "by_mantissa", "by_left", "by_right")
        return (*ends, *sizes, *(("bias",) if self.biased else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as item:
            sums = task.view("sums", I32, task.i64("padded"), 1)[item]
            with k.loop(task.i64("units"), nonempty=True) as unit:
                sums[unit].store(self._unit(k, task, item, unit))
            y = task.view("y", I8, task.i64("units"), 1)[item]

            for at, mask in k.registers(task.i64("units")):
                total = sums[at].load(k.isa.f32)
                if self.biased:
                    total = total + task.view("bias", I32, 1)[at].load(k.isa.f32)
                by = {part: _spread(k, task, f"by_{part}") for part in ("mantissa", "left", "right")}
                value = fixed(total, by) + _spread(k, task, "zero")
                y[at].store(as_byte(value.clamp(-128, 127)), mask)

    def _unit(self, k: Kernel, task: Task, item: Val, unit: Val) -> Val:
        """The sum over the filters of a unit, whose states advance by one step."""
        lanes, element, memory, rank = k.isa.f32, I16 if self.wide else I8, task.i64("memory"), task.i64("rank")
        own = memory * (task.i64("units") * rank)
        before, after = (task.view(name, element, own, memory, 1)[item] for name in ("state", "state_out"))
        newest = task.view("newest", I32, task.i64("padded"), 1)[item]
        time, zero, last = task.view("time", element, memory, 1), task.i64("state_zero").cast(I32), memory - 1
        total, ends = k.var(k.zeros(I32, lanes)), k.var(k.const(I32, 0))
        with k.loop(rank, nonempty=True) as number:
            at = unit * rank + number
            old, new, weights = before[at], after[at], time[at]

            for m, mask in k.registers(last):
                value = old[m + 1].load(lanes, mask)
                new[m].store(value, mask)
                weighted = (value.cast(I32) - zero.splat(lanes)) * weights[m].load(lanes, mask).cast(I32)
                total.set(total.get() + weighted)
            bound = 1 << (15 if self.wide else 7)
            value = (newest[at].load() + zero).clamp(-bound, bound - 1)
            new[last].store(value.cast(element))
            ends.set(ends.get() + (value - zero) * weights[last].load().cast(I32))
        return fold_lanes(Fold.SUM, total.get(), Kind.I32) + ends.get()


def _spread(k: Kernel, task: Task, slot: str) -> Val:
    return task.i64(slot).cast(I32).splat(k.isa.f32)
