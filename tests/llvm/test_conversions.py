"""Conversions and integer operations that few models use run natively and match their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.case import Case

from onert.ir import DType, Op, Quantization
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast, Dequantize
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.softmax import Softmax
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, whole_range
from .natively import check, single, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def _scale(scale: float, zero: int = 0) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero,))


def _run(isa: Isa, op: Op, operands: tuple[Array, ...], given: tuple[Any, ...], result: Any, *constant: int) -> None:
    case = Case("", op, operands, quantization=given, result_quantization=(result,), constant=constant)
    check(subgraph_of(case), [a for i, a in enumerate(operands) if i not in constant], isa)


@ISAS
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_dequantize_supports_per_channel_scales_on_any_axis(isa: Isa, dtype: Any, axis: int) -> None:
    x = whole_range(dtype, (3, 5, 37))
    count = x.shape[axis]
    zeros = tuple(np.arange(count).tolist()) if dtype is not np.int16 else (0,) * count
    scales = tuple(float(np.float32(0.01 * (i + 1))) for i in range(count))
    _run(isa, Dequantize(), (x,), (Quantization(scales, zeros, axis),), None)


@ISAS
@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16], ids=lambda d: d.text)
def test_every_16_bit_float_is_widened_exactly(isa: Isa, dtype: DType) -> None:
    x = np.arange(1 << 16).astype(np.uint16).view(dtype.numpy)
    for op in (Dequantize(), Cast(DType.FLOAT32)):
        check(*single(op, x), isa, tolerance=0.0)
        check(*single(op, x[1000:1003]), isa, tolerance=0.0)


@ISAS
def test_casts_drop_or_add_the_imaginary_part(isa: Isa) -> None:
    x = np.random.default_rng(0).normal(size=(3, 37, 2)).astype(np.float32)
    check(*single(Cast(DType.FLOAT32), x.view(np.complex64)[..., 0]), isa)
    check(*single(Cast(DType.COMPLEX64), x), isa)
    check(*single(Cast(DType.COMPLEX64), x.view(np.complex64)), isa)


@ISAS
def test_one_element_is_reshaped_to_a_scalar(isa: Isa) -> None:
    x = np.array([[7]], np.float32)
    check(*single(Reshape(()), x), isa)
    check(*single(Reshape(None), x, np.zeros(0, np.int32), constant=(1,)), isa)


@ISAS
@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB], ids=lambda k: k.name)
@pytest.mark.parametrize(
    "exponents", [(-10, -12, -9), (-12, -12, -15), (-1, -12, -8), (-15, 0, -5), (-15, -15, 3)], ids=str
)
def test_int16_sums_with_power_of_two_scales_are_exact(
    isa: Isa, kind: BinaryKind, exponents: tuple[int, int, int]
) -> None:
    x, y = whole_range(np.int16, (3, 211)), whole_range(np.int16, (3, 211), 1)
    scales = [_scale(2.0**e) for e in exponents]
    op = Binary(kind, power_of_two=True)
    _run(isa, op, (x, y), (scales[0], scales[1]), scales[2])
    _run(isa, op, (x, y[:1, :1]), (scales[0], scales[1]), scales[2])
    _run(isa, op, (x, y), (scales[0], _scale(0.0123)), _scale(0.021))


def test_int16_sums_whose_scales_are_too_far_apart_are_not_native() -> None:
    x = np.zeros(3, np.int16)
    given = (_scale(2.0**-3), _scale(2.0**-15))
    case = Case("", Binary(BinaryKind.ADD, power_of_two=True), (x, x), None, given, (_scale(2.0**-30),))
    assert why_not(subgraph_of(case)) == "its scales are too far apart to be shifted"


@ISAS
@pytest.mark.parametrize("kind", [Reduction.MEAN, Reduction.SUM, Reduction.MAX, Reduction.MIN])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("axes", [(0, 2), (0, 2, 3), (1, 3), (1,)], ids=str)
def test_quantised_reductions_support_any_axes(isa: Isa, kind: Reduction, dtype: Any, axes: tuple[int, ...]) -> None:
    x = whole_range(dtype, (3, 5, 4, 19))
    scale = _scale(0.05, 0 if dtype is np.int16 else 7)
    result = scale if kind in (Reduction.MAX, Reduction.MIN) else _scale(0.09, 0 if dtype is np.int16 else 3)
    _run(isa, Reduce(kind), (x, np.array(axes, np.int32)), (scale, None), result, 1)
    _run(isa, Reduce(kind, keep_dims=True), (x, np.array(axes, np.int32)), (scale, None), result, 1)


@ISAS
@pytest.mark.parametrize("scale", [0.1, 0.004, 3.0])
@pytest.mark.parametrize("width", [1, 16, 131])
def test_int8_softmax_may_return_int16(isa: Isa, scale: float, width: int) -> None:
    x = whole_range(np.int8, (3, width))
    _run(isa, Softmax(output=DType.INT16), (x,), (_scale(scale, 3),), _scale(1 / 32768))


@ISAS
@pytest.mark.parametrize("dtype", [np.bool_, np.uint32, np.uint64, np.float64], ids=lambda d: d.__name__)
def test_argmax_and_argmin_support_bool_unsigned_and_float64(isa: Isa, dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 3, (3, 5, 21)).astype(dtype)
    if dtype is not np.bool_ and np.dtype(dtype).kind == "u":
        x[0, 0, 0] = x[1, 2, 5] = np.iinfo(dtype).max
    for axis in range(3):
        for kind in Extreme:
            check(*single(ArgReduce(kind), x, np.array(axis, np.int32), constant=(1,)), isa)
