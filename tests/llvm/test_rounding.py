"""Floats are converted to integers natively as in the reference, around halves and beyond both ends of the range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.case import Case

from onert.ir import DType, Quantization
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.convert import Cast, Quantize
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.target.isa import Isa, runnable

from .harness import whole_range
from .natively import check, natively, single, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
HALVES = np.array([0.5, 1.5, 2.5, 3.5, 100.5, 126.5, 127.5, 200.5, 255.5], np.float32)
BESIDE = [HALVES, *(np.nextafter(HALVES, np.float32(to)) for to in (0, 999))]
NEAR = np.concatenate([*BESIDE, *(-each for each in BESIDE)])


@ISAS
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT16], ids=lambda d: d.text)
@pytest.mark.parametrize("zero", [0, 3])
def test_quantisation_rounds_only_exact_halves_away_from_zero(isa: Isa, dtype: DType, zero: int) -> None:
    case = Case("", Quantize(dtype), (NEAR,), None, (None,), (Quantization((1.0,), (zero,)),))
    (found,) = natively(subgraph_of(case), [NEAR], isa)
    low, high = dtype.limits
    whole = np.trunc(NEAR.astype(np.float64))
    wanted = whole + np.where(np.abs(NEAR - whole) >= 0.5, np.sign(NEAR), 0)
    np.testing.assert_array_equal(found, np.clip(wanted + zero, low, high))


@ISAS
@pytest.mark.parametrize("target", [DType.INT8, DType.INT16, DType.INT32], ids=lambda d: d.text)
def test_casts_to_integers_truncate(isa: Isa, target: DType) -> None:
    check(*single(Cast(target), np.concatenate([NEAR, np.float32([3e9, -3e9, np.nan, np.inf, -np.inf])])), isa)


@ISAS
@pytest.mark.parametrize("target", [DType.FLOAT16, DType.BFLOAT16], ids=lambda d: d.text)
def test_casts_to_16_bit_floats_round_to_nearest(isa: Isa, target: DType) -> None:
    sizes = np.arange(0x7C00 if target is DType.FLOAT16 else 0x7F80, dtype=np.uint16).view(target.numpy)
    exact = sizes.astype(np.float32)
    between = (exact[:-1] * np.float32(0.5) + exact[1:] * np.float32(0.5)).astype(np.float32)
    near = [np.nextafter(between, np.float32(to)) for to in (0, np.inf)]
    x = np.concatenate([exact, between, *near, np.float32([65519, 65520, np.inf, np.nan])])
    x = np.concatenate([x, -x])
    (found,) = natively(subgraph_of(Case("", Cast(target), (x,), None)), [x], isa)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found.astype(np.float32), x.astype(target.numpy).astype(np.float32))


@ISAS
@pytest.mark.parametrize("kind", [UnaryKind.ROUND, UnaryKind.FLOOR, UnaryKind.CEIL], ids=lambda k: k.name)
def test_rounding_functions_are_exact(isa: Isa, kind: UnaryKind) -> None:
    check(*single(Unary(kind), NEAR), isa, tolerance=0)


@ISAS
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16], ids=lambda d: d.__name__)
@pytest.mark.parametrize(("scale", "zero"), [(0.5, 0), (0.5, 5), (0.25, 5), (0.7, -3)])
def test_concatenation_requantises_to_the_result_s_scale(isa: Isa, dtype: Any, scale: float, zero: int) -> None:
    x, y = whole_range(dtype, (2, 35)), whole_range(dtype, (2, 35), 1)
    here, zero = (0, 0) if dtype is np.int16 else (5, abs(zero) if dtype is np.uint8 else zero)
    scales: Any = (Quantization((scale,), (zero,)), Quantization((0.5,), (here,)))
    subgraph = subgraph_of(Case("", Concat(1), (x, y), None, scales, scales[1:]))
    if dtype is np.int16 and scale != 0.5:
        assert why_not(subgraph)
    else:
        check(subgraph, [x, y], isa)
