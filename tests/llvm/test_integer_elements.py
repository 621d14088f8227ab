"""Unary and binary functions of 8-bit integers, with any broadcasting, equal the reference on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.case import Case

from onert.ir import CallTypes, DType, Op, Quantization, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import Binary, BinaryKind, PRelu
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind
from onert_llvm.lower.elementwise.sum_factors import affine_factors, whole_factors
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, whole_range
from .natively import check, subgraph_of

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SIGNED = pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["int8", "uint8"])
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 37), (3, 37)),
    ((2, 3, 4, 5, 6), (2, 3, 4, 5, 6)),
    ((2, 5, 37), (37,)),
    ((4, 7, 16), (4, 7, 1)),
    ((1, 5, 1, 33), (2, 1, 4, 33)),
    ((2, 3, 4, 5), (2, 1, 4, 1)),
    ((1,), (3, 70)),
    ((2, 600), ()),
    ((1, 1), (1, 1)),
]
FIXED = [BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.SQUARED_DIFFERENCE]
SCALES = [(0.05, 0.04, 0.09), (0.02, 0.3, 0.11), (0.25, 0.125, 0.5), (1.0, 0.01, 0.007)]


def _bytes(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def _scale(scale: float, zero: int, dtype: Any) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero + (128 if dtype == np.uint8 else 0),))


def _case(op: Op, operands: list[Array], scales: list[Quantization | None], *constant: int) -> Case:
    *inputs, result = scales
    return Case("", op, tuple(operands), quantization=tuple(inputs), result_quantization=(result,), constant=constant)


def _run(case: Case, isa: Isa) -> None:
    check(subgraph_of(case), [a for i, a in enumerate(case.inputs) if a is not None and i not in case.constant], isa)


LOOPS = [*FIXED[:3], BinaryKind.MAXIMUM, BinaryKind.MINIMUM, BinaryKind.BITWISE_XOR]


@ISAS
@SIGNED
def test_arithmetic_of_bytes_without_scales_wraps(isa: Isa, dtype: Any) -> None:
    for kind, (first, second) in zip(LOOPS, [SHAPES[0], *SHAPES[2:5], *SHAPES[6:8]], strict=True):
        sides = [_bytes(first, dtype), _bytes(second, dtype, 1)]
        _run(_case(Binary(kind), sides, [None, None, None]), isa)
        _run(_case(Comparison(ComparisonKind.LESS), sides, [None, None, None]), isa)


@ISAS
@SIGNED
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("kind", FIXED)
def test_quantised_arithmetic_broadcasts(isa: Isa, dtype: Any, shapes: Any, kind: BinaryKind) -> None:
    scales = [_scale(s, z, dtype) for s, z in ((0.05, 3), (0.021, -20), (0.062, 7))]
    operands = [_bytes(shape, dtype, i) for i, shape in enumerate(shapes)]
    _run(_case(Binary(kind), operands, [*scales]), isa)
    _run(_case(Binary(kind, Activation.RELU6), operands[::-1], [*scales], 1), isa)


@ISAS
@pytest.mark.parametrize("dtype", [np.int8])
@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("kind", FIXED)
def test_arithmetic_is_exact_for_every_pair_of_bytes(isa: Isa, dtype: Any, scales: Any, kind: BinaryKind) -> None:
    every = np.arange(-128, 128).astype(dtype)
    found = [_scale(s, z, dtype) for s, z in zip(scales, (3, -7, 11), strict=True)]
    _run(_case(Binary(kind), [every[:, None], every], [*found]), isa)


def test_squared_differences_with_growing_scales_are_exact() -> None:
    """A product with a multiplier of one or more may exceed 32 bits, so a table is used."""
    operands = [_bytes((4, 30), np.int8), _bytes((4, 30), np.int8, 1)]
    scales = [_scale(s, z, np.int8) for s, z in ((1.0, 3), (0.9, -7), (4 / (1 << 14), 11))]
    _run(_case(Binary(BinaryKind.SQUARED_DIFFERENCE), operands, [*scales]), runnable()[-1])


def test_sums_with_exact_halves_use_integer_factors() -> None:
    """Halves are rounded away from zero on both sides, which none of the affine float functions tried does."""
    isa, op = runnable()[-1], Binary(BinaryKind.ADD)
    floats, whole = [], []
    for scales in SCALES:
        types = [TensorType(DType.INT8, (8,), _scale(s, 0, np.int8)) for s in scales]
        call = CallTypes((types[0], types[1]), (types[2],))
        floats.append(affine_factors(op, call, isa))
        whole.append(whole_factors(op, call))
    assert floats[2] is None
    assert any(floats)
    assert whole[2]


@ISAS
@SIGNED
@pytest.mark.parametrize(
    "kind",
    [BinaryKind.DIV, BinaryKind.MAXIMUM, BinaryKind.POW, BinaryKind.BITWISE_XOR],
)
def test_other_binary_functions_of_bytes_are_exact(isa: Isa, dtype: Any, kind: BinaryKind) -> None:
    operands = [_bytes((4, 1, 30), dtype), _bytes((3, 30), dtype, 1)]
    _run(_case(Binary(kind), operands, [_scale(s, z, dtype) for s, z in ((0.05, 3), (0.021, 1), (0.02, 7))]), isa)


@ISAS
@SIGNED
@pytest.mark.parametrize("kind", [BinaryKind.FLOOR_MOD, BinaryKind.FLOOR_DIV, BinaryKind.SHIFT_RIGHT])
def test_integer_divisions_operate_on_the_stored_values(isa: Isa, dtype: Any, kind: BinaryKind) -> None:
    divisors = _bytes((4, 30), dtype, 1)
    operands = [_bytes((4, 30), dtype), np.where(divisors == 0, dtype(3), divisors)]
    _run(_case(Binary(kind), operands, [_scale(0.05, 3, dtype)] * 3), isa)


@ISAS
@SIGNED
def test_unquantised_bytes_wrap_and_compare(isa: Isa, dtype: Any) -> None:
    operands = [_bytes((4, 30), dtype), _bytes((30,), dtype, 1)]
    for op in (Binary(BinaryKind.ADD), Binary(BinaryKind.MINIMUM), Comparison(ComparisonKind.LESS_EQUAL)):
        _run(_case(op, operands, [None, None, None]), isa)


@ISAS
@SIGNED
@pytest.mark.parametrize("kind", ComparisonKind)
def test_comparisons_across_scales_are_exact(isa: Isa, dtype: Any, kind: ComparisonKind) -> None:
    operands = [_bytes((4, 30), dtype), _bytes((4, 1), dtype, 1)]
    _run(_case(Comparison(kind), operands, [_scale(0.05, 3, dtype), _scale(0.021, -4, dtype), None]), isa)


@ISAS
@pytest.mark.parametrize("scales", [(0.05, 0.021), (3.0e-5, 3.1e-5), (0.7, 1.4), (3.0, 1000.0), (1e-12, 1.0)], ids=str)
def test_comparisons_of_16_bit_integers_across_scales_are_exact(isa: Isa, scales: tuple[float, float]) -> None:
    x, y = whole_range(np.int16, (5, 37)), whole_range(np.int16, (5, 1), 1)
    x[:, 0] = y[:, 0]
    given = [_scale(scale, 0, np.int16) for scale in scales]
    for kind in ComparisonKind:
        for operands in ((x, y), (y, x), (x, np.int16([[321]]))):
            _run(_case(Comparison(kind), list(operands), [*given, None], *([1] if operands[1].size == 1 else [])), isa)


@ISAS
def test_integers_with_and_without_a_scale_compare_as_they_are_stored(isa: Isa) -> None:
    operands = [whole_range(np.int16, (5, 37)), whole_range(np.int16, (5, 37), 1)]
    _run(_case(Comparison(ComparisonKind.LESS), operands, [_scale(0.5, 0, np.int16), None, None]), isa)


@ISAS
@SIGNED
def test_prelu_is_exact(isa: Isa, dtype: Any) -> None:
    scales = [_scale(s, z, dtype) for s, z in ((0.05, 3), (0.01, -4), (0.05, 7))]
    _run(_case(PRelu(), [_bytes((2, 5, 6, 7), dtype), _bytes((1, 1, 7), dtype, 1)], [*scales], 1), isa)


_FUNCTIONS = [k for k in UnaryKind if k.value.integers or (not k.value.booleans and k.name not in ("REAL", "IMAG"))]


@ISAS
@SIGNED
@pytest.mark.parametrize("kind", [k for k in _FUNCTIONS if k is not UnaryKind.COMPLEX_ABS])
def test_unary_functions_of_every_byte_are_exact(isa: Isa, dtype: Any, kind: UnaryKind) -> None:
    every = np.arange(256).astype(np.uint8).view(dtype)
    _run(_case(Unary(kind), [np.resize(every, (3, 7, 19))], [_scale(0.05, 3, dtype), _scale(0.07, -9, dtype)]), isa)


@ISAS
@SIGNED
def test_requantisation_casts_and_leaky_relu_are_exact(isa: Isa, dtype: Any) -> None:
    x, scales = _bytes((5, 131), dtype), [_scale(0.05, 3, dtype), _scale(0.07, -9, dtype)]
    _run(_case(LeakyRelu(0.3), [x], [*scales]), isa)
    _run(_case(Quantize(DType.from_numpy(np.dtype(dtype))), [x], [*scales]), isa)
    other = np.uint8 if dtype == np.int8 else np.int8
    _run(_case(Quantize(DType.from_numpy(np.dtype(other))), [x], [scales[0], _scale(0.05, 3, other)]), isa)
    _run(_case(Cast(DType.BOOL), [x], [None, None]), isa)


@ISAS
@SIGNED
@pytest.mark.parametrize("size", [1, 15, 16, 4099])
def test_quantisation_and_dequantisation_are_exact(isa: Isa, dtype: Any, size: int) -> None:
    scale = _scale(0.05, 3, dtype)
    reals = (np.random.default_rng(0).standard_normal(size) * 4).astype(np.float32)
    halves = (np.arange(size, dtype=np.float32) - size // 2 + np.float32(0.5)) * np.float32(0.05)
    odd = np.resize(np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0], np.float32), size)
    for x in (reals, halves, odd):
        _run(_case(Quantize(DType.from_numpy(np.dtype(dtype))), [x], [None, scale]), isa)
    x = _bytes((size,), dtype)
    _run(_case(Dequantize(), [x], [scale, None]), isa)
    _run(_case(Cast(DType.FLOAT32), [x], [None, None]), isa)


@ISAS
@SIGNED
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenation_of_bytes_with_different_scales_is_exact(isa: Isa, dtype: Any, axis: int) -> None:
    operands = [_bytes((2, 3, 21), dtype, i) for i in range(3)]
    scales = [_scale(s, z, dtype) for s, z in ((0.05, 3), (0.021, 1), (0.05, 3))]
    for activation in (Activation.NONE, Activation.RELU6):
        _run(_case(Concat(axis, activation), operands, [*scales, scales[0]]), isa)
