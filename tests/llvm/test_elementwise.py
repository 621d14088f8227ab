"""Elementwise operations of all element types, broadcast in any way and in chains, agree with NumPy on every target."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest

from onert.ir import DType, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import AddN, Binary, BinaryKind, PRelu
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind
from onert_llvm.lower.elementwise.op_to_expression import BINARY, UNARY
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, whole_range
from .natively import BACKEND, check, natively, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TYPES = (np.float32, np.int32, np.int64, np.bool_, np.int8, np.uint8, np.int16)


def _draw(dtype: Any, *shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if dtype is np.float32:
        return rng.normal(size=shape).astype(np.float32) * 3
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    return whole_range(dtype, shape, seed)


DIVISIONS = (BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.REMAINDER)


def _named(rows: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Rows of a function and an element type, as test parameters."""
    return [pytest.param(kind, dtype, id=f"{kind.name} {dtype.__name__}") for kind, dtype in rows]


def _pairs() -> list[tuple[BinaryKind, Any]]:
    """Binary functions with the element types they support."""
    found = []
    for kind, dtype in product(BINARY, TYPES):
        takes = {"f": kind.value.floats, "b": kind.value.booleans}.get(np.dtype(dtype).kind, kind.value.integers)
        if takes:
            found.append((kind, dtype))
    return found


def _anywhere(kind: BinaryKind, dtype: Any) -> bool:
    """Whether a function is defined for all operands and computed exactly."""
    return kind not in (*DIVISIONS, BinaryKind.POW, BinaryKind.ATAN2)


@ISAS
@pytest.mark.parametrize(("kind", "dtype"), _named(p for p in _pairs() if _anywhere(*p)))
def test_binary_functions_agree_with_numpy(isa: Isa, kind: BinaryKind, dtype: Any) -> None:
    x, y = _draw(dtype, 5, 37), _draw(dtype, 5, 37, seed=1)
    check(*single(Binary(kind), x, y), isa)
    check(*single(Binary(kind), x, y[:1, :1], constant=(1,)), isa)


@ISAS
@pytest.mark.parametrize("kind", [BinaryKind.DIV, BinaryKind.FLOOR_DIV], ids=lambda k: k.name)
def test_float_quotients_agree_with_numpy(isa: Isa, kind: BinaryKind) -> None:
    x, y = _draw(np.float32, 5, 37), _draw(np.float32, 5, 37, seed=1)
    check(*single(Binary(kind), x, y), isa)


@ISAS
@pytest.mark.parametrize(("kind", "dtype"), _named(p for p in _pairs() if p[0] in DIVISIONS and p[1] is not np.float32))
def test_integer_division_by_a_constant_is_exact(isa: Isa, kind: BinaryKind, dtype: Any) -> None:
    x, info = _draw(dtype, 5, 37), np.iinfo(dtype)
    for divisor in {
        1,
        3,
        -7 if info.min else 7,
        min(1 << 20, info.max),
        info.max,
        info.min or 5,
        -1 if info.min else 2,
    }:
        with np.errstate(over="ignore"):
            check(*single(Binary(kind), x, np.array(divisor, dtype), constant=(1,)), isa)


def _singles() -> list[tuple[UnaryKind, Any]]:
    """Unary functions with the element types they support."""
    found = []
    for kind, dtype in product(UNARY, (np.float32, np.int32, np.int64, np.bool_)):
        takes = {"f": not kind.value.booleans, "i": kind.value.integers, "b": kind.value.booleans}
        if takes[np.dtype(dtype).kind]:
            found.append((kind, dtype))
    return found


@ISAS
@pytest.mark.parametrize(("kind", "dtype"), _named(_singles()))
def test_unary_functions_agree_with_numpy(isa: Isa, kind: UnaryKind, dtype: Any) -> None:
    x = _draw(dtype, 7, 19)
    check(*single(Unary(kind), np.abs(x) if kind in (UnaryKind.LOG, UnaryKind.RSQRT) else x), isa)


@ISAS
@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_powers_with_constant_exponents_match_their_definition(isa: Isa, exponent: int) -> None:
    power = np.array([exponent], np.float32)
    check(*single(Binary(BinaryKind.POW), _draw(np.float32, 70), power, constant=(1,)), isa)
    check(*single(Binary(BinaryKind.POW), np.abs(_draw(np.float32, 70)), power + 0.5, constant=(1,)), isa)


