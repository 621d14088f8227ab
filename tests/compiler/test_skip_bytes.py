"""A quantised tensor stays if it is only mapped to quantised tensors elementwise, and is skipped if floats use it."""

from __future__ import annotations

import numpy as np
import pytest
from llvm.natively import evaluated, natively

from onert.compiler.options import Options
from onert.compiler.passes.quantized.skip_bytes import skip_bytes
from onert.compiler.passes.remove_dead import remove_dead
from onert.compiler.pipeline import simplify
from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.target.isa import runnable

from .stored_floats import quantized, scalar

BYTES = (DType.INT8, DType.UINT8)
SHAPE = (2, 3, 200)


def _dequantized(b: Builder, x: int, scale: float, zero: int) -> int:
    centred = b.add(Binary(BinaryKind.SUB), b.add(Cast(DType.FLOAT32), x), scalar(b, zero))
    return b.add(Binary(BinaryKind.MUL), centred, scalar(b, scale))


def _stored_in_between(b: Builder, dtype: DType) -> int:
    """Floats that were stored as bytes in between."""
    return _dequantized(b, quantized(b, b.input(TensorType(DType.FLOAT32, SHAPE)), 0.03, 5, dtype), 0.03, 5)


def _swish(b: Builder, y: int, dtype: DType) -> int:
    """`y * sigmoid(y)`, with the sigmoid stored as bytes too."""
    sigmoid = quantized(b, b.add(Unary(UnaryKind.LOGISTIC), y), 0.004, 0, dtype)
    return b.add(Binary(BinaryKind.MUL), y, _dequantized(b, sigmoid, 0.004, 0))


def _made(graph: Subgraph) -> int:
    """The number of byte tensors that are computed and used."""
    return sum(isinstance(o.op, Cast) and o.op.to in BYTES for o in remove_dead(graph).operations)


@pytest.mark.parametrize("dtype", BYTES)
def test_bytes_stay_if_each_is_mapped_to_another_byte(dtype: DType) -> None:
    b = Builder()
    graph = b.subgraph([quantized(b, _swish(b, _stored_in_between(b, dtype), dtype), 0.02, -3, dtype)])
    assert _made(skip_bytes(graph)) == _made(graph) == 3
    x = np.random.default_rng(0).uniform(-5, 5, SHAPE).astype(np.float32)
    for isa in runnable():
        (found,) = natively(simplify(graph, Options()), [x], isa)
        assert np.array_equal(found, evaluated(graph, [x])[0]), isa.name


def test_bytes_computed_by_a_table_stay_whatever_reads_them() -> None:
    b = Builder()
    stored = quantized(b, _swish(b, _stored_in_between(b, DType.UINT8), DType.UINT8), 0.02, 3, DType.UINT8)
    graph = b.subgraph([_dequantized(b, stored, 0.02, 3)])
    assert _made(skip_bytes(graph)) == _made(graph) == 3


@pytest.mark.parametrize("dtype", BYTES)
def test_bytes_are_skipped_if_floats_are_also_computed_from_them(dtype: DType) -> None:
    b = Builder()
    y = _stored_in_between(b, dtype)
    other = b.input(TensorType(DType.FLOAT32, SHAPE))
    graph = b.subgraph([quantized(b, _swish(b, y, dtype), 0.02, -3, dtype), b.add(Binary(BinaryKind.ADD), y, other)])
    found = skip_bytes(graph)
    assert _made(graph) == 3
    assert _made(found) == 1, "the result"
    given = [np.random.default_rng(seed).uniform(-5, 5, SHAPE).astype(np.float32) for seed in range(2)]
    for mine, expected in zip(evaluated(found, given), evaluated(graph, given), strict=True):
        assert np.array_equal(mine, expected)


def test_bytes_are_skipped_if_they_are_also_dequantised_for_an_output() -> None:
    b = Builder()
    y = _stored_in_between(b, DType.INT8)
    graph = b.subgraph([quantized(b, _swish(b, y, DType.INT8), 0.02, -3, DType.INT8), y])
    assert _made(graph) == 3
    assert _made(skip_bytes(graph)) == 1, "the result"


def test_bytes_are_skipped_if_two_tensors_are_combined() -> None:
    b = Builder()
    x, y = _stored_in_between(b, DType.UINT8), _stored_in_between(b, DType.INT8)
    graph = b.subgraph([quantized(b, b.add(Binary(BinaryKind.MUL), x, y), 0.02, -3, DType.INT8)])
    assert _made(graph) == 3
    assert _made(skip_bytes(graph)) == 1
