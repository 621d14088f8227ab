"""Errors of float64 functions are within the bounds that their docstrings state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import Array, DType, Op, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.target.isa import runnable

COUNT = 20_000
FUNCTIONS: dict[UnaryKind, tuple[Callable[[Any], Any], float, float, float]] = {
    UnaryKind.EXP: (np.exp, -708, 709, 2),
    UnaryKind.LOG: (np.log, 1e-300, 1e300, 2),
    UnaryKind.TANH: (np.tanh, -25, 25, 4),
    UnaryKind.LOGISTIC: (lambda x: 1 / (1 + np.exp(-x)), -700, 700, 4),
    UnaryKind.SIN: (np.sin, -1e6, 1e6, 3),
    UnaryKind.COS: (np.cos, -1e6, 1e6, 3),
    UnaryKind.TAN: (np.tan, -1e6, 1e6, 6),
    UnaryKind.ASIN: (np.arcsin, -1, 1, 5),
    UnaryKind.ACOS: (np.arccos, -1, 1, 5),
    UnaryKind.ATAN: (np.arctan, -1e6, 1e6, 3),
    UnaryKind.SINH: (np.sinh, -710, 710, 16),
    UnaryKind.COSH: (np.cosh, -710, 710, 8),
    UnaryKind.ASINH: (np.arcsinh, -1e300, 1e300, 5),
    UnaryKind.ACOSH: (np.arccosh, 1, 1e300, 5),
    UnaryKind.ATANH: (np.arctanh, -1, 1, 5),
    UnaryKind.ERF: (np.vectorize(math.erf, otypes=[np.float64]), -7, 7, 9),
    UnaryKind.SOFTPLUS: (lambda x: np.logaddexp(x, 0), -700, 700, 5),
    UnaryKind.ELU: (lambda x: np.where(x < 0, np.expm1(x), x), -700, 700, 3),
    UnaryKind.TRUNC: (np.trunc, -1e17, 1e17, 0),
    UnaryKind.FLOOR: (np.floor, -1e17, 1e17, 0),
    UnaryKind.CEIL: (np.ceil, -1e17, 1e17, 0),
    UnaryKind.ROUND: (np.rint, -1e17, 1e17, 0),
}
"""Each with its definition, the range it is tested on, and the largest error in ulp."""
ENDS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 5e-324, 800.0, -800.0, 4503599627370497.0)


def drawn(low: float, high: float) -> Array:
    """Numbers near 0, near 1 and across the range, and special values."""
    rng = np.random.default_rng(5)
    near = np.concatenate(
        [rng.uniform(-4, 4, COUNT), 1 + rng.uniform(-1e-6, 1e-6, 1000), rng.uniform(-1e-6, 1e-6, 1000)]
    )
    far = np.exp(rng.uniform(np.log(low), np.log(high), COUNT)) if low > 0 else rng.uniform(low, high, COUNT)
    inside = near[near > 0] if low > 0 else near
    return np.concatenate([inside, far, ENDS])


@pytest.mark.parametrize("target", [isa.name for isa in runnable()])
@pytest.mark.parametrize("kind", FUNCTIONS, ids=lambda kind: kind.name)
def test_float64_functions_keep_their_error_bound(kind: UnaryKind, target: str) -> None:
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


@pytest.mark.parametrize("kind", [UnaryKind.SIN, UnaryKind.COS], ids=lambda kind: kind.name)
def test_argument_reduction_of_large_numbers_is_exact(kind: UnaryKind) -> None:
    """The C library's argument reduction uses as many bits as needed."""
    rng = np.random.default_rng(6)
    sizes = np.exp(rng.uniform(np.log(1e6), np.log(1.7e308), 5000)) * rng.choice([-1, 1], 5000)
    x = np.concatenate([sizes, [1048576.0, -1048577.5, 2.0**62, 1.7976931348623157e308]])
    found = computed(Unary(kind), x)
    library = math.sin if kind is UnaryKind.SIN else math.cos
    wanted = np.array([library(one) for one in x])
    assert (np.abs(found - wanted) / np.spacing(np.abs(wanted))).max() <= 4
    if kind is UnaryKind.COS:
        # the float64 nearest to a multiple of pi / 2 (J.-M. Muller, Elementary Functions)
        nearest = computed(Unary(kind), np.array([6381956970095103 * 2.0**797]))
        np.testing.assert_allclose(nearest, -4.6871659242546276111e-19, rtol=1e-15)


def computed(op: Op, *given: Array, target: str = "native") -> Array:
    b = Builder()
    operands = [b.input(TensorType(DType.FLOAT64, x.shape), f"x{at}") for at, x in enumerate(given)]
    program = onert.compile(Package((b.model([b.add(op, *operands)]),)), target=target, num_threads=1)
    assert {step.backend for step in program.main.steps} == {"llvm"}
    (found,) = onert.Execution(program).run({f"x{at}": x for at, x in enumerate(given)}).values()
    return found


def pairs(kind: BinaryKind) -> tuple[Array, Array]:
    """Numbers close together, numbers of all magnitudes, and all pairs of special values."""
    rng = np.random.default_rng(8)
    near = rng.uniform(-9, 9, (2, COUNT))
    most = 5 if kind is BinaryKind.POW else 300
    far = 10.0 ** rng.uniform(-most, most, (2, COUNT)) * rng.choice([-1, 1], (2, COUNT))
    ends = np.array([*ENDS, 2.0, -3.0, 1e300, 9007199254740993.0, -9007199254740992.0])
    table = np.stack(np.meshgrid(ends, ends)).reshape(2, -1)
    x, y = np.concatenate([near, far, table], 1)
    return x, y


TWO: dict[BinaryKind, tuple[Callable[[float, float], float], float]] = {
    BinaryKind.POW: (math.pow, 32),
    BinaryKind.REMAINDER: (math.fmod, 0),
    BinaryKind.ATAN2: (math.atan2, 4),
}


def by_the_library(function: Callable[[float, float], float], x: Array, y: Array) -> Array:
    def called(one: float, other: float) -> float:
        try:
            return function(one, other)
        except OverflowError:
            return math.copysign(math.inf, one) if other % 2 == 1 else math.inf
        except ValueError:  # a pole, or not a number
            return float(np.power(one, other)) if function is math.pow else math.nan

    with np.errstate(all="ignore"):
        return np.array([called(one, other) for one, other in zip(x.tolist(), y.tolist(), strict=True)])


@pytest.mark.parametrize("target", [isa.name for isa in runnable()])
@pytest.mark.parametrize("kind", TWO, ids=lambda kind: kind.name)
def test_binary_float64_functions_match_the_c_library(kind: BinaryKind, target: str) -> None:
    function, bound = TWO[kind]
    x, y = pairs(kind)
    found, wanted = computed(Binary(kind), x, y, target=target), by_the_library(function, x, y)
    normal = np.isfinite(wanted) & (np.abs(wanted) >= np.finfo(np.float64).tiny)
    with np.errstate(invalid="ignore"):
        errors = np.abs(found[normal] - wanted[normal]) / np.spacing(np.abs(wanted[normal]))
    assert errors.max() <= bound
    np.testing.assert_allclose(found[~normal], wanted[~normal], rtol=0, atol=np.finfo(np.float64).tiny)
    there = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(wanted[there]))
