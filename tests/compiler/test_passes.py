"""Passes that apply to operations of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from onert.compiler.passes.copy_outputs import copy_outputs
from onert.compiler.passes.fold_constants import fold_constants
from onert.compiler.passes.merge_duplicates import merge_duplicates
from onert.compiler.passes.remove_dead import remove_dead
from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.custom import Python
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

from .toy import Draft, ToyAdd, ToyFlat, ToyHalves, ToyRead, ToyScale, ToyWrite, interpret


def kinds(graph: Subgraph) -> list[str]:
    return [operation.op.label for operation in graph.operations]


def test_a_pass_with_nothing_to_do_returns_the_same_object() -> None:
    d = Draft()
    graph = d.graph(d.op(ToyScale(), d.op(ToyWrite(), d.input(4))))
    for each in (copy_outputs, fold_constants, merge_duplicates, remove_dead):
        assert each(graph) is graph


def test_operations_on_constants_are_folded() -> None:
    d = Draft()
    x, c = d.input(4), d.constant(np.arange(8, dtype=np.float32))
    a, _ = d.op(ToyHalves(), d.op(ToyScale(), c), results=2)
    folded = fold_constants(d.graph(d.op(ToyAdd(), x, a)))
    assert kinds(folded) == ["ToyAdd"]
    (constant,) = (o.data.array for o in folded.operands if o.data is not None)
    np.testing.assert_array_equal(constant, np.array([0, 2, 4, 6], np.float32))


def test_a_broadcast_to_a_large_constant_is_not_folded() -> None:
    d = Draft()
    row, column = (d.constant(np.ones(s, np.float32)) for s in ((1, 1000), (1000, 1)))
    graph = d.graph(d.op(ToyAdd(), row, column))
    assert fold_constants(graph) is graph


@pytest.mark.parametrize(("elements", "folds"), [(2048, True), (2049, False)])
def test_folding_may_enlarge_a_constant_while_it_is_small(elements: int, folds: bool) -> None:
    d = Draft()
    c = d.constant(np.ones((elements,), np.float32))
    graph = d.graph(d.op(Concat(0), c, c))
    assert (kinds(fold_constants(graph)) == []) is folds  # SMALL is 16 KiB


@pytest.mark.parametrize(("rows", "folds"), [(1024, True), (1025, False)])
def test_tables_computed_from_positions_are_folded_up_to_4_mib(rows: int, folds: bool) -> None:
    """The filters of a resampler are functions of the difference of two positions."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1,)), "x")
    positions = [np.arange(n, dtype=np.float32) for n in (rows, 1024)]
    differences = b.add(Binary(BinaryKind.SUB), b.constant(positions[0][:, None]), b.constant(positions[1]))
    graph = b.subgraph([b.add(Binary(BinaryKind.MUL), b.add(Unary(UnaryKind.COS), differences), x)])
    assert (len(kinds(fold_constants(graph))) == 1) is folds


def test_folding_stops_before_a_model_grows_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onert.compiler.passes.fold_constants.ROOM", 0)
    d = Draft()
    c = d.constant(np.ones(1000, np.float32))
    graph = d.graph(*(d.op(ToyScale(float(i)), c) for i in range(2, 9)))
    assert len(kinds(fold_constants(graph))) == 3  # at most four times the constants' bytes are added


@pytest.mark.parametrize("factors", [(0.0, -0.0), (1.0, 2.0)])
def test_operations_that_differ_in_a_number_or_its_sign_are_not_merged(factors: tuple[float, float]) -> None:
    d = Draft()
    x = d.input(1)
    graph = d.graph(*(d.op(ToyScale(f), x) for f in factors))
    assert merge_duplicates(graph) is graph


def test_operations_with_effects_are_neither_folded_merged_nor_removed() -> None:
    d = Draft()
    c = d.constant(np.ones(4, np.float32))
    d.op(ToyWrite(), c)
    graph = d.graph(d.op(ToyWrite(), c), d.op(ToyRead(), c), d.op(ToyRead(), c))
    for each in (fold_constants, merge_duplicates, remove_dead):
        assert kinds(each(graph)) == kinds(graph)


def test_a_custom_python_function_is_neither_folded_merged_nor_removed() -> None:
    d = Draft()
    c = d.constant(np.ones(4, np.float32))
    op = Python("Draw", np.negative, results=(TensorType(DType.FLOAT32, (4,)),))
    d.op(op, c)
    graph = d.graph(d.op(op, c), d.op(op, c))
    for each in (fold_constants, merge_duplicates, remove_dead):
        assert each(graph) is graph


def test_an_unused_read_is_removed() -> None:
    d = Draft()
    x = d.input(4)
    d.op(ToyRead(), x)
    assert kinds(remove_dead(d.graph(d.op(ToyScale(), x)))) == ["ToyScale"]


def test_removing_an_operation_removes_its_other_operands_and_renumbers() -> None:
    d = Draft()
    x = d.input(4)
    d.op(ToyAdd(), d.op(ToyScale(), x), d.constant(np.ones(4, np.float32)))
    graph = remove_dead(d.graph(d.op(ToyFlat(), x)))
    assert kinds(graph) == ["ToyFlat"]
    assert len(graph.operands) == 2


def test_equal_operations_and_equal_constants_are_merged() -> None:
    d = Draft()
    x = d.input(4)
    sums = [d.op(ToyAdd(), x, d.constant(np.ones(4, np.float32))) for _ in range(2)]
    graph = d.graph(d.op(ToyAdd(), *(d.op(ToyScale(), s) for s in sums)))
    merged = remove_dead(merge_duplicates(graph))
    assert kinds(merged) == ["ToyAdd", "ToyScale", "ToyAdd"]
    ones = [np.ones(4, np.float32)]
    np.testing.assert_array_equal(interpret(merged, ones)[0], interpret(graph, ones)[0])


def test_constants_that_differ_in_the_sign_of_a_zero_are_not_merged() -> None:
    d = Draft()
    x = d.input(1)
    zeros = [d.constant(np.array([z], np.float32)) for z in (0.0, -0.0)]
    graph = d.graph(*(d.op(ToyAdd(), x, z) for z in zeros))
    assert merge_duplicates(graph) is graph


def test_outputs_that_are_inputs_constants_or_repeated_are_copied() -> None:
    d = Draft()
    x, c = d.input(2, name="x"), d.constant(np.ones(2, np.float32))
    y = d.op(ToyScale(), x)
    graph = copy_outputs(d.graph(x, y, y, c, c))
    assert kinds(graph) == ["ToyScale", "Copy", "Copy", "Copy", "Copy"]
    assert len(set(graph.outputs)) == 5
    assert set(graph.outputs) <= set(graph.definitions)
    given = [np.array([1, 2], np.float32)]
    assert [o.tolist() for o in interpret(graph, given)] == [[1, 2], [2, 4], [2, 4], [1, 1], [1, 1]]
