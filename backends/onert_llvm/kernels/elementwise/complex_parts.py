"""Complex numbers to real ones: a part of each, or its size."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val, View, vec


class Part(Enum):
    """What is taken of a complex number."""

    REAL = "real"
    IMAGINARY = "imaginary"
    SIZE = "size"


@frozen
class ComplexParts(Value):
    """`out[width]` from `x[width]` complex numbers, for each of the rows that are work tiles."""

    part: Part

    @property
    def name(self) -> str:
        return f"complex_{self.part.value}"

    slots = ("x", "out", "width")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, lanes = task.i64("width"), k.isa.f32
        with k.loop(end, begin) as row:
            x = k.view(task.view("x", F32, width * 2)[row].address, F32, 2, 1)
            out = k.view(task.view("out", F32, width)[row].address, F32, 1)
            whole = width - width % lanes
            with k.loop(whole, step=lanes) as at:
                self._some(k, x, out, at, lanes)
            with k.loop(width, whole) as at:
                self._some(k, x, out, at, 1)

    def _some(self, k: Kernel, x: View, out: View, at: Val, lanes: int) -> None:
        low, high = (x[at, i * lanes].load(lanes) for i in range(2))
        if lanes == 1:
            real, imaginary = low, high
        else:
            real, imaginary = (low.shuffle(range(first, 2 * lanes, 2), high) for first in range(2))
        found = {Part.REAL: real, Part.IMAGINARY: imaginary}
        out[at].store(found[self.part] if self.part in found else _size(k, real, imaginary))


_LEAST, _MOST, _TURN = 0x00800000, 0x7E800000, 0x7F000000
"""The exponents of 2**-126 and 2**126, and what that of a number and of its inverse add up to."""


def _size(k: Kernel, real: Val, imaginary: Val) -> Val:
    """The length of a vector, whatever its squares would be: both sides are brought near 1 by a power of two."""
    longest = real.call("fabs").max(imaginary.call("fabs"))
    exponent = (longest.bits(vec(I32, real.lanes)) & 0x7F800000).max(_LEAST).min(_MOST)
    back, near = exponent.bits(real.type), (-exponent + _TURN).bits(real.type)
    a, b = real * near, imaginary * near
    return k.fma(a, a, b * b).call("sqrt") * back
