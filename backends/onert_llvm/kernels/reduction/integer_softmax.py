"""Softmax of integers in TFLite's fixed-point arithmetic (`onert.ir.ops.reduction.softmax`).

An element's exponential depends only on its distance from the maximum: tables hold all of them.
"""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Val, View, vec
from onert_llvm.kernels.arithmetic.expression import Kind

from .elements import Elements
from .fold import Fold

LARGEST = (1 << 31) - 1
_ROOT_HALF, _FOURTH_ROOT_HALF = 1518500250, 1805811301
"""In Q0."""
_ONE, _TO_BYTES = 1 << 19, 31 - 5 - 4
"""1 in Q12, and the shift from Q5 to steps of 1/16."""


@frozen
class SoftmaxInt8(Value):
    """Rows of `width` bytes to integers of `bits` bits: the least integer represents 0, and a step is 2**-`bits`; work
    tiles are rows.

    `powers` points to the exponentials of -0, -1, ... -255 steps in Q0, `shares` to the same in Q12, 32 bits each; both
    are 0 for elements too far from the maximum to count.
    """

    signed: bool = True
    bits: int = 8

    slots = ("x", "out", "width", "powers", "shares")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width = task.i64("width")
        powers, shares = (task.view(n, I32, 1) for n in ("powers", "shares"))
        element = I8 if self.bits == 8 else I16
        least = 1 << self.bits - 1 if self.signed else 0
        low, high = -least, (1 << self.bits) - 1 - least
        with k.loop(end, begin) as r:
            row, out = task.view("x", I8, width, 1)[r], task.view("out", element, width, 1)[r]
            top = greatest(k, Kind.I8 if self.signed else Kind.U8, row, width).cast(I64, self.signed)
            scale, bits = reciprocal(k, _sum(k, shares, row, width, top, self.signed))
            exponent = bits + (31 - self.bits)
            half = k.const(I64, 1) << (exponent - 1)
            with k.loop(width, nonempty=True) as i:
                power = powers[_below(row, i, top, self.signed)].load().cast(I64)
                value = (multiply(power, scale) + half) >> exponent
                out[i].store((value + low).min(high).cast(element))


