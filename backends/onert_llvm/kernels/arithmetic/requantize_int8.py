"""Requantises 32-bit sums to bytes, bit for bit as TFLite rounds (`onert.ir.ops.arithmetic.fixed_point` and
`rescale`).

With p = x · mantissa (64 bits), gemmlowp's saturating rounding doubling high multiply is y = floor((p + 2**30) /
2**31): its nudge of 1 - 2**30 for negative products with division towards zero rounds the same way, and a mantissa in
[0, 2**31) cannot saturate. The division by 2**e rounds halves away from zero: floor((y - (y < 0) + 2**(e - 1)) / 2**e)
for e > 0.

If the sums are known to be small (`Scaling.NARROW`), all addends, the zero point too, become part of the product's high
half: hi32(2·p + 2**31 + c · 2**32) is y + c. The test y < 0 may then be x < 0, because the two differ only if y is 0,
when 2**(e - 1) - 1 and 2**(e - 1) give the same result. The sum is stored as x + 2**31, unsigned, so that 2 · mantissa
fits the factors of an unsigned product; the excess is subtracted by the same constant. If results below the zero point
are clamped to it, the sign is irrelevant: without its correction they are still below it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I8, I16, I32, I64, Kernel, Val, intrinsic, vec
from onert_llvm.irbuilder.text import constant

from .byte_table import loaded, looked_up


class Scaling(Enum):
    """How sums are scaled, and the 32-bit fields of slot `columns` for each register of columns, in order.

    `NARROW`: a fixed-point multiplier below 1/2 for sums so small that nothing overflows; includes the zero point.
    `WIDE`: any fixed-point multiplier on any sum. `FLOAT`: a multiplier as floats that round every sum the same, for
    processors whose instructions encode a rounding mode; includes the zero point, and `zero` is the image of a sum of 0
    (`schedule/float_scaling.py`). `REAL`: a float64 multiplier, rounded once, halves away from zero; `EXACT`: the same
    result in integers, for processors without float64.

    `QUOTIENT` and `PRODUCT` are the results of float32 operations, each rounded, then rounded to the nearest integer,
    ties to even: (sum times factor, plus term) divided by a number common to all columns (slots `inverse` and `rest`
    hold its inverse); or (sum plus term) times factor. `WHOLE` is subtracted from slot `zero_point`.
    """

    NARROW = ("bias", "even", "odd", "even_offset", "odd_offset", "right")
    WIDE = ("bias", "mantissa", "right", "left")
    FLOAT = ("bias", "factor", "rest", "added", "below", "zero")
    REAL = ("bias", "first_half", "second_half")
    EXACT = ("bias", "mantissa_low", "mantissa_high", "shift")
    QUOTIENT = ("bias", "factor", "term")
    PRODUCT = ("bias", "term", "factor")


@frozen
class Requantize(Value):
    """The `scaling` of sums; `clamped`: results are bounded by more than their type.

    `weight_zero_point`: weights have a zero point, so row sums are needed (slot `weight_zero`). `rectified`: no result
    is below the zero point, which makes `NARROW` scaling cheaper. `tabled`: bytes are mapped by a table before they are
    stored (slot `table`, `byte_table.stored_table`).
    """

    scaling: Scaling = Scaling.NARROW
    clamped: bool = False
    weight_zero_point: bool = False
    rectified: bool = False
    tabled: bool = False

    @property
    def moves(self) -> bool:
        """Whether the zero point is included in the fields of each column."""
        return self.scaling in (Scaling.NARROW, Scaling.FLOAT)

    @property
    def slots(self) -> tuple[str, ...]:
        """`columns` is packed by `weight_packing.pack_columns`; results are clamped to [`low`, `high`]."""
        return (
            "columns",
            *(() if self.moves else ("zero_point",)),
            *(("inverse", "rest") if self.scaling is Scaling.QUOTIENT else ()),
            *(("low", "high") if self.clamped else ()),
            *(("weight_zero",) if self.weight_zero_point else ()),
            *(("table",) if self.tabled else ()),
        )

    def lanes(self, k: Kernel, task: Task, column: Val, slot: str = "columns") -> dict[str, Val]:
        """The parameters of the register of columns that begins at `column`."""
        names = self.scaling.value
        fields = task.view(slot, I32, len(names), 1)[column]
        return {name: fields[i * k.isa.f32].load(k.isa.f32) for i, name in enumerate(names)}

    def bias(self, k: Kernel, task: Task, column: Val) -> Val:
        """The bias of the columns from `column` on, which initialises their accumulators."""
        return task.view("columns", I32, len(self.scaling.value), 1)[column].load(k.isa.f32)

    def stored(self, task: Task, signed: bool, x: Val, lanes: dict[str, Val]) -> Val:
        """The sums `x` times the columns' multipliers plus the zero point, clamped: 32-bit values that fit a byte."""
        return bounded(task, self.clamped, signed, self.with_zero_point(task, x, lanes))

    def with_zero_point(self, task: Task, x: Val, lanes: dict[str, Val]) -> Val:
        """The same before clamping."""
        if self.scaling is Scaling.QUOTIENT:
            real = _quotient(x, lanes, *(task.f32(name).splat(x.lanes) for name in ("inverse", "rest")))
        else:
            real = scaled(self.scaling, x, lanes, self.rectified)
        return real if self.moves else real + task.i64("zero_point").cast(I32)

    def table(self, k: Kernel, task: Task) -> Callable[[Val], Val]:
        """Maps bytes before they are stored, by the task's table if there is one."""
        if not self.tabled:
            return lambda x: x
        registers = loaded(k, task.view("table", I8, 1))
        return lambda x: looked_up(k, registers, x)


