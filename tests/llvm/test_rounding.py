"""Floats are converted to integers natively as in the reference, around halves and beyond both ends of the range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.case import Case

from onert.ir import DType, Quantization, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast, Quantize
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.kernels.arithmetic.expression import Apply, Const, Fn, Kind, Leaf
from onert_llvm.kernels.arithmetic.ranges import bounds
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, whole_range
from .natively import check, kernels, natively, single, subgraph_of, why_not

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


def _rounded(x: Array, dtype: DType, zero: float, divisor: float, after: bool) -> Subgraph:
    """Floats divided, rounded, moved by a zero point after or before that, clamped and converted to bytes."""
    b = Builder()
    found = b.add(Binary(BinaryKind.DIV), b.input(TensorType(DType.FLOAT32, x.shape)), b.constant(np.float32(divisor)))
    found = b.add(Unary(UnaryKind.ROUND), found) if after else found
    found = b.add(Binary(BinaryKind.ADD), found, b.constant(np.float32(zero)))
    found = found if after else b.add(Unary(UnaryKind.ROUND), found)
    low, high = (b.constant(np.float32(end)) for end in dtype.limits)
    found = b.add(Binary(BinaryKind.MINIMUM), b.add(Binary(BinaryKind.MAXIMUM), found, low), high)
    return b.subgraph([b.add(Cast(dtype), found)])


@ISAS
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8], ids=lambda d: d.text)
@pytest.mark.parametrize("after", [True, False])
def test_rounded_floats_saturate_to_bytes(isa: Isa, dtype: DType, after: bool) -> None:
    ends = np.float32([3e9, 1e38, np.inf, 2**22, 2**23 + 1, 40000, 127.5, 128.5, 1e-40, 0])
    x = np.concatenate([NEAR, ends, -ends, np.float32([np.nan]), np.linspace(-400, 400, 400, dtype=np.float32)])
    for zero in (dtype.limits[0], 5, dtype.limits[1], 300, 0.5):
        for divisor in (1.0, 0.7):
            check(_rounded(x, dtype, zero, divisor, after), [x], isa, tolerance=0)


@ISAS
@pytest.mark.parametrize(("one", "other"), [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)])
@pytest.mark.parametrize("factor", [0.37, 30.0, 1e30])
def test_arithmetic_on_bytes_is_one_loop_from_bytes_to_bytes(isa: Isa, one: Any, other: Any, factor: float) -> None:
    b = Builder()
    arrays = [whole_range(one, (3, 71)), whole_range(other, (3, 71), 1)]
    x, y = (b.add(Cast(DType.FLOAT32), b.input(TensorType(DType.from_numpy(a.dtype), a.shape))) for a in arrays)
    found = b.add(Binary(BinaryKind.SUB), b.add(Binary(BinaryKind.MUL), x, b.constant(np.float32(factor))), y)
    found = b.add(Binary(BinaryKind.ADD), b.add(Unary(UnaryKind.ROUND), found), b.constant(np.float32(7)))
    low, high = (b.constant(np.float32(end)) for end in (-128, 127))
    found = b.add(Binary(BinaryKind.MINIMUM), b.add(Binary(BinaryKind.MAXIMUM), found, low), high)
    subgraph = b.subgraph([b.add(Cast(DType.INT8), found)])
    assert kernels(subgraph, isa).total() == 1
    check(subgraph, arrays, isa, tolerance=0)


_BYTE = Apply(Fn.CAST, (Leaf("x", Kind.I8),))
_SUM = Apply(Fn.ADD, (Apply(Fn.MUL, (_BYTE, Const(-2.0))), Apply(Fn.CAST, (Leaf("y", Kind.U8),))))


@pytest.mark.parametrize(
    ("tree", "least", "most"),
    [
        (_BYTE, -128, 127),
        (_SUM, -254, 511),
        (Apply(Fn.NEG, (_SUM,)), -511, 254),
        (Apply(Fn.DIV, (_SUM, Const(-0.5))), -1022, 508),
        (Apply(Fn.SELECT, (Apply(Fn.LT, (_BYTE, Const(0.0)), Kind.BOOL), _SUM, _BYTE)), -254, 511),
    ],
    ids=str,
)
def test_bounds_of_arithmetic_on_bytes_enclose_it_closely(tree: Apply, least: float, most: float) -> None:
    found = bounds(tree)
    assert found is not None
    assert least - 10 <= found[0] <= least
    assert most <= found[1] <= most + 10


@pytest.mark.parametrize(
    "tree",
    [
        Leaf("x"),
        Apply(Fn.MUL, (_BYTE, Const(float("inf")))),
        Apply(Fn.DIV, (_BYTE, _BYTE)),
        Apply(Fn.CAST, (Leaf("x", Kind.I32),)),
        Apply(Fn.SQRT, (_BYTE,)),
        Apply(Fn.MUL, (Apply(Fn.MUL, (_BYTE, Const(1e30))), Const(1e-30))),
    ],
    ids=str,
)
def test_numbers_that_may_be_nan_or_wrap_have_no_bounds(tree: Leaf | Apply) -> None:
    assert bounds(tree) is None
