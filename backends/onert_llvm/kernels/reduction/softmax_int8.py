"""Softmax of bytes in TFLite's fixed-point arithmetic (`onert.ir.ops.reduction.softmax`).

An element's exponential depends only on its distance from the greatest, which is a byte: tables hold all 256 of them.
"""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Val, View

_LARGEST = (1 << 31) - 1


@frozen
class SoftmaxInt8(Value):
    """Rows of `width` bytes to integers of `bits` bits of which the least stands for 0, in as many steps below 1 as
    there are; work tiles are rows.

    `powers` points to the exponentials of -0, -1, ... -255 steps in Q0, `shares` to the same in Q12, 32 bits each; an
    element too far from the greatest to count has 0 in both.
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
            top = self._greatest(k, row, width, -128 if self.signed else 0)
            total = k.var(k.const(I64, 0))
            with k.loop(width, nonempty=True) as i:
                total.set(total.get() + shares[self._below(row, i, top)].load().cast(I64))
            scale, bits = _reciprocal(k, total.get().min(_LARGEST))
            exponent = bits + (31 - self.bits)
            half = k.const(I64, 1) << (exponent - 1)
            with k.loop(width, nonempty=True) as i:
                power = powers[self._below(row, i, top)].load().cast(I64)
                value = (_multiply(power, scale) + half) >> exponent
                out[i].store((value + low).min(high).cast(element))

    def _element(self, row: View, i: Val) -> Val:
        return row[i].load().cast(I64, self.signed)

    def _below(self, row: View, i: Val, top: Val) -> Val:
        """How far an element is below the greatest: inside of the tables even if it was changed since."""
        return (top - self._element(row, i)) & 255

    def _greatest(self, k: Kernel, row: View, width: Val, low: int) -> Val:
        lanes = k.isa.f32
        whole = width - width % lanes
        best = k.var(k.const(I32, low).splat(lanes))
        with k.loop(whole, step=lanes) as at:
            best.set(best.get().max(row[at].load(lanes).cast(I32, self.signed)))
        top = k.var(k.const(I64, low))
        for lane in range(lanes):
            top.set(top.get().max(best.get().lane(lane).cast(I64)))
        with k.loop(width, whole) as at:
            top.set(top.get().max(self._element(row, at)))
        return top.get()


def _multiply(a: Val, b: Val) -> Val:
    """gemmlowp's product of two fixed-point numbers held in 64 bits."""
    return ((a * b + (1 << 30)) >> 31).min(_LARGEST)


def _shifted(x: Val, exponent: int) -> Val:
    """`x` times a power of two, saturated to 32 bits."""
    return (x << exponent).clamp(-_LARGEST - 1, _LARGEST)


def _reciprocal(k: Kernel, x: Val) -> tuple[Val, Val]:
    """1 / x for x of at least 1 in Q12: a number in Q0 and how many bits it is to be shifted right."""
    zeros = x.leading_zeros() - 32
    half = ((x << zeros) - (1 << 31) + (_LARGEST + 1)) >> 1
    y = _multiply(half, k.const(I64, -1010580540)) + 1515870810
    for _ in range(3):
        y = y + _shifted(_multiply(y, k.const(I64, 1 << 29) - _multiply(half, y)), 2)
    return _shifted(y, 1), k.const(I64, 12) - zeros
