"""Products with one-hot rows, and functions of gathered rows, are replaced by gathers from a precomputed table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.gather import Gather, OneHot
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

DEPTH, WIDTH, COUNT = 5, 3, 12
RANDOM = np.random.default_rng(3)
WEIGHTS = RANDOM.normal(0, 1, (WIDTH, DEPTH)).astype(np.float32)
BIAS = RANDOM.normal(0, 1, WIDTH).astype(np.float32)


def _number(b: Builder, value: float) -> int:
    return b.constant(value, dtype=DType.FLOAT32)


def _one_hot(b: Builder, dtype: DType) -> int:
    x = b.input(TensorType(dtype, (COUNT,)), "x")
    return b.add(OneHot(), x, b.constant(DEPTH, dtype=DType.INT32), _number(b, 1), _number(b, 0))


def _compared(b: Builder, dtype: DType) -> int:
    x = b.input(TensorType(dtype, (COUNT, 1)), "x")
    numbers = b.constant(np.arange(DEPTH).reshape(1, DEPTH), dtype=dtype)
    return b.add(Cast(DType.FLOAT32), b.add(Comparison(ComparisonKind.EQUAL), numbers, x))


def _package(write: Callable[[Builder, DType], int], dtype: DType, weights: Any) -> Package:
    """One-hot rows through a dense layer, then `y * (tanh(y) + 1)`."""
    b = Builder()
    layer = FullyConnected(Activation.RELU6, keep_dims=True)
    y = b.add(layer, write(b, dtype), b.constant(weights), b.constant(BIAS))
    one_more = b.add(Binary(BinaryKind.ADD), b.add(Unary(UnaryKind.TANH), y), _number(b, 1))
    return Package((Subgraphs((b.subgraph([b.add(Binary(BinaryKind.MUL), y, one_more)]),)),), "one hot")


def _kinds(program: Any) -> list[str]:
    return [type(o.op).__name__ for o in program.main.subgraph.operations]


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64], ids=lambda d: d.text)
@pytest.mark.parametrize("write", [_one_hot, _compared], ids=["operation", "comparison"])
def test_a_product_with_one_hot_rows_and_its_functions_become_one_table(
    write: Callable[[Builder, DType], int], dtype: DType
) -> None:
    package = _package(write, dtype, WEIGHTS)
    program = onert.compile(package)
    assert set(_kinds(program)) <= {"Squeeze", "Reshape", "Binary", "Gather"}
    whole = onert.compile(package, disabled_passes=("pick_rows",))
    assert "FullyConnected" in _kinds(whole)
    info = np.iinfo(dtype.numpy)
    x = np.array([*range(-2, DEPTH + 3), info.min, info.max], dtype.numpy)[:COUNT].reshape(program.inputs[0].shape)
    (mine,), (expected,) = (onert.Execution(p).run([x]).values() for p in (program, whole))
    np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("broken", [np.inf, np.nan])
def test_a_product_with_weights_that_are_not_finite_is_not_rewritten(broken: float) -> None:
    weights = WEIGHTS.copy()
    weights[1, 2] = broken
    assert "FullyConnected" in _kinds(onert.compile(_package(_one_hot, DType.INT32, weights)))


@pytest.mark.parametrize(("rows", "lifted"), [(COUNT, True), (COUNT + 1, False)])
def test_functions_move_into_a_table_with_no_more_rows_than_are_gathered(rows: int, lifted: bool) -> None:
    b = Builder()
    x, table = b.input(TensorType(DType.INT32, (COUNT,)), "x"), RANDOM.normal(0, 1, (rows, 4)).astype(np.float32)
    y = b.add(Unary(UnaryKind.ABS), b.add(Gather(), b.constant(table), x))
    program = onert.compile(Package((Subgraphs((b.subgraph([y]),)),), "rows"))
    assert _kinds(program) == (["Gather"] if lifted else ["Gather", "Unary"])
    indices = RANDOM.integers(0, rows, COUNT).astype(np.int32)
    (found,) = onert.Execution(program).run([indices]).values()
    np.testing.assert_array_equal(found, np.abs(table[indices]))
