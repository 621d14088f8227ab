"""Attention (softmax between two products) runs as one kernel and matches its definition."""

from __future__ import annotations

import numpy as np
import pytest

from onert.backend import Sequence, Settings
from onert.ir import Array, DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.softmax import Softmax
from onert_llvm.lower.contraction.attention import softmax_of_products
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
    kind: BinaryKind = BinaryKind.MUL,
) -> Subgraph:
    """Attention as separate operations; the mask is an input."""
    b = Builder()
    q, k, v = (b.input(TensorType(F32, shape)) for shape in (query, keys, values))
    scores = b.add(BatchMatMul(adjoint_y=True), q, k)
    if scale is not None:
        scores = b.add(Binary(kind), scores, b.constant(np.float32(scale)))
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
    "rows of no whole registers": ((1, 2, 9, 36), (1, 2, 100, 36), (1, 2, 100, 88), (9, 100), 0.3),
    "rows of less than a register": ((2, 7, 3), (2, 300, 3), (2, 300, 5), None, 0.3),
    "groups of registers": ((3, 72), (49, 72), (49, 144), None, None),
    "as many tiles": ((2, 200, 16), (2, 400, 16), (2, 400, 16), None, None),
    "a key behind a block": ((1, 30, 24), (1, 65, 24), (1, 65, 20), None, 0.5),
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


@pytest.mark.parametrize(("divisor", "expected"), [(4.0, 1), (-0.3, 1), (0.0, 4), (1e-38, 4)])
def test_scores_may_be_divided_by_a_number_with_a_reciprocal(divisor: float, expected: int) -> None:
    graph = attention((1, 6, 16), (1, 40, 16), (1, 40, 16), (1, 40), divisor, BinaryKind.DIV)
    assert groups(graph) <= expected
    assert (groups(graph) == 1) == (expected == 1)
    if expected == 1:
        check(graph, inputs(graph), runnable()[-1], 3e-6)


def chosen(mask: Array | tuple[int, ...], hidden: float, *, shows: bool) -> Subgraph:
    """Attention of 2 heads of 150 queries to 200 keys, of which booleans show or hide some."""
    b = Builder()
    q, k, v = (b.input(TensorType(F32, (2, count, 20))) for count in (150, 200, 200))
    seen = b.input(TensorType(DType.BOOL, mask)) if isinstance(mask, tuple) else b.constant(mask)
    scores = b.add(Binary(BinaryKind.MUL), b.add(BatchMatMul(adjoint_y=True), q, k), b.constant(np.float32(0.3)))
    other = b.constant(np.float32(hidden))
    scores = b.add(Select(), seen, *((scores, other) if shows else (other, scores)))
    return b.subgraph([b.add(BatchMatMul(), b.add(Softmax(), scores), v)])