SHAPES = [
    ((4, 5, 6), (4, 5, 6)), ((4, 5, 6), (6,)), ((4, 5, 1), (4, 5, 6)), ((4, 1, 6), (1, 5, 1)), ((1,), (3, 70)),
    ((2, 1, 3, 1, 5), (1, 4, 1, 2, 5)), ((7, 1), (1, 9)), ((), (3,)), ((), ()), ((1, 1), (1, 1)), ((2, 9000), (9000,)),
    ((2, 9000), (2, 1)), ((20000,), (20000,)), ((3, 1, 9000), (1, 2, 1)),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_different_shapes_are_broadcast(isa: Isa, a: tuple[int, ...], b: tuple[int, ...], threads: int) -> None:
    x, y = _draw(np.float32, *a), _draw(np.float32, *b, seed=1)
    check(*single(Binary(BinaryKind.SUB, Activation.RELU), x, y), isa, threads=threads)
    if np.broadcast_shapes(a, b) == a:
        check(*single(PRelu(), x, y), isa, threads=threads)
    check(*single(Comparison(ComparisonKind.LESS_EQUAL), x, y), isa, threads=threads)
    check(*single(Select(), x > 0, x + 1, y), isa, threads=threads)


@ISAS
@pytest.mark.parametrize(
    ("kind", "dtype"),
    _named(p for p in product(ComparisonKind, TYPES) if not (p[1] is np.bool_ and p[0].value.ordered)),
)
def test_comparisons_agree_with_numpy(isa: Isa, kind: ComparisonKind, dtype: Any) -> None:
    x, y = _draw(dtype, 3, 50), _draw(dtype, 3, 50, seed=1)
    y[:, ::3] = x[:, ::3]
    check(*single(Comparison(kind), x, y), isa)


@ISAS
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.__name__)
def test_select_picks_elements_or_rows(isa: Isa, dtype: Any) -> None:
    x, y = _draw(dtype, 4, 50), _draw(dtype, 4, 50, seed=1)
    check(*single(Select(), _draw(np.bool_, 4, 50), x, y), isa)
    check(*single(Select(rows=True), _draw(np.bool_, 4), x, y), isa)


@ISAS
@pytest.mark.parametrize(("source", "target"), list(product(TYPES, TYPES)), ids=lambda d: d.__name__)
def test_casts_agree_with_numpy(isa: Isa, source: Any, target: Any) -> None:
    x = _draw(source, 3, 50)
    if source is np.float32:
        x[0, :8] = [np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, -0.7, 127.6]
    elif source is not np.bool_:
        x[0, :2] = np.iinfo(source).min, np.iinfo(source).max
    check(*single(Cast(DType.from_numpy(np.dtype(target))), x), isa)


@ISAS
def test_nan_propagates(isa: Isa) -> None:
    x = np.array([np.nan, 1, -1], np.float32)
    for op in (Unary(UnaryKind.RELU), Unary(UnaryKind.RELU6), LeakyRelu(0.5), Unary(UnaryKind.SIGN)):
        check(*single(op, x), isa)
    for kind in (BinaryKind.MAXIMUM, BinaryKind.MINIMUM):
        check(*single(Binary(kind), x, x[::-1].copy()), isa)


@ISAS
def test_add_n_agrees_with_numpy(isa: Isa) -> None:
    for dtype in (np.float32, np.int32):
        check(*single(AddN(), *(_draw(dtype, 9, 9, seed=i) for i in range(4))), isa)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("count", [16, 17, 1000])
def test_add_n_of_many_operands_compiles_from_a_deep_call_stack(count: int, same: bool) -> None:
    b = Builder()
    xs = [b.input(TensorType(DType.FLOAT32, (3, 5))) for _ in range(1 if same else count)]
    graph = b.subgraph([b.add(AddN(), *(xs[i % len(xs)] for i in range(count)))])
    arrays = [_draw(np.float32, 3, 5, seed=i) for i in range(len(xs))]

    def called(depth: int) -> list[Array]:
        return called(depth - 1) if depth else natively(graph, arrays, runnable()[-1])

    (total,) = called(300)
    np.testing.assert_array_equal(total, AddN().evaluate(*(arrays[i % len(xs)] for i in range(count))))


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
