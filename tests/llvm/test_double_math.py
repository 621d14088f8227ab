"""Claims about functions of float64: errors are within the bounds that their docstrings give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.target.isa import runnable

COUNT = 20_000
FUNCTIONS: dict[UnaryKind, tuple[Callable[[Any], Any], float, float, float]] = {
    UnaryKind.EXP: (np.exp, -708, 709, 2),
    UnaryKind.LOG: (np.log, 1e-300, 1e300, 2),
    UnaryKind.TANH: (np.tanh, -25, 25, 4),
    UnaryKind.LOGISTIC: (lambda x: 1 / (1 + np.exp(-x)), -700, 700, 4),
    UnaryKind.FLOOR: (np.floor, -1e17, 1e17, 0),
    UnaryKind.CEIL: (np.ceil, -1e17, 1e17, 0),
    UnaryKind.ROUND: (np.rint, -1e17, 1e17, 0),
}
"""Each with what it means, between which numbers it is tried, and the largest error in ulp."""
ENDS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 5e-324, 800.0, -800.0, 4503599627370497.0)


def drawn(low: float, high: float) -> Array:
    """Numbers near 0, near 1, all over the range, and the ends."""
    rng = np.random.default_rng(5)
    near = np.concatenate(
        [rng.uniform(-4, 4, COUNT), 1 + rng.uniform(-1e-6, 1e-6, 1000), rng.uniform(-1e-6, 1e-6, 1000)]
    )
    far = np.exp(rng.uniform(np.log(low), np.log(high), COUNT)) if low > 0 else rng.uniform(low, high, COUNT)
    inside = near[near > 0] if low > 0 else near
    return np.concatenate([inside, far, ENDS])


@pytest.mark.parametrize("target", [isa.name for isa in runnable()])
@pytest.mark.parametrize("kind", FUNCTIONS, ids=lambda kind: kind.name)
def test_a_function_of_float64_is_within_its_bound(kind: UnaryKind, target: str) -> None:
    meaning, low, high, bound = FUNCTIONS[kind]
    x = drawn(low, high)
    b = Builder()
    result = b.add(Unary(kind), b.input(TensorType(DType.FLOAT64, x.shape), "x"))
    program = onert.compile(Package((b.model([result]),)), target=target, num_threads=1)
    assert {step.backend for step in program.main.steps} == {"llvm"}
    (found,) = onert.Execution(program).run({"x": x}).values()
    with np.errstate(all="ignore"):
        wide = meaning(x.astype(np.longdouble))
        wanted = wide.astype(np.float64)
        normal = np.isfinite(wanted) & (np.abs(wanted) >= np.finfo(np.float64).tiny)
        errors = np.abs(found[normal] - wide[normal]) / np.spacing(np.abs(wanted[normal]))
    assert errors.max() <= bound
    np.testing.assert_allclose(found[~normal], wanted[~normal], rtol=0, atol=np.finfo(np.float64).tiny)
    there = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(wanted[there]))
