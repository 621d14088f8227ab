"""Attention (softmax between two products) runs as one kernel and matches its definition."""

from __future__ import annotations

import numpy as np
import pytest

from onert.backend import Sequence, Settings
from onert.ir import Array, DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.reduction.softmax import Softmax
from onert_llvm.target.isa import Isa, runnable

from .natively import BACKEND, assert_close, check, evaluated, natively

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
F32 = DType.FLOAT32
INFINITE, LOWEST, NEAR = float("-inf"), float(np.finfo(np.float32).min), -1e4


def attention(
    query: tuple[int, ...],
    keys: tuple[int, ...],
    values: tuple[int, ...],
    mask: tuple[int, ...] | None,
    scale: float | None = None,
) -> Subgraph:
    """Attention as separate operations; the mask is an input."""
    b = Builder()
    q, k, v = (b.input(TensorType(F32, shape)) for shape in (query, keys, values))
    scores = b.add(BatchMatMul(adjoint_y=True), q, k)
    if scale is not None:
        scores = b.add(Binary(BinaryKind.MUL), scores, b.constant(np.float32(scale)))
    if mask is not None:
        scores = b.add(Binary(BinaryKind.ADD), b.input(TensorType(F32, mask)), scores)
    return b.subgraph([b.add(BatchMatMul(), b.add(Softmax(), scores), v)])


def inputs(graph: Subgraph) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(graph.type(i).shape).astype(np.float32) for i in graph.inputs]


def groups(graph: Subgraph) -> int:
    ends = (graph.inputs, graph.outputs)
    return len(BACKEND.fuse(Sequence(graph, tuple(range(len(graph.operations))), *ends), Settings()))


SHAPES = {
    "one row": ((1, 2, 1, 32), (1, 2, 70, 32), (1, 2, 70, 32), (1, 1, 1, 70), 0.5),
    "three rows of a head": ((1, 2, 3, 64), (1, 2, 129, 64), (1, 2, 129, 64), (1, 1, 3, 129), None),
    "many rows": ((2, 50, 16), (2, 101, 16), (2, 101, 48), (50, 101), 0.25),
    "no mask": ((3, 7, 32), (3, 5, 32), (3, 5, 16), None, 0.2),
    "one matrix of keys for all": ((2, 3, 11, 16), (1, 1, 64, 16), (64, 32), (2, 1, 11, 64), None),
    "a mask for each": ((2, 2, 8, 16), (2, 2, 20, 16), (2, 2, 20, 16), (2, 2, 1, 20), None),
}


@ISAS
@pytest.mark.parametrize("name", SHAPES)
def test_attention_is_one_kernel_and_matches_its_definition(isa: Isa, name: str) -> None:
    graph = attention(*SHAPES[name])
    assert groups(graph) == 1
    check(graph, inputs(graph), isa, 3e-6, threads=2)


@ISAS
@pytest.mark.parametrize("hidden", [INFINITE, LOWEST, NEAR])
def test_masked_keys_do_not_contribute(isa: Isa, hidden: float) -> None:
    m, count = 60, 300
    graph = attention((1, m, 16), (1, count, 16), (1, count, 16), (m, count))
    given = inputs(graph)
    rows, keys = np.arange(m)[:, None], np.arange(count)
    given[3] = np.where((keys <= rows + 100) & (keys >= rows + 70), np.float32(0), np.float32(hidden))
    assert_close(natively(graph, given, isa), evaluated(graph, given), 3e-6)
    given[1][:, 161:], given[2][:, 161:] = 1e30, 1e30  # the last key visible to any row is 159
    if hidden == INFINITE:
        assert np.isfinite(natively(graph, given, isa)[0]).all()


@ISAS
def test_a_fully_masked_row_behaves_as_in_softmax(isa: Isa) -> None:
    graph = attention((1, 9, 16), (1, 100, 16), (1, 100, 16), (9, 100))
    given = inputs(graph)
    given[3][:] = 0
    given[3][:, 20:] = INFINITE
    given[3][4] = LOWEST
    assert_close(natively(graph, given, isa), evaluated(graph, given), 3e-6)
    given[3][4] = INFINITE
    with np.errstate(invalid="ignore"):
        expected = evaluated(graph, given)
    assert np.isnan(expected[0][0, 4]).all()
    assert_close(natively(graph, given, isa), expected, 3e-6)


@ISAS
def test_nan_stays_in_its_row(isa: Isa) -> None:
    graph = attention((1, 5, 16), (1, 40, 16), (1, 40, 16), (5, 40))
    given = inputs(graph)
    given[0][0, 2, 3] = np.nan
    assert_close(natively(graph, given, isa), evaluated(graph, given), 3e-6)


def test_attention_weights_with_other_readers_are_not_fused() -> None:
    b = Builder()
    q, k, v = (b.input(TensorType(F32, (1, 8, 16))) for _ in range(3))
    parts = b.add(Softmax(), b.add(BatchMatMul(adjoint_y=True), q, k))
    assert groups(b.subgraph([b.add(BatchMatMul(), parts, v), parts])) == 3


def test_unaligned_head_sizes_are_not_fused() -> None:
    assert groups(attention((1, 8, 20), (1, 8, 20), (1, 8, 20), None)) == 3
