"""Elementwise functions keep their documented bounds on every target, and chains of them are one loop."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.kernels.arithmetic.expression import Apply, Const, Expr, Fn, Leaf, clamp, hard_swish
from onert_llvm.kernels.elementwise.elementwise import Elementwise
from onert_llvm.lower.elementwise.transcendental import erf, softplus, tanh
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, guarded, run

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
X = Leaf("x")
_erf = np.vectorize(math.erf)

# function, reference in float64, range of arguments, documented bound in ulp
BOUNDS: list[tuple[Fn, Callable[[Array], Array], tuple[float, float], float]] = [
    (Fn.EXP, np.exp, (-87.3, 88.7), 2),
    (Fn.TANH, np.tanh, (-12.0, 12.0), 4),
    (Fn.LOGISTIC, lambda x: 1 / (1 + np.exp(-x)), (-87.0, 90.0), 4),
    (Fn.ERF, _erf, (-5.0, 5.0), 6),
    (Fn.GELU, lambda x: x / 2 * (1 + _erf(x / math.sqrt(2))), (0.0, 100.0), 4),
    (Fn.SOFTPLUS, lambda x: np.logaddexp(x, 0), (-87.0, 200.0), 4),
    (Fn.MISH_FACTOR, lambda x: np.tanh(np.logaddexp(x, 0)), (-86.0, 200.0), 4),
    (Fn.LOG, np.log, (1e-45, 3e38), 2),
    (Fn.SIN, np.sin, (-1e6, 1e6), 1.5),
    (Fn.SIN, np.sin, (-3.4e38, 3.4e38), 1.5),
    (Fn.COS, np.cos, (-1e6, 1e6), 1.5),
    (Fn.COS, np.cos, (-3.4e38, 3.4e38), 1.5),
    (Fn.ELU, lambda x: np.where(x < 0, np.expm1(x), x), (-87.0, 10.0), 3),
    (Fn.FLOOR, np.floor, (-3e38, 3e38), 0),
    (Fn.CEIL, np.ceil, (-3e38, 3e38), 0),
    (Fn.ROUND, np.rint, (-3e38, 3e38), 0),
    (Fn.SQRT, np.sqrt, (0.0, 3e38), 0.5),
    (Fn.RSQRT, lambda x: 1 / np.sqrt(x), (1e-37, 3e38), 1.5),
]


def _apply(isa: Isa, fn: Fn, x: Array) -> Array:
    return _computed(isa, Apply(fn, (X,)), x)


def _computed(isa: Isa, tree: Expr, x: Array) -> Array:
    out = guarded(np.zeros_like(x))
    spec = KernelSpec(Elementwise(tree, (True,)), isa)
    run(spec, 1, {"out": out, "width": x.size, "x": guarded(x), "x_step0": 0})
    return out


def _arguments(low: float, high: float, count: int) -> Array:
    """Evenly spaced numbers of the range, and evenly spaced bit patterns of both signs."""
    even = np.linspace(low, high, count, dtype=np.float64).astype(np.float32)
    pattern = np.linspace(0, 0x7F7FFFFF, count).astype(np.int32).view(np.float32)
    both = np.concatenate([even, pattern, -pattern])
    return both[(both >= np.float32(low)) & (both <= np.float32(high))]


@ISAS
@pytest.mark.parametrize(
    ("fn", "reference", "span", "bound"), BOUNDS, ids=lambda v: v.value if isinstance(v, Fn) else ""
)
def test_errors_are_within_the_documented_bound(
    isa: Isa, fn: Fn, reference: Callable[[Array], Array], span: tuple[float, float], bound: float
) -> None:
    x = _arguments(*span, 60_011)
    with np.errstate(divide="ignore"):
        expected = reference(x.astype(np.float64))
    normal = np.abs(expected) >= 1.18e-38
    nearest = expected[normal].astype(np.float32)
    error = np.abs(_apply(isa, fn, x)[normal].astype(np.float64) - expected[normal])
    worst = (error / np.spacing(np.abs(nearest)).astype(np.float64)).max()
    assert worst <= bound + 0.001, f"{fn.value} is {worst:.2f} ulp off"


@ISAS
@pytest.mark.parametrize(("fn", "reference"), [(Fn.SIN, np.sin), (Fn.COS, np.cos)])
def test_sines_near_their_zeros_keep_the_bound(isa: Isa, fn: Fn, reference: Callable[[Array], Array]) -> None:
    x = (np.arange(-660_000, 660_000, 11) * (np.pi / 2)).astype(np.float32)
    expected = reference(x.astype(np.float64))
    error = np.abs(_apply(isa, fn, x).astype(np.float64) - expected)
    assert (error / np.spacing(np.abs(expected).astype(np.float32))).max() <= 1.501


@ISAS
@pytest.mark.parametrize("divisor", [math.sqrt(2), -3.7, 1e-4, 1e30, 0.0])
def test_erf_of_a_quotient_keeps_the_error_bound(isa: Isa, divisor: float) -> None:
    """The bound covers the errors of erf, of the rounded quotient and of the rounded reciprocal."""
    tree = erf(Apply(Fn.DIV, (X, Const(float(np.float32(divisor))))))
    x = np.concatenate([np.float32([0, np.inf, -np.inf, np.nan, 3e38]), np.linspace(-9, 9, 20_011, dtype=np.float32)])
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = _erf(x.astype(np.float64) / np.float64(np.float32(divisor)))
    np.testing.assert_allclose(_computed(isa, tree, x), expected, rtol=8 * 2**-23, atol=1e-37)


def test_the_tangent_of_softplus_is_one_function_without_a_logarithm() -> None:
    assert tanh(softplus(X)) == Apply(Fn.MISH_FACTOR, (X,))
    assert tanh(X) == Apply(Fn.TANH, (X,))


@ISAS
def test_functions_return_their_limits_at_infinities_and_propagate_nan(isa: Isa) -> None:
    inf, nan = np.inf, np.nan
    x = np.array([0.0, inf, -inf, nan, 200.0, -200.0], np.float32)
    np.testing.assert_array_equal(_apply(isa, Fn.EXP, x), np.array([1, inf, 0, nan, inf, 0], np.float32))
    np.testing.assert_array_equal(_apply(isa, Fn.TANH, x), np.array([0, 1, -1, nan, 1, -1], np.float32))
    np.testing.assert_array_equal(_apply(isa, Fn.ERF, x), np.array([0, 1, -1, nan, 1, -1], np.float32))
    np.testing.assert_array_equal(_apply(isa, Fn.GELU, x), np.array([0, inf, nan, nan, 200, 0], np.float32))
    np.testing.assert_array_equal(_apply(isa, Fn.LOGISTIC, x)[:5], np.array([0.5, 1, 0, nan, 1], np.float32))
    np.testing.assert_array_equal(_apply(isa, Fn.SOFTPLUS, x)[1:], np.array([inf, 0, nan, 200, 0], np.float32))
    np.testing.assert_array_equal(_apply(isa, Fn.MISH_FACTOR, x)[1:], np.array([1, 0, nan, 1, 0], np.float32))
    logs = np.array([1.0, 0.0, -1.0, inf, nan], np.float32)
    np.testing.assert_array_equal(_apply(isa, Fn.LOG, logs), np.array([0, -inf, nan, inf, nan], np.float32))


@ISAS
def test_the_error_of_gelu_is_small_relative_to_its_argument(isa: Isa) -> None:
    x = _arguments(-9.0, 9.0, 60_011)
    wide = x.astype(np.float64)
    expected = wide / 2 * (1 + _erf(wide / math.sqrt(2)))
    assert (np.abs(_apply(isa, Fn.GELU, x) - expected) <= 2.5e-7 * np.abs(wide) + 1e-38).all()


@ISAS
@pytest.mark.parametrize("width", [1, 15, 16, 17, 64, 131])
def test_a_chain_with_broadcast_operands_is_one_kernel(isa: Isa, width: int) -> None:
    rng = np.random.default_rng(0)
    x, bias = rng.standard_normal((5, width)).astype(np.float32), rng.standard_normal(width).astype(np.float32)
    gate, scale = rng.standard_normal(5).astype(np.float32), np.array([0.5], np.float32)
    inner = Apply(Fn.ADD, (X, Leaf("bias")))
    tree = Apply(Fn.MUL, (Apply(Fn.MUL, (hard_swish(inner), Leaf("gate"))), Leaf("scale")))
    spec = KernelSpec(Elementwise(tree, (True, True, False, False)), isa)
    out = guarded(np.zeros_like(x))
    steps = {"x_step0": width, "bias_step0": 0, "gate_step0": 1, "scale_step0": 0}
    operands = {"x": guarded(x), "bias": guarded(bias), "gate": guarded(gate), "scale": guarded(scale)}
    run(spec, 5, {"out": out, "width": width, **steps, **operands}, pieces=2)
    y = x.astype(np.float64) + bias
    np.testing.assert_allclose(out, y * np.clip(y + 3, 0, 6) / 6 * gate[:, None] * 0.5, atol=1e-6)


def test_a_clamp_may_have_only_one_bound() -> None:
    assert clamp(X, None, None) == X
    assert clamp(X, 0.0, None) != clamp(X, 0.0, 6.0)
