"""Rounding, saturation and zero points of integer arithmetic, at the numbers where they matter.

Expected values are computed from the definitions with Python's integers and fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onert.ir import Array, CallTypes, DType, Op, Quantization, TensorType, evaluate, infer
from onert.ir.analysis.cost import cost
from onert.ir.ops.arithmetic.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    Multiplier,
    activation_range,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    quantize_multiplier,
    quantize_multipliers,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import mean_multiplier
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.quant import dequantize, quantize, round_half_away


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def nearest(x: Fraction) -> int:
    """The nearest integer, with halves rounded away from zero."""
    return math.floor(x + Fraction(1, 2)) if x >= 0 else -math.floor(-x + Fraction(1, 2))


# ---- rounding


BELOW_HALF = float(np.nextafter(0.5, 0))


@pytest.mark.parametrize(
    ("x", "rounded"),
    [
        (0.5, 1), (-0.5, -1), (1.5, 2), (2.5, 3), (-2.5, -3), (BELOW_HALF, 0), (-BELOW_HALF, 0), (0.0, 0), (-3.0, -3),
        (2.0**52 + 1, 2**52 + 1), (4503599627370495.5, 2**52),
    ],
)  # fmt: skip
def test_only_halves_are_rounded_away_from_zero(x: float, rounded: int) -> None:
    assert round_half_away(np.array([x]))[0] == rounded == nearest(Fraction(x))


@pytest.mark.parametrize(("ratio", "stored"), [(2.5, 8), (-2.5, 2), (2.4999998, 7), (-2.4999998, 3), (0.49999997, 5)])
def test_reals_are_quantised_to_the_nearest_integer(ratio: float, stored: int) -> None:
    q = Quantization((0.5,), (5,))
    assert quantize(np.array([ratio / 2], np.float32), q, DType.INT8).tolist() == [stored]


def test_nan_is_quantised_to_the_zero_point_and_infinities_saturate() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    with np.errstate(invalid="ignore"):
        assert quantize(x, Quantization((0.5,), (7,)), DType.INT8).tolist() == [7, 127, -128, 127]


def test_the_zero_point_is_subtracted_before_conversion_to_float() -> None:
    stored = np.array([(1 << 30) + 1, (1 << 30) - 1], np.int32)
    assert dequantize(stored, Quantization((1.0,), (1 << 30,))).tolist() == [1.0, -1.0]


def test_an_incomplete_last_block_has_its_own_scale() -> None:
    q = Quantization((1.0, 2.0, 4.0, 8.0), (0,) * 4, axis=1, block_size=3)
    assert dequantize(np.ones((2, 4), np.int8), q).tolist() == [[1, 1, 1, 2], [4, 4, 4, 8]]


# ---- fixed-point multipliers


REALS = [
    1e-3,
    0.5,
    0.75,
    1.0,
    1 / 3,
    2 / 3,
    123.456,
    2.0**-31,
    2.0**-32,
    2.0**-33,
    float(np.nextafter(1.0, 0)),
    2.0**30,
]


@pytest.mark.parametrize("real", REALS)
def test_a_multiplier_has_the_nearest_mantissa(real: float) -> None:
    found = quantize_multiplier(real)
    fraction, exponent = math.frexp(real)
    mantissa = nearest(Fraction(fraction) * 2**31)
    if mantissa == 2**31:
        mantissa, exponent = 2**30, exponent + 1
    expected = (0, 0) if exponent < -31 else (INT32_MAX, 30) if exponent > 30 else (mantissa, exponent)
    assert (found.mantissa, found.shift) == expected
    assert [int(part[0]) for part in quantize_multipliers([real])] == list(expected)


def test_the_smallest_multipliers_do_not_underflow() -> None:
    assert quantize_multiplier(2.0**-32) == Multiplier(1 << 30, -31)
    assert quantize_multiplier(2.0**-33) == Multiplier(0, 0)


PRODUCTS = [
    (1, 1 << 30), (-1, 1 << 30), (3, 1 << 30), (-3, 1 << 30), (5, 1 << 29), (2, 1 << 29), (-2, 1 << 29), (6, 1 << 29),
    (-6, 1 << 29), (INT32_MAX, INT32_MAX), (INT32_MIN, INT32_MAX), (INT32_MIN, INT32_MIN), (1234567, 1987654321),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), PRODUCTS)
def test_a_doubling_product_rounds_ties_up_and_saturates(a: int, b: int) -> None:
    expected = min(math.floor(Fraction(a * b, 1 << 31) + Fraction(1, 2)), INT32_MAX)
    assert saturating_rounding_doubling_high_mul(integers(a), b).tolist() == [expected]


@pytest.mark.parametrize("x", [0, 1, -1, 2, -2, 3, -3, 6, -6, 7, -7, 1000003, INT32_MAX, INT32_MIN])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 31])
def test_division_by_a_power_of_two_rounds_halves_away_from_zero(x: int, exponent: int) -> None:
    assert rounding_divide_by_pot(integers(x), exponent).tolist() == [nearest(Fraction(x, 1 << exponent))]


def test_a_left_shift_beyond_32_bits_wraps() -> None:
    # 2**30 + 1 shifted left by 1 is -2**31 + 2 in 32 bits; times 1 - 2**-31.
    found = multiply_by_quantized_multiplier(integers((1 << 30) + 1), INT32_MAX, 1)
    assert found.tolist() == [math.floor(Fraction(((-1 << 31) + 2) * INT32_MAX, 1 << 31) + Fraction(1, 2))]


@pytest.mark.parametrize(
    "mantissa", [1 << 30, (1 << 30) + 40000, 0x7FFEFFFF, 0x7FFF0000, 0x7FFF7FFF, 0x7FFF8000, INT32_MAX]
)
@pytest.mark.parametrize("x", [1, -1, 12345678901, -12345678901, (1 << 46) - 1])
def test_64_bit_sums_are_scaled_by_a_16_bit_mantissa(mantissa: int, x: int) -> None:
    short = (mantissa + (1 << 15)) >> 16 if mantissa < 0x7FFF0000 else 0x7FFF
    expected = math.floor(Fraction(x * short, 1 << 18) + Fraction(1, 2))
    assert multiply_by_quantized_multiplier_64(integers(x), mantissa, -3).tolist() == [expected]


def test_activation_bounds_are_divided_in_single_precision() -> None:
    scale = 6 / 127.5  # in double precision the quotient is exactly a half, in single precision close to it
    found = activation_range(0.0, 6.0, scale, -128, (-128, 127))
    ratio = float(np.float32(6.0) / np.float32(scale))
    assert found == (-128, min(127, -128 + nearest(Fraction(ratio))))
    for real, scale in ((6.0, 0.0705882385), (1.0, 0.0666666701), (6.0, 0.0472440943)):
        ratio = float(np.float32(real) / np.float32(scale))
        assert activation_range(None, real, scale, 0, (-32768, 32767))[1] == nearest(Fraction(ratio))


def test_single_and_double_precision_give_different_activation_bounds() -> None:
    """Scales for which the quotient in double precision rounds to another integer."""
    rng = np.random.default_rng(0)
    scales = 6.0 / (rng.integers(1, 32000, 20000) + 0.5)
    single = [nearest(Fraction(float(np.float32(6.0) / np.float32(s)))) for s in scales]
    assert any(a != nearest(Fraction(6.0 / s)) for a, s in zip(single, scales, strict=True))
    assert [activation_range(None, 6.0, s, 0, (-32768, 32767))[1] for s in scales] == single


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 8, 49, 1000, 1 << 20])
def test_the_count_of_a_mean_is_folded_into_the_multiplier(count: int) -> None:
    before, after = (TensorType(DType.INT8, (1,), Quantization((scale,), (0,))) for scale in (0.37, 0.41))
    found = mean_multiplier(before, after, count)
    whole = quantize_multiplier(0.37 / 0.41)
    bits = max(min(63 - (64 - count.bit_length()), 32, 31 + whole.shift), 0)
    assert (found.mantissa, found.shift) == ((whole.mantissa << bits) // count, whole.shift - bits)
    assert found.mantissa < 1 << 31


# ---- operations


def typed(array: Array, scale: float, zero: int) -> tuple[Array, TensorType]:
    return array, TensorType(DType.from_numpy(array.dtype), array.shape, Quantization((scale,), (zero,)))


def computed(op: Op, given: list[tuple[Array, TensorType]], scale: float, zero: int) -> Array:
    """The result of an operation on quantised tensors."""
    inputs = tuple(type_ for _, type_ in given)
    (result,) = infer(op, inputs) or ()
    types = CallTypes(inputs, (TensorType(result.dtype, result.shape, Quantization((scale,), (zero,))),))
    (found,) = evaluate(op, [array for array, _ in given], types)
    return found


@pytest.mark.parametrize("zeros", [(3, 3, 3), (10, -7, 3), (0, 5, 5), (5, 0, 0)])
@pytest.mark.parametrize("scales", [(0.5, 0.5, 0.5), (0.5, 0.25, 1.0), (0.25, 0.25, 0.5)])
def test_concatenated_tensors_are_requantised_to_the_scale_of_the_result(
    zeros: tuple[int, int, int], scales: tuple[float, float, float]
) -> None:
    arrays = [np.arange(-120, 121, 7, np.int8), np.arange(-100, 101, 9, np.int8)]
    given = [typed(a, s, z) for a, s, z in zip(arrays, scales, zeros, strict=False)]
    found = computed(Concat(0), given, scales[2], zeros[2])
    expected = [
        min(max(nearest((int(v) - z) * Fraction(s) / Fraction(scales[2])) + zeros[2], -128), 127)
        for a, s, z in zip(arrays, scales, zeros, strict=False)
        for v in a
    ]
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("x", "y"), [(-32768, -32768), (-32768, -1), (-32767, -1), (32767, 1), (32767, -32768), (5, -9)]
)
@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB])
def test_sums_of_16_bit_numbers_saturate_at_both_ends(kind: BinaryKind, x: int, y: int) -> None:
    given = [typed(np.array([v], np.int16), 2.0**-10, 0) for v in (x, y)]
    expected = x + y if kind is BinaryKind.ADD else x - y
    found = computed(Binary(kind, power_of_two=True), given, 2.0**-10, 0)
    assert found.tolist() == [min(max(expected, -32768), 32767)]


def test_large_logits_do_not_overflow() -> None:
    x = np.array([[1000.0, 999.0, -1000.0]], np.float32)
    t = TensorType(DType.FLOAT32, x.shape)
    (found,) = evaluate(Softmax(), [x], CallTypes((t,), (t,)))
    np.testing.assert_allclose(found, [[1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0]], rtol=1e-6)


def test_float16_is_computed_in_single_precision_and_rounded_once() -> None:
    y = np.linspace(-8, 8, 999).astype(np.float16)
    t = TensorType(DType.FLOAT16, y.shape)
    (found,) = evaluate(Unary(UnaryKind.LOGISTIC), [y], CallTypes((t,), (t,)))
    assert found.tolist() == (1 / (1 + np.exp(-y.astype(np.float32)))).astype(np.float16).tolist()


@pytest.mark.parametrize(
    ("target", "stored"),
    [(DType.INT8, [127, 127, -128, 0, -1]), (DType.INT64, [(1 << 63) - 1, (1 << 63) - 1, -(1 << 63), 0, -1])],
)
def test_floats_are_cast_towards_zero_and_saturate(target: DType, stored: list[int]) -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.9, -1.9], np.float32)
    t = TensorType(DType.FLOAT32, x.shape)
    (found,) = evaluate(Cast(target), [x], CallTypes((t,), (TensorType(target, x.shape),)))
    assert found.tolist() == stored


# ---- counts of arithmetic


def f32(*shape: int) -> TensorType:
    return TensorType(DType.FLOAT32, shape)


COSTS: list[tuple[Op, list[TensorType], list[TensorType], int]] = [
    (BatchMatMul(), [f32(2, 3, 5), f32(2, 5, 7)], [f32(2, 3, 7)], 2 * 2 * 3 * 7 * 5),
    (FullyConnected(), [f32(4, 5), f32(7, 5), f32(7)], [f32(4, 7)], 2 * 4 * 7 * 5),
    (Conv2D(), [f32(1, 6, 6, 3), f32(8, 3, 2, 3), f32(8)], [f32(1, 4, 5, 8)], 2 * 4 * 5 * 8 * 3 * 2 * 3),
    (
        TransposeConv2D(stride_height=2, stride_width=2),
        [TensorType(DType.INT32, (4,)), f32(5, 3, 2, 6), f32(1, 4, 9, 6)],
        [f32(1, 9, 18, 5)],
        2 * 4 * 9 * 6 * 5 * 3 * 2,
    ),
    (Pool2D(Pooling.MAX, 3, 2), [f32(1, 6, 6, 3)], [f32(1, 4, 5, 3)], 4 * 5 * 3 * 6),
    (Binary(BinaryKind.ADD), [f32(4, 1), f32(1, 5)], [f32(4, 5)], 20),
    (Transpose(), [f32(4, 5), TensorType(DType.INT32, (2,))], [f32(5, 4)], 0),
]


@pytest.mark.parametrize(("axis", "rounds"), [(None, 30), (0, 2), (1, 3), (-1, 5)])
def test_distinct_slices_take_a_round_for_each_slice(axis: int | None, rounds: int) -> None:
    op, x = UniqueSlices(axis), f32(2, 3, 5)
    assert op.rounds(CallTypes((x,), op.infer(x))) == rounds


@pytest.mark.parametrize(("op", "inputs", "outputs", "flops"), COSTS, ids=lambda v: getattr(v, "label", None))
def test_flops_count_products_and_sums(op: Op, inputs: Any, outputs: Any, flops: int) -> None:
    found = cost(op, CallTypes(tuple(inputs), tuple(outputs)))
    assert found.flops == flops
    assert found.nbytes == sum(4 * math.prod(t.shape) for t in (*inputs, *outputs))