@ISAS
@pytest.mark.parametrize("hidden", [INFINITE, LOWEST, NEAR, 0.0])
@pytest.mark.parametrize("shape", [(150, 200), (2, 150, 200), (2, 1, 200), (1, 200)])
@pytest.mark.parametrize("shows", [True, False])
def test_booleans_choose_between_scores_and_a_number(
    isa: Isa, hidden: float, shape: tuple[int, ...], shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(softmax_of_products, "_MANY_BYTES", 1)
    graph = chosen(shape, hidden, shows=shows)
    assert groups(graph) == 1
    given = [*inputs(graph)[:3], np.random.default_rng(1).random(shape) < 0.5]
    given[3][..., 64:128] = not shows  # a block of keys that no row sees
    if shape[-2] > 1:
        given[3][..., 7, :] = not shows  # a row that sees no key
    if hidden == INFINITE:
        with np.errstate(invalid="ignore"):
            assert_close(natively(graph, given, isa), evaluated(graph, given), 3e-6)
        return
    check(graph, given, isa, 3e-6, threads=2)


def test_a_causal_choice_is_one_kernel_and_others_of_few_scores_are_not() -> None:
    causal = np.tril(np.ones((150, 200), np.bool_))
    for mask, shows in ((causal, True), (~causal, False)):
        assert groups(chosen(mask, LOWEST, shows=shows)) == 1
        assert groups(chosen(mask, NEAR, shows=shows)) > 1
    assert groups(chosen(np.ones((150, 200), np.bool_), LOWEST, shows=True)) > 1


@ISAS
@pytest.mark.parametrize("several", [(1, 2), (2, 1), (1, 2, 3), (3, 1)])
def test_several_masks_apply_in_turn(isa: Isa, several: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax_of_products, "_MANY_BYTES", 1)
    b = Builder()
    q, k, v = (b.input(TensorType(F32, (2, 3, count, 20))) for count in (50, 90, 90))
    scores, low = b.add(BatchMatMul(adjoint_y=True), q, k), b.constant(np.float32(LOWEST))
    for mask in several:
        if mask == 1:
            scores = b.add(Binary(BinaryKind.ADD), scores, b.input(TensorType(F32, (3, 50, 90))))
        elif mask == 2:
            scores = b.add(Select(), b.input(TensorType(DType.BOOL, (2, 1, 1, 90))), scores, low)
        else:
            scores = b.add(Binary(BinaryKind.ADD), b.input(TensorType(F32, (2, 1, 50, 90))), scores)
    graph = b.subgraph([b.add(BatchMatMul(), b.add(Softmax(), scores), v)])
    assert groups(graph) == 1
    given = [x if graph.type(i).dtype is F32 else x > 0 for x, i in zip(inputs(graph), graph.inputs, strict=True)]
    check(graph, given, isa, 3e-6, threads=2)


@ISAS
def test_a_constant_bias_that_hides_nothing_is_added(isa: Isa) -> None:
    b = Builder()
    q, k, v = (b.input(TensorType(F32, (2, count, 16))) for count in (6, 90, 90))
    bias = b.constant(np.random.default_rng(2).standard_normal((2, 6, 90)).astype(np.float32))
    scores = b.add(Binary(BinaryKind.ADD), b.add(BatchMatMul(adjoint_y=True), q, k), bias)
    graph = b.subgraph([b.add(BatchMatMul(), b.add(Softmax(), scores), v)])
    assert groups(graph) == 1
    check(graph, inputs(graph), isa, 3e-6, threads=2)


def test_a_fourth_mask_stays_apart() -> None:
    b = Builder()
    q, k, v = (b.input(TensorType(F32, (1, 4, 16))) for _ in range(3))
    scores = b.add(BatchMatMul(adjoint_y=True), q, k)
    for _ in range(4):
        scores = b.add(Binary(BinaryKind.ADD), scores, b.input(TensorType(F32, (4, 4))))
    assert groups(b.subgraph([b.add(BatchMatMul(), b.add(Softmax(), scores), v)])) > 1


def test_attention_weights_with_other_readers_are_not_fused() -> None:
    b = Builder()
    q, k, v = (b.input(TensorType(F32, (1, 8, 16))) for _ in range(3))
    parts = b.add(Softmax(), b.add(BatchMatMul(adjoint_y=True), q, k))
    assert groups(b.subgraph([b.add(BatchMatMul(), parts, v), parts])) == 3


def test_heads_too_wide_for_the_stack_are_not_fused() -> None:
    assert groups(attention((1, 8, 16), (1, 30, 16), (1, 30, 16), None)) == 1
    assert groups(attention((1, 8, 257), (1, 30, 257), (1, 30, 16), None)) == 3


# ---- transposes


def heads(
    shape: tuple[int, int, int, int], keys: tuple[int, ...], adjoint: bool, *, read_twice: bool = False
) -> Subgraph:
    """Attention of heads whose queries, keys, values and results are in the order of tokens; keys in this order."""
    b = Builder()
    size = shape[-1]
    q, k, v = (b.input(TensorType(F32, shape)) for _ in range(3))
    order = b.constant(np.array([0, 2, 1, 3], np.int32))
    turned_keys = b.add(Transpose(), k, b.constant(np.array(keys, np.int32)))
    scores = b.add(BatchMatMul(adjoint_y=adjoint), b.add(Transpose(), q, order), turned_keys)
    scores = b.add(Binary(BinaryKind.MUL), scores, b.constant(np.float32(size**-0.5)))
    made = b.add(BatchMatMul(), b.add(Softmax(), scores), b.add(Transpose(), v, order))
    return b.subgraph([b.add(Transpose(), made, order), *([turned_keys] if read_twice else [])])


@ISAS
@pytest.mark.parametrize("shape", [(1, 300, 3, 16), (2, 70, 4, 20)])
@pytest.mark.parametrize(("keys", "adjoint"), [((0, 2, 1, 3), True), ((0, 2, 3, 1), False)])
def test_heads_are_read_through_transposes(
    isa: Isa, shape: tuple[int, int, int, int], keys: tuple[int, ...], adjoint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(softmax_of_products, "_MANY_BYTES", 1)
    graph = heads(shape, keys, adjoint)
    assert groups(graph) == 1
    check(graph, inputs(graph), isa, 3e-6, threads=2)


def test_transposes_that_others_read_or_that_split_rows_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax_of_products, "_MANY_BYTES", 1)
    shape = (1, 64, 2, 64)
    assert groups(heads(shape, (0, 2, 1, 3), True, read_twice=True)) == 2
    assert groups(heads(shape, (0, 2, 3, 1), True)) == 2
    assert groups(heads(shape, (0, 2, 1, 3), False)) > 2
