"""Logistic and tanh as TFLite's kernels with integer weights compute them, operation by operation.

Their results are quantised, so a difference in the last bit may change a result by a whole step: the steps are those of
`onert.ir.ops.recurrent.recurrent_functions`, none of them fused.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val, vec
from onert_llvm.irbuilder.math import floor


def logistic(k: Kernel, x: Val) -> Val:
    """exp(x) / (1 + exp(x)), where exp(x) is `2**(2 * m) * exp(r)**2`."""
    half = x.max(-105.0).min(16.6355324) * 0.5
    m = floor(k, half * 1.44269504088896341 + 0.5)
    r = m * 2.12194440e-4 + (m * -0.693359375 + half)
    square = r * r
    even = square * 4.1898667812347412109375e-2 + 0.49999141693115234375
    odd = square * 8.33471305668354034423828125e-3 + 0.16666877269744873046875
    power = ((m.cast(I32) + 127) << 23).bits(vec(F32, x.lanes))
    root = (square * (r * odd + even) + (r + 1.0)) * power
    result = root * root
    found = (x < -104.0).select(0.0, result / (result + 1.0))
    return x.ne(x).select(x, found)


_SATURATED = 7.90738964080810547
_NUMERATOR = (1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1)
_DENOMINATOR = (8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1.0)


def tanh(k: Kernel, x: Val) -> Val:
    """A rational approximation of degrees 9 and 8."""
    x = x.like(_SATURATED).min(x.like(-_SATURATED).max(x))  # NaN stays NaN
    square = x * x
    return (square * x * _polynomial(square, _NUMERATOR) + x) / _polynomial(square, _DENOMINATOR)


def _polynomial(x: Val, coefficients: Sequence[float]) -> Val:
    total = x.like(coefficients[0])
    for c in coefficients[1:]:
        total = total * x + c
    return total


@frozen
class SumTanh(Value):
    """`out = tanh(x + y)` for `count` floats. One work tile."""

    slots = ("x", "y", "out", "count")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        x, y, out = (task.view(name, F32, 1) for name in ("x", "y", "out"))

        for at, mask in k.registers(task.i64("count")):
            total = x[at].load(k.isa.f32, mask) + y[at].load(k.isa.f32, mask)
            out[at].store(tanh(k, total), mask)