def scaled(how: Scaling, x: Val, lanes: dict[str, Val], rectified: bool = False) -> Val:
    """The sums times the columns' multipliers, plus the zero point if it is included in these."""
    if how is Scaling.NARROW:
        return _narrow(x, lanes, rectified)
    if how is Scaling.FLOAT:
        return _float(x, lanes, rectified)
    if how is Scaling.EXACT:
        return exact(x, lanes)
    if how is Scaling.PRODUCT:
        return _whole((x.cast(F32) + _real_lanes(x, lanes, "term")) * _real_lanes(x, lanes, "factor"))
    return _real(x, lanes) if how is Scaling.REAL else fixed(x, lanes)


def bounded(task: Task, clamped: bool, signed: bool, x: Val) -> Val:
    """`x` clamped to the task's bounds, or to those of its type."""
    if clamped:
        return x.clamp(*(task.i64(name).cast(I32).splat(x.lanes) for name in ("low", "high")))
    return x.clamp(-128, 127) if signed else x.clamp(0, 255)


def _pairs(x: Val) -> Val:
    return x.bits(vec(I64, x.lanes // 2))


def _interleaved(even: Val, odd: Val, like: Val, high: bool) -> Val:
    """One half of each 64-bit lane of two registers: even lanes from the first, odd lanes from the second."""
    lanes = like.lanes
    order = [i + (1 if high else 0) if i % 2 == 0 else lanes + i for i in range(lanes)]
    return even.bits(like.type).shuffle(order, odd.bits(like.type))


def _narrow(x: Val, lanes: dict[str, Val], rectified: bool) -> Val:
    """`x` holds sums plus 2**31."""
    low = 0xFFFFFFFF
    even = (_pairs(x) & low) * (_pairs(lanes["even"]) & low) + _pairs(lanes["even_offset"])
    odd = _pairs(x).lshr(32) * (_pairs(lanes["odd"]) & low) + _pairs(lanes["odd_offset"])
    y = _interleaved(even, odd, x, high=True)
    return (y if rectified else y - (x >> 31)) >> lanes["right"]


def fixed(x: Val, lanes: dict[str, Val]) -> Val:
    """`x` times a fixed-point multiplier, without restrictions on either."""
    x, right = x << lanes["left"], lanes["right"]
    mantissa = lanes["mantissa"]
    even = (((_pairs(x) << 32) >> 32) * ((_pairs(mantissa) << 32) >> 32) + (1 << 30)).lshr(31)
    odd = ((_pairs(x) >> 32) * (_pairs(mantissa) >> 32) + (1 << 30)) << 1
    y = _interleaved(even, odd, x, high=False)
    t = (y + (y >> 31)) >> (right - 1).max(0)
    return (right > 0).select((t + 1) >> 1, y)


_NEAREST, _DOWN = 8, 9
"""AVX-512's rounding modes, with exceptions suppressed."""


def _float(x: Val, lanes: dict[str, Val], rectified: bool) -> Val:
    sums = x.cast(F32)
    factor, rest, added = (lanes[name].bits(sums.type) for name in ("factor", "rest", "added"))
    if not rectified:
        added = (x < lanes["zero"]).select(lanes["below"].bits(sums.type), added)
    real = _multiply_add(sums, factor, _multiply_add(sums, rest, added, _NEAREST), _DOWN)
    t, every, how = vec(I32, x.lanes), Val(x.b, constant(I16, -1)), Val(x.b, constant(I32, _DOWN))
    return intrinsic(x.b, "llvm.x86.avx512.mask.cvtps2dq.512", t, real, Val(x.b, constant(t, 0)), every, how)


def _multiply_add(a: Val, b: Val, c: Val, rounding: int) -> Val:
    how = Val(a.b, constant(I32, rounding))
    return intrinsic(a.b, "llvm.x86.avx512.vfmadd.ps.512", a.type, a, b, c, how)


WHOLE = 0x4B400000
"""The bits of 1.5 * 2**23, in a range where floats are integers: adding this float to one below 2**22 rounds that to
the nearest integer, and the bits of the sum are these bits plus the integer."""


def _real_lanes(x: Val, lanes: dict[str, Val], name: str) -> Val:
    return lanes[name].bits(vec(F32, x.lanes))


def _quotient(x: Val, lanes: dict[str, Val], inverse: Val, rest: Val) -> Val:
    real = x.cast(F32) * _real_lanes(x, lanes, "factor") + _real_lanes(x, lanes, "term")
    return _whole(real.call("fma", inverse, real * rest))


def _whole(real: Val) -> Val:
    return (real + 12582912.0).bits(vec(I32, real.lanes))


_BEYOND = float(1 << 30)
"""Beyond any byte and zero point, and well within 32 bits."""


def _real(x: Val, lanes: dict[str, Val]) -> Val:
    half = x.lanes // 2
    parts = []
    for i, name in enumerate(("first_half", "second_half")):
        wide = x.shuffle(list(range(i * half, (i + 1) * half))).cast(F64)
        real = wide * lanes[name].bits(vec(F64, half))
        parts.append(nearest(real.clamp(-_BEYOND, _BEYOND)).cast(I32))
    return parts[0].shuffle(list(range(x.lanes)), parts[1])


def exact(x: Val, lanes: dict[str, Val]) -> Val:
    """The same result as `_real`, without floats.

    A multiplier is a mantissa of 53 bits (the high 21 and the low 32) over 2**(32 + shift). The product with the sum's
    magnitude has up to 84 bits; float64 rounds it to 53, which matters only if the rounded-off part carries into the
    high half, to which a half is added then.
    """
    wide, sign = vec(I64, x.lanes), x >> 31
    size = ((x ^ sign) - sign).cast(I64, signed=False)
    low = size * lanes["mantissa_low"].cast(I64, signed=False)
    high = size * lanes["mantissa_high"].cast(I64, signed=False) + low.lshr(32)
    one = Val(x.b, constant(wide, 1))
    dropped = (43 - high.leading_zeros().cast(I32)).max(0).cast(I64)
    carry = ((low & 0xFFFFFFFF) + (one << dropped).lshr(1)).lshr(32)
    shift = lanes["shift"].cast(I64)
    whole = (high + carry + (one << (shift - 1))).lshr(shift).umin(1 << 30).cast(I32)
    return (whole ^ sign) - sign


BELOW_HALF = 0.49999997019767761
_BELOW_HALF = {"float": BELOW_HALF, "double": 0.49999999999999994}
"""The floats just below 1/2: added to a number just below a half, they do not round up to the next integer."""


def nearest(x: Val) -> Val:
    """A float whose truncation is the integer nearest to `x`, halves away from zero."""
    t = x.lane(0).type if x.lanes > 1 else x.type
    return x + x.like(_BELOW_HALF[str(t)]).call("copysign", x)


def as_byte(x: Val) -> Val:
    """The low bytes, which contain the whole value."""
    return x.cast(I8)