@frozen
class LogSoftmaxInt8(Value):
    """Rows of `width` bytes to their logarithms in steps of 1/16, the greatest byte being 0; work tiles are rows.

    A step is `mantissa * 2**(shift - 31)` in Q5, and `far` the least number of steps whose result is the least byte,
    whatever the sum. `shares` points to the exponentials of -0, -1, ... -255 steps in Q12, 32 bits each. The logarithms
    of several rows' sums are computed together.
    """

    signed: bool = True

    slots = ("x", "out", "width", "mantissa", "shift", "far", "shares")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, shares, lanes = task.i64("width"), task.view("shares", I32, 1), k.isa.f32
        x, out = (task.view(n, I8, width, 1) for n in ("x", "out"))
        together = max(1, lanes // 2)
        tops, sums = (k.view(k.scratch(I64, together), I64, 1) for _ in range(2))
        sums.store(k.const(vec(I64, together), _ONE))
        with k.loop(end, begin, step=together) as first:
            count = (end - first).min(together)
            with k.loop(count, nonempty=True) as i:
                row = x[first + i]
                top = greatest(k, Kind.I8 if self.signed else Kind.U8, row, width).cast(I64, self.signed)
                tops[i].store(top)
                sums[i].store(_sum(k, shares, row, width, top, self.signed))
            sums.store(_log(sums.load(together)))
            with k.loop(count, nonempty=True) as i:
                top, logarithm = tops[i].load(), sums[i].load()
                sums[i].store(k.const(I64, _ONE))
                self._write(k, task, x[first + i], out[first + i], top, logarithm)

    def _write(self, k: Kernel, task: Task, row: View, out: View, top: Val, logarithm: Val) -> None:
        """The results of a row: whole registers, of which the last may overlap the one before, or single elements."""
        width, lanes = task.i64("width"), k.isa.f32
        added = (k.const(I64, (1 << _TO_BYTES - 1) - 1) - logarithm << 31) + (1 << 30)

        for at, count in k.overlapping(width, lanes):
            below = top.splat(count) - row[at].load(count).cast(I64, self.signed)
            step, factor = (v.splat(count) for v in (task.i64("shift"), task.i64("mantissa")))
            product = _low(below << step) * _low(factor)
            value = ((added.splat(count) - product) >> 31 + _TO_BYTES).max(-255)
            near = (below & 255) < task.i64("far").splat(count)
            out[at].store((near.select(value, -255) + (127 if self.signed else 255)).cast(I8))


def _below(row: View, i: Val, top: Val, signed: bool) -> Val:
    """The distance of an element from the maximum, within the tables even if it was changed in the meantime."""
    return (top - row[i].load().cast(I64, signed)) & 255


def _sum(k: Kernel, shares: View, row: View, width: Val, top: Val, signed: bool) -> Val:
    """The sum of a row's exponentials in Q12, saturated to 32 bits."""
    total = k.var(k.const(I64, 0))
    with k.loop(width, nonempty=True) as i:
        total.set(total.get() + shares[_below(row, i, top, signed)].load().cast(I64))
    return total.get().min(LARGEST)


def greatest(k: Kernel, kind: Kind, row: View, width: Val) -> Val:
    """The greatest element of a row."""
    return Elements(Fold.MAX, kind).along(k, row, width)


def multiply(a: Val, b: Val) -> Val:
    """gemmlowp's product of two fixed-point numbers stored in 64 bits, not both the least one."""
    return (_low(a) * _low(b) + (1 << 30)) >> 31


def _low(x: Val) -> Val:
    """A 32-bit number in 64 bits, such that the code generator knows that it is one."""
    return (x << 32) >> 32


def _rounded_shift(x: Val, exponent: int) -> Val:
    """`x / 2**exponent`, halves away from zero."""
    return (x + (x >> 63) + (1 << exponent - 1)) >> exponent


def _one_over_one_plus(a: Val) -> Val:
    """1 / (1 + a) in Q0 for a in [0, 1] in Q0."""
    half = (a + (LARGEST + 1)) >> 1
    y = multiply(half, a.like(-1010580540)) + 1515870810
    for _ in range(3):
        y = y + (multiply(y, a.like(1 << 29) - multiply(half, y)) << 2)
    return (y << 1).min(LARGEST)


def reciprocal(k: Kernel, x: Val) -> tuple[Val, Val]:
    """1 / x for x of at least 1 in Q12: a number in Q0 and the right shift to apply to it."""
    zeros = x.leading_zeros() - 32
    return _one_over_one_plus((x << zeros) - (1 << 31)), k.const(I64, 12) - zeros


def _log(x: Val) -> Val:
    """log(x) in Q5 for x of at least 1 in Q12 (`log_of_q12` in `onert.ir.ops.arithmetic.fixed_point_functions`).

    For such numbers nothing saturates except `r`, and the result is at least 0.
    """
    root_half = x.like(_ROOT_HALF)
    zeros = x.leading_zeros() - 32
    scaled_zeros = multiply(x, root_half).leading_zeros() - 33
    first = multiply(x << (zeros - 1), root_half) << 1
    r = first.min(x << scaled_zeros).min(LARGEST)
    power = (((12 - zeros) << 25) + (1 << 23)).max(((12 - scaled_zeros) << 25) - (1 << 23))
    q = (r - _FOURTH_ROOT_HALF) << 1
    square = multiply(q, q)
    numerator = multiply(q, r) + multiply(multiply(q, square), x.like(117049297))
    series = q + multiply(square, x.like(127690142)) + 1057819769
    denominator = multiply((r + (_FOURTH_ROOT_HALF + 1)) >> 1, series) + multiply(q, x.like(638450708))
    quotient = multiply(_rounded_shift(numerator, 6), _one_over_one_plus(denominator))
    return (multiply(power, x.like(1488522236)) + quotient) << 1


@frozen
class SoftmaxInt16(Value):
    """TFLite's softmax of 16-bit numbers; work tiles are rows of `width`.

    `exps` holds the exponential of every distance from the maximum, `inverses` 513 samples of the reciprocal.
    """

    slots = ("x", "out", "width", "exps", "inverses")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width = task.i64("width")
        x, out = (task.view(name, I16, width, 1) for name in ("x", "out"))
        exps = task.view("exps", I16, 1)
        with k.loop(end, begin) as row:
            total = k.var(k.index(0))
            top = greatest(k, Kind.I16, x[row], width).cast(I32)
            with k.loop(width) as at:
                below = top - x[row, at].load().cast(I32)
                found = exps[_index(below & 0xFFFF)].load()  # within the table even if the element has changed
                out[row, at].store(found)
                total.set(total.get() + _index(found.cast(I32)))
            inverse, right = self._inverse(k, task, total.get().min((1 << 31) - 1).cast(I32))
            half = k.const(I32, 1) << (right - 1)

            for at, mask in k.registers(width, free=False):
                value = out[row, at].load(k.isa.f32, mask).cast(I32) * inverse.splat(k.isa.f32)
                shifted = (value + half.splat(k.isa.f32)) >> right.splat(k.isa.f32)
                out[row, at].store(shifted.clamp(0, 32767).cast(I16), mask)

    def _inverse(self, k: Kernel, task: Task, total: Val) -> tuple[Val, Val]:
        """The reciprocal of the sum as a 15-bit number, and the right shift of products with it."""
        headroom = total.leading_zeros()
        shifted = ((total << (headroom - 1)) + (1 << 13)) >> 14
        at = (shifted - ((1 << 15) + (1 << 16))).clamp(-32768, 32767)
        samples = k.view(task.view("inverses", I16, 1)[_index((at >> 7) + 256)].address, I16, 1)
        base, following = (samples[i].load().cast(I32) for i in range(2))
        return base + (((following - base) * (at & 127) + 64) >> 7), k.const(I32, 31) - headroom


def _index(value: Val) -> Val:
    return value.cast(I64)
