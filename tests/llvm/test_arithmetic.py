"""Binary functions of every element type compute natively what their definitions say, on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onert.ir import DType, ExecutionError, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, whole_range
from .natively import check, evaluated, natively, single

ISAS = pytest.mark.parametrize(
    "isa",
    [
        pytest.param(isa, id=isa.name, marks=() if isa in (runnable()[0], runnable()[-1]) else pytest.mark.long)
        for isa in runnable()
    ],
)
"""The targets with the fewest and the most instructions; the others are in the long suite."""
WHOLE = pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64],
    ids=lambda d: d.__name__,
)
SPECIAL = np.array(
    [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        1,
        -1,
        2,
        -2,
        3,
        -3,
        0.5,
        -0.5,
        1.5,
        1e-41,
        -1e-41,
        3e38,
        -3e38,
        1e8,
        1e-20,
        8388607,
        -8388607,
        16777216,
        16777218,
        -16777219,
        2147483648,
    ],
    np.float32,
)
FLOATS: dict[BinaryKind, tuple[Callable[[Array, Array], Array], float]] = {
    BinaryKind.POW: (np.power, 1),
    BinaryKind.ATAN2: (np.arctan2, 1),
    BinaryKind.FLOOR_MOD: (np.mod, 0),
    BinaryKind.REMAINDER: (np.fmod, 0),
}
"""The functions in float64, and their documented error bounds in ulp."""


def _pairs(count: int, wide: bool) -> tuple[Array, Array]:
    """Floats of every magnitude, or floats whose powers do not overflow."""
    rng = np.random.default_rng(0)
    if wide:
        x, y = rng.integers(0, 1 << 32, (2, count), dtype=np.uint32).view(np.float32)
        return x, y
    return rng.uniform(0, 20, count).astype(np.float32), rng.uniform(-9, 9, count).astype(np.float32)


@ISAS
@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_binary_float_functions_keep_their_error_bound(isa: Isa, kind: BinaryKind) -> None:
    function, bound = FLOATS[kind]
    x, y = _pairs(40_007, wide=False)
    (found,) = natively(*single(Binary(kind), x, y), isa)
    expected = function(x.astype(np.float64), y.astype(np.float64))
    if bound:
        nearest = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
        assert (np.abs(found - expected) / nearest).max() <= bound
    else:
        np.testing.assert_array_equal(found, evaluated(*single(Binary(kind), x, y))[0])


@ISAS
@pytest.mark.parametrize("name", ["asin", "acos", "atan"])
def test_inverse_circular_functions_are_rounded_once(isa: Isa, name: str) -> None:
    small = np.float32(10) ** np.linspace(-38, 0, 5_000, dtype=np.float32)
    x = np.concatenate([np.linspace(-1, 1, 20_001, dtype=np.float32), small, -small, SPECIAL])
    if name == "atan":
        x = np.concatenate([x, 1 / small])
    (found,) = natively(*single(Unary(UnaryKind[name.upper()]), x), isa)
    with np.errstate(all="ignore"):
        expected = getattr(np, f"arc{name[1:]}")(x.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    real = ~np.isnan(found)
    np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(expected[real]))
    nearest = np.spacing(np.abs(expected[real]).astype(np.float32)).astype(np.float64)
    assert (np.abs(found[real] - expected[real]) / nearest).max() < 0.501


@ISAS
@pytest.mark.parametrize("kind", [*FLOATS, BinaryKind.FLOOR_DIV], ids=lambda kind: kind.name)
def test_binary_float_functions_handle_special_values(isa: Isa, kind: BinaryKind) -> None:
    x, y = (a.reshape(-1) for a in np.meshgrid(SPECIAL, SPECIAL))
    more = _pairs(10_007, wide=True)
    pairs = [(x, y)] if kind is BinaryKind.FLOOR_DIV else [(x, y), more]
    for a, b in pairs:
        with np.errstate(all="ignore"):
            (expected,) = evaluated(*single(Binary(kind), a, b))
        (found,) = natively(*single(Binary(kind), a, b), isa)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        real = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(expected[real]))
        np.testing.assert_allclose(found[real], expected[real], rtol=3e-7, atol=1.5e-45)


@ISAS
@WHOLE
def test_binary_integer_functions_are_exact(isa: Isa, dtype: Any) -> None:
    x, y = whole_range(dtype, (333,)), whole_range(dtype, (333,), 1)
    x[:2], y[:2] = np.iinfo(dtype).min, np.array([-1, 1]).astype(dtype)
    y[y == 0] = 3
    for kind in (k for k in BinaryKind if k.value.integers):
        other = y
        if kind is BinaryKind.POW:
            other = np.maximum(y, 0) // 2
        elif kind in (BinaryKind.SHIFT_LEFT, BinaryKind.SHIFT_RIGHT):
            other = y % 70 - (np.iinfo(dtype).min < 0)
        with np.errstate(all="ignore"):
            check(*single(Binary(kind), x, other), isa)


@ISAS
@WHOLE
def test_integer_comparisons_and_unary_functions_are_exact(isa: Isa, dtype: Any) -> None:
    x, y = whole_range(dtype, (333,)), whole_range(dtype, (333,), 1)
    y[100:200] = x[100:200]
    for relation in ComparisonKind:
        check(*single(Comparison(relation), x, y), isa)
    for kind in (k for k in UnaryKind if k.value.integers):
        with np.errstate(all="ignore"):
            check(*single(Unary(kind), x), isa)


@ISAS
def test_float64_operations_are_rounded_once(isa: Isa) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 101))
    for kind in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
        check(*single(Binary(BinaryKind[kind]), x, y), isa, tolerance=1e-16)
    for name in ("ABS", "NEG", "SQUARE", "SIGN", "SQRT", "RELU6"):
        check(*single(Unary(UnaryKind[name]), np.abs(x)), isa, tolerance=1e-16)


@ISAS
@WHOLE
@pytest.mark.parametrize("kind", ["DIV", "FLOOR_DIV", "FLOOR_MOD", "REMAINDER"])
def test_integer_division_by_zero_raises(isa: Isa, dtype: Any, kind: str) -> None:
    y = np.full(40, 5, dtype)
    y[37] = 0
    operands = np.full(40, 9, dtype), y
    with pytest.raises(ExecutionError, match="an integer is divided by 0"):
        natively(*single(Binary(BinaryKind[kind]), *operands), isa)
    with pytest.raises(ExecutionError, match="an integer is divided by 0"):
        natively(*single(Binary(BinaryKind[kind]), operands[0], np.zeros(1, dtype), constant=(1,)), isa)


@ISAS
def test_an_integer_to_a_negative_power_raises(isa: Isa) -> None:
    y = np.full(40, 5, np.int32)
    y[17] = -3
    with pytest.raises(ExecutionError, match="raised to the power -3, expected at least 0"):
        natively(*single(Binary(BinaryKind.POW), np.full(40, 9, np.int32), y), isa)


@ISAS
def test_a_division_error_in_a_fused_chain_names_its_operation(isa: Isa) -> None:
    b = Builder()
    x, y = (b.input(TensorType(DType.INT32, (40,))) for _ in range(2))
    rest = b.add(Binary(BinaryKind.FLOOR_MOD), b.add(Unary(UnaryKind.NEG), x), y)
    quotient = b.add(Binary(BinaryKind.DIV), rest, b.add(Unary(UnaryKind.ABS), x))
    subgraph = b.subgraph([b.add(Unary(UnaryKind.NEG), quotient)])
    arrays = [np.arange(1, 41, dtype=np.int32), np.arange(3, 43, dtype=np.int32)]
    check(subgraph, arrays, isa)
    with pytest.raises(ExecutionError, match=r"operation 3 Binary\.DIV: an integer is divided by 0"):
        natively(subgraph, [arrays[0] - 1, arrays[1]], isa)
