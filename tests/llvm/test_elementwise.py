"""Element-wise operations of all element types, broadcast in any way, chained, agree with NumPy on every target."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from onert.ir import DType, Op, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.activation import Activation
from onert.ir.ops.binary import AddN, Binary, BinaryKind, PRelu
from onert.ir.ops.comparison import Comparison, ComparisonKind
from onert.ir.ops.convert import Cast
from onert.ir.ops.select import Select
from onert.ir.ops.unary import LeakyRelu, Unary, UnaryKind
from onert_llvm.lower.expressions import BINARY, UNARY
from onert_llvm.target import Isa, runnable

from .harness import Array
from .natively import BACKEND, check, natively, single, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TYPES = (np.float32, np.int32, np.int64, np.bool_, np.int8, np.uint8, np.int16)


def _draw(dtype: Any, *shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if dtype is np.float32:
        return rng.normal(size=shape).astype(np.float32) * 3
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -9), min(info.max, 9), shape).astype(dtype)


def _runs(op: Op, *operands: Any, constant: tuple[int, ...] = ()) -> bool:
    return why_not(single(op, *operands, constant=constant)[0]) is None


@ISAS
@pytest.mark.parametrize("kind", list(BINARY), ids=lambda k: k.name)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
def test_functions_of_two(isa: Isa, kind: BinaryKind, dtype: Any) -> None:
    pair = kind.value
    usual = {"f": pair.floats, "i": pair.integers, "b": pair.booleans}.get(np.dtype(dtype).kind, False)
    if not usual or dtype in (np.int8, np.int16):
        return
    x, y = _draw(dtype, 5, 37), _draw(dtype, 5, 37, seed=1)
    divides = kind in (BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.REMAINDER)
    if divides and dtype is not np.float32:
        for divisor in (1, 3, -7):
            check(*single(Binary(kind), x, np.array(divisor, dtype), constant=(1,)), isa)
        assert not _runs(Binary(kind), x, np.array(0 - 1, dtype), constant=(1,))
    elif _runs(Binary(kind), x, y):
        check(*single(Binary(kind), x, y), isa)
        check(*single(Binary(kind), x, y[:1, :1], constant=(1,)), isa)
    else:
        assert divides


@ISAS
@pytest.mark.parametrize("kind", list(UNARY), ids=lambda k: k.name)
def test_functions_of_one(isa: Isa, kind: UnaryKind) -> None:
    for dtype in (np.float32, np.int32, np.int64, np.bool_):
        x = _draw(dtype, 7, 19)
        scalar = kind.value
        if {"f": not scalar.booleans, "i": scalar.integers, "b": scalar.booleans}[np.dtype(dtype).kind]:
            check(*single(Unary(kind), np.abs(x) if kind in (UnaryKind.LOG, UnaryKind.RSQRT) else x), isa)


@ISAS
@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_small_powers(isa: Isa, exponent: int) -> None:
    power = np.array([exponent], np.float32)
    check(*single(Binary(BinaryKind.POW), _draw(np.float32, 70), power, constant=(1,)), isa)
    assert not _runs(Binary(BinaryKind.POW), _draw(np.float32, 70), power + 1.5, constant=(1,))


SHAPES = [
    ((4, 5, 6), (4, 5, 6)), ((4, 5, 6), (6,)), ((4, 5, 1), (4, 5, 6)), ((4, 1, 6), (1, 5, 1)), ((1,), (3, 70)),
    ((2, 1, 3, 1, 5), (1, 4, 1, 2, 5)), ((7, 1), (1, 9)), ((), (3,)), ((), ()), ((1, 1), (1, 1)), ((2, 9000), (9000,)),
    ((2, 9000), (2, 1)), ((20000,), (20000,)), ((3, 1, 9000), (1, 2, 1)),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_shapes_broadcast(isa: Isa, a: tuple[int, ...], b: tuple[int, ...], threads: int) -> None:
    x, y = _draw(np.float32, *a), _draw(np.float32, *b, seed=1)
    check(*single(Binary(BinaryKind.SUB, Activation.RELU), x, y), isa, threads=threads)
    check(*single(PRelu(), x, y), isa, threads=threads)
    check(*single(Comparison(ComparisonKind.LESS_EQUAL), x, y), isa, threads=threads)
    check(*single(Select(), x > 0, x + 1, y), isa, threads=threads)


@ISAS
@pytest.mark.parametrize("kind", list(ComparisonKind), ids=lambda k: k.name)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
def test_relations(isa: Isa, kind: ComparisonKind, dtype: Any) -> None:
    if dtype is np.bool_ and kind.value.ordered:
        return
    x, y = _draw(dtype, 3, 50), _draw(dtype, 3, 50, seed=1)
    if dtype is np.uint8:
        y = y + np.uint8(200)
    check(*single(Comparison(kind), x, y), isa)


@ISAS
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
def test_conditions_choose_elements_or_rows(isa: Isa, dtype: Any) -> None:
    x, y = _draw(dtype, 4, 50), _draw(dtype, 4, 50, seed=1)
    check(*single(Select(), _draw(np.bool_, 4, 50), x, y), isa)
    check(*single(Select(rows=True), _draw(np.bool_, 4), x, y), isa)


@ISAS
@pytest.mark.parametrize(("source", "target"), list(product(TYPES, TYPES)), ids=lambda d: d.__name__)
def test_casts(isa: Isa, source: Any, target: Any) -> None:
    x = _draw(source, 3, 50)
    if source is np.float32:
        x[0, :8] = [np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, -0.7, 127.6]
    elif source is not np.bool_:
        x[0, :2] = np.iinfo(source).min, np.iinfo(source).max
    check(*single(Cast(DType.from_numpy(np.dtype(target))), x), isa)


@ISAS
def test_not_a_number_stays_so(isa: Isa) -> None:
    x = np.array([np.nan, 1, -1], np.float32)
    for op in (Unary(UnaryKind.RELU), Unary(UnaryKind.RELU6), LeakyRelu(0.5), Unary(UnaryKind.SIGN)):
        check(*single(op, x), isa)
    for kind in (BinaryKind.MAXIMUM, BinaryKind.MINIMUM):
        check(*single(Binary(kind), x, x[::-1].copy()), isa)


@ISAS
def test_sums_of_many(isa: Isa) -> None:
    for dtype in (np.float32, np.int32):
        check(*single(AddN(), *(_draw(dtype, 9, 9, seed=i) for i in range(4))), isa)


@ISAS
def test_a_chain_over_several_element_types_is_one_kernel(isa: Isa) -> None:
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, (6, 50))) for _ in range(2))
    row = b.input(TensorType(DType.FLOAT32, (6, 1)))
    less = b.add(Comparison(ComparisonKind.LESS), x, row)
    other = b.add(Unary(UnaryKind.LOGICAL_NOT), less)
    whole = b.add(Cast(DType.INT32), other)
    three = b.add(Binary(BinaryKind.MUL), whole, b.constant(np.array(3, np.int32)))
    out = b.add(Binary(BinaryKind.ADD), b.add(Cast(DType.FLOAT32), three), y)
    subgraph = b.subgraph([out])
    assert all(BACKEND.supports(o, subgraph.types(o)) is None for o in subgraph.operations)
    arrays = [_draw(np.float32, 6, 50), _draw(np.float32, 6, 50, seed=1), _draw(np.float32, 6, 1, seed=2)]
    expected = np.where(arrays[0] < arrays[2], 0, 3) + arrays[1]
    np.testing.assert_allclose(natively(subgraph, arrays, isa)[0], expected, rtol=1e-6)
