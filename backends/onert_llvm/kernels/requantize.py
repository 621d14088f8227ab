"""From 32-bit sums to stored bytes, bit for bit as TFLite rounds (`onert.ir.fixed_point`).

With p = x · mantissa (64 bits) gemmlowp's saturating rounding doubling high multiply is floor((p + 2**30) / 2**31): its
nudge of 1 - 2**30 for negative products and division towards zero round the same way, and a mantissa in [0, 2**31)
cannot saturate. The division by 2**e rounds halves away from zero: with t = y - (y < 0) it is (floor(t / 2**(e - 1)) +
1) >> 1 for e > 0, and nothing can overflow because |y| <= 2**31 - 2.
"""

from __future__ import annotations

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import I8, I32, I64, Kernel, Val, View, vec

SLOTS = ("columns", "zero_point", "low", "high")
"""`columns`:

what `packing.pack_columns` makes. The result is clamped to [`low`, `high`] after the zero point was added.
"""

FIELDS = ("bias", "mantissa", "right", "left")
"""What each register of columns finds in `columns`, one after the other, 32 bits a lane."""


@frozen
class Requantize:
    """`left`: some multiplier is 1 or more, and sums are shifted left before they are multiplied.

    `weight_zero_point`: weights have a zero point, so rows need their sums (slots `row_sums`, `weight_zero`).
    """

    left: bool = False
    weight_zero_point: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return (*SLOTS, *(("row_sums", "weight_zero") if self.weight_zero_point else ()))


SHRINKING = Requantize()
"""Every multiplier is below 1 and weights have no zero point."""


@frozen(eq=False)
class Lanes:
    """The parameters of one register of columns."""

    bias: Val
    even: Val
    odd: Val
    right: Val
    left: Val


def load_lanes(k: Kernel, task: Task, column: Val) -> Lanes:
    """The parameters of the columns from `column` on, which begins a register."""
    lanes = k.isa.f32
    fields = task.view("columns", I32, len(FIELDS), 1)[column]
    bias, mantissa, right, left = (fields[i * lanes].load(lanes) for i in range(len(FIELDS)))
    return Lanes(bias, _low(mantissa), _high(mantissa), right, left)


def bias(k: Kernel, task: Task, column: Val) -> Val:
    """The bias of the columns from `column` on: where their accumulators start."""
    return task.view("columns", I32, len(FIELDS), 1)[column].load(k.isa.f32)


def same_lanes(k: Kernel, mantissa: Val, right: Val, left: Val) -> Lanes:
    """The parameters of columns that share one multiplier, given as scalars of 32 bits; no bias."""
    spread = mantissa.splat(k.isa.f32)
    zero = k.zeros(I32, k.isa.f32)
    return Lanes(zero, _low(spread), _high(spread), right.splat(k.isa.f32), left.splat(k.isa.f32))


def _pairs(x: Val) -> Val:
    return x.bits(vec(I64, x.lanes // 2))


def _low(x: Val) -> Val:
    """The even lanes as 64 bits."""
    return (_pairs(x) << 32) >> 32


def _high(x: Val) -> Val:
    """The odd lanes as 64 bits."""
    return _pairs(x) >> 32


def requantize(how: Requantize, x: Val, lanes: Lanes) -> Val:
    """`x` times the columns' multipliers, in 32 bits."""
    return _scaled(x << lanes.left if how.left else x, lanes.even, lanes.odd, lanes.right)


def _scaled(x: Val, even_mantissa: Val, odd_mantissa: Val, right: Val) -> Val:
    """`x` times the mantissas, over 2 to the power of 31 and `right`, rounded as gemmlowp does."""
    even = (_low(x) * even_mantissa + (1 << 30)).lshr(31)
    odd = (_high(x) * odd_mantissa + (1 << 30)) << 1
    mixed = [i if i % 2 == 0 else x.lanes + i for i in range(x.lanes)]
    y = even.bits(x.type).shuffle(mixed, odd.bits(x.type))
    shifts = right > 0
    t = (y + (y >> 31)) >> (right - 1).max(0)
    return shifts.select((t + 1) >> 1, y)


def store_bytes(task: Task, out: View, x: Val, mask: Val | None) -> None:
    """Add the zero point, clamp, and store the low bytes."""
    shifted = x + task.i64("zero_point").cast(I32)
    kept = shifted.clamp(task.i64("low").cast(I32).splat(x.lanes), task.i64("high").cast(I32).splat(x.lanes))
    out.store(kept.cast(I8), mask)
