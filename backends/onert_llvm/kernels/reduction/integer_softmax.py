"""Softmax of integers in TFLite's fixed-point arithmetic (`onert.ir.ops.reduction.softmax`).

An element's exponential depends only on its distance from the maximum: tables hold all of them.
"""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Val, View
from onert_llvm.kernels.arithmetic.expression import Kind

from .elements import Elements
from .fold import Fold

LARGEST = (1 << 31) - 1


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
            total = k.var(k.const(I64, 0))
            with k.loop(width, nonempty=True) as i:
                total.set(total.get() + shares[self._below(row, i, top)].load().cast(I64))
            scale, bits = reciprocal(k, total.get().min(LARGEST))
            exponent = bits + (31 - self.bits)
            half = k.const(I64, 1) << (exponent - 1)
            with k.loop(width, nonempty=True) as i:
                power = powers[self._below(row, i, top)].load().cast(I64)
                value = (multiply(power, scale) + half) >> exponent
                out[i].store((value + low).min(high).cast(element))

    def _element(self, row: View, i: Val) -> Val:
        return row[i].load().cast(I64, self.signed)

    def _below(self, row: View, i: Val, top: Val) -> Val:
        """The distance of an element from the maximum, within the tables even if it was changed in the meantime."""
        return (top - self._element(row, i)) & 255


def greatest(k: Kernel, kind: Kind, row: View, width: Val) -> Val:
    """The greatest element of a row."""
    return Elements(Fold.MAX, kind).along(k, row, width)


def multiply(a: Val, b: Val) -> Val:
    """gemmlowp's product of two fixed-point numbers stored in 64 bits."""
    return ((a * b + (1 << 30)) >> 31).min(LARGEST)


def _shifted(x: Val, exponent: int) -> Val:
    """`x` times a power of two, saturated to 32 bits."""
    return (x << exponent).clamp(-LARGEST - 1, LARGEST)


def reciprocal(k: Kernel, x: Val) -> tuple[Val, Val]:
    """1 / x for x of at least 1 in Q12: a number in Q0 and the right shift to apply to it."""
    zeros = x.leading_zeros() - 32
    half = ((x << zeros) - (1 << 31) + (LARGEST + 1)) >> 1
    y = multiply(half, k.const(I64, -1010580540)) + 1515870810
    for _ in range(3):
        y = y + _shifted(multiply(y, k.const(I64, 1 << 29) - multiply(half, y)), 2)
    return _shifted(y, 1), k.const(I64, 12) - zeros


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
