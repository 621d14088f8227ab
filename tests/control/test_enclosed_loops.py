"""Loops of limited rounds that keep their shapes become operations that contain their graphs, with equal results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import onert
from onert.compiler.passes.inline_control_flow import MOST_REPEATED
from onert.compiler.rewrite.called_graphs import size
from onert.ir import CompileError, DType, ExecutionError, Operation, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call as CallOp
from onert.ir.ops.control_flow.control import If
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.gather import Gather, PutRow
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.text import parse_subgraph, text

from .loops import (
    MUL,
    ONE,
    by_constant,
    collatz,
    doublings,
    fibonacci,
    floats,
    loop,
    one_more,
    running_sums,
    search,
    triangle,
)

BACKENDS = pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])


def _program(graphs: Sequence[Subgraph], **options: Any) -> Any:
    return onert.compile(Package((Subgraphs(tuple(graphs)),), "made"), **options)


def _operations(program: Any) -> list[Operation]:
    return list(program.main.subgraph.operations)


def _kinds(graphs: Sequence[Subgraph], **options: Any) -> list[str]:
    return [type(o.op).__name__ for o in _operations(_program(graphs, **options))]


def _results(graphs: Sequence[Subgraph], *inputs: object, **options: Any) -> list[Any]:
    execution = onert.Execution(_program(graphs, **options))
    return list(execution.run([np.asarray(x) for x in inputs]).values())


@BACKENDS
@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_a_result_may_become_a_different_operand_of_the_next_round(rounds: int, backends: tuple[str, ...]) -> None:
    assert "Loop" in _kinds(fibonacci(), backends=backends)
    a, b = np.zeros(3, np.float32), np.ones(3, np.float32)
    found = _results(fibonacci(), np.int32(0), np.int32(rounds), a, b, backends=backends)
    for _ in range(rounds):
        a, b = b, a + b
    assert [int(found[0]), int(found[1])] == [rounds, rounds]
    np.testing.assert_array_equal(found[2], a)
    np.testing.assert_array_equal(found[3], b)


@BACKENDS
def test_setting_a_list_item_becomes_a_row_update(backends: tuple[str, ...]) -> None:
    (loop_op,) = [o.op for o in _operations(_program(running_sums(6), backends=backends)) if isinstance(o.op, Loop)]
    assert any(isinstance(o.op, PutRow) for o in loop_op.body.operations)
    x = np.random.default_rng(0).uniform(-1, 1, (6, 5)).astype(np.float32)
    old = np.full((6, 5), 9, np.float32)
    found = _results(running_sums(6), np.int32(0), np.int32(4), x, np.zeros(5, np.float32), old, backends=backends)
    np.testing.assert_allclose(found[4][:4], np.cumsum(x, 0)[:4], rtol=1e-6)
    np.testing.assert_array_equal(found[4][4:], old[4:])


@BACKENDS
def test_a_list_index_out_of_range_is_an_error_with_its_location(backends: tuple[str, ...]) -> None:
    x = np.zeros((6, 5), np.float32)
    with pytest.raises(ExecutionError, match=r"While.*index 6 is outside of"):
        _results(running_sums(6), np.int32(4), np.int32(8), x, x[0], x, backends=backends)


@BACKENDS
def test_a_loop_stops_in_the_first_round_in_which_any_operation_fails(backends: tuple[str, ...]) -> None:
    """Of two lookups in each round, the second is out of range in the round after the last row."""

    def body(b: Builder, given: list[int]) -> list[int]:
        i, x, total = given[0], given[2], given[3]
        first = b.add(Gather(axis=0), x, b.add(Binary(BinaryKind.MINIMUM), i, b.constant(np.int32(2))))
        both = b.add(Binary(BinaryKind.ADD), first, b.add(Gather(axis=0), x, i))
        return [one_more(b, i), given[1], x, b.add(Binary(BinaryKind.ADD), total, both)]

    graphs = loop([ONE, ONE, floats(6, 5), floats(5)], body)
    x = np.zeros((6, 5), np.float32)
    for more in (1, 1000):
        with pytest.raises(ExecutionError, match=r"While.*index 6 is outside of"):
            _results(graphs, np.int32(4), np.int32(6 + more), x, x[0], backends=backends, max_iterations=500)


@BACKENDS
def test_enclosed_loops_may_contain_branches_and_loops(backends: tuple[str, ...]) -> None:
    (outer,) = [o.op for o in _operations(_program(collatz(), backends=backends)) if isinstance(o.op, Loop)]
    assert any(isinstance(o.op, Branch) for o in outer.body.operations)
    assert [int(r) for r in _results(collatz(), np.int32(0), np.int32(9), np.int32(3), backends=backends)] == [9, 9, 24]
    (outer,) = [o.op for o in _operations(_program(triangle(), backends=backends)) if isinstance(o.op, Loop)]
    assert any(isinstance(o.op, Loop) for o in outer.body.operations)
    assert int(_results(triangle(), np.int32(0), np.int32(9), np.int32(3), backends=backends)[2]) == 39


@BACKENDS
def test_max_iterations_bounds_an_enclosed_loop(backends: tuple[str, ...]) -> None:
    inputs = [np.int32(0), np.int32(5), np.int32(7)]
    assert int(_results(triangle(), *inputs, backends=backends, max_iterations=5)[2]) == 17
    with pytest.raises(ExecutionError, match=r"While.*the loop runs more than 3 times"):
        _results(triangle(), *inputs, backends=backends, max_iterations=3)


def test_nested_loops_stay_when_the_work_limit_is_low() -> None:
    assert "While" in _kinds(triangle(), max_work=10_000)
    with pytest.raises(CompileError, match=r"a run takes as long as \d+ additions, more than the 2000"):
        _program(triangle(), max_work=2_000)


@pytest.mark.parametrize("options", [{}, {"max_iterations": None}], ids=["limited", "unlimited"])
def test_a_loop_that_may_not_end_is_enclosed_if_its_rounds_are_limited(options: dict[str, Any]) -> None:
    def stays(*types: TensorType, body: Any, limit: int | None = None) -> bool:
        return "While" in _kinds(loop(list(types), body, limit), **options)

    unlimited = bool(options)
    assert not stays(ONE, body=lambda b, g: [one_more(b, g[0], 7)], limit=100)
    assert stays(ONE, body=lambda b, g: [one_more(b, g[0], 0)], limit=100)  # the executor reports that nothing changes
    assert stays(ONE, body=lambda b, g: [one_more(b, g[0], -1)], limit=100) is unlimited
    assert stays(ONE, body=lambda b, g: [one_more(b, g[0], 7)], limit=2**31 - 3) is unlimited
    assert stays(ONE, ONE, body=lambda b, g: [one_more(b, g[0]), one_more(b, g[1])]) is unlimited


def test_a_loop_that_changes_its_shape_runs_step_by_step() -> None:
    changing = loop([ONE, ONE, floats(None)], lambda b, g: [one_more(b, g[0]), g[1], g[2]])
    assert "While" in _kinds(changing)


@BACKENDS
def test_a_loop_without_a_counter_ends_by_its_condition_or_its_limit(backends: tuple[str, ...]) -> None:
    """while x < 100: x = x * 3, which never ends from 0."""
    graphs = loop([ONE], lambda b, g: [b.add(MUL, g[0], b.constant(np.int32(3)))], 100)
    assert "Loop" in _kinds(graphs, backends=backends)
    assert [int(_results(graphs, np.int32(x), backends=backends)[0]) for x in (1, 40, 200)] == [243, 120, 200]
    with pytest.raises(ExecutionError, match=r"While.*the loop runs more than 50 times"):
        _results(graphs, np.int32(0), backends=backends, max_iterations=50)


@BACKENDS
def test_a_loop_with_a_break_has_the_bound_of_its_counter(backends: tuple[str, ...]) -> None:
    """for i < 9: if found: break. TensorFlow writes the condition as `not found if i < 9 else False`."""
    (loop_op,) = [o.op for o in _operations(_program(search(9), backends=backends)) if isinstance(o.op, Loop)]
    assert loop_op.most == 9
    for wanted, rounds in ((4, 5), (0, 1), (70, 9)):
        found = _results(search(9), np.int32(wanted), backends=backends)
        assert [int(found[0]), bool(found[1])] == [rounds, wanted < 9]


@BACKENDS
def test_a_loop_without_a_counter_in_a_counted_loop_leaves_the_count_intact(backends: tuple[str, ...]) -> None:
    """The inner loops' limits are large, the outer loop still makes all its rounds."""
    (outer,) = [o.op for o in _operations(_program(doublings(50), backends=backends)) if isinstance(o.op, Loop)]
    (inner,) = [o.op for o in outer.body.operations if isinstance(o.op, Loop)]
    assert outer.most == 50
    assert (inner.most or 0) > 10_000
    assert int(_results(doublings(50), np.int32(0), backends=backends)[0]) == 50 * 8


@BACKENDS
def test_a_call_is_replaced_by_the_graph_it_calls(backends: tuple[str, ...]) -> None:
    top = Builder()
    x = top.input(ONE, "x")
    first, second = (top.add(CallOp(1, (ONE,)), operand) for operand in (x, x))
    graphs = (top.subgraph([second, first, top.add(CallOp(2, (ONE,)), first)]), by_constant(MUL, 3), _same())
    assert "Call" not in _kinds(graphs, backends=backends)
    assert [int(r) for r in _results(graphs, np.int32(5), backends=backends)] == [15, 15, 15]


@BACKENDS
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_branch_may_take_its_sizes_from_constants_of_the_caller(known: bool, backends: tuple[str, ...]) -> None:
    """ones(n) if c else x, where n is the constant 3, as TensorFlow writes its window functions."""
    flag, sizes = TensorType(DType.BOOL, ()), TensorType(DType.INT32, (1,))
    top, then, otherwise = Builder(), Builder("then"), Builder("otherwise")
    condition = top.constant(np.bool_(True)) if known else top.input(flag)
    operands = top.constant(np.int32([3])), top.input(floats(3))
    result = top.add(If(1, 2, (floats(None),)), condition, *operands)
    size, _ = then.input(sizes), then.input(floats(3))
    otherwise.input(sizes)
    same = otherwise.subgraph([otherwise.input(floats(3))])
    graphs = top.subgraph([result]), then.subgraph([then.add(Fill(), size, then.constant(np.float32(1)))]), same
    program = _program(graphs, backends=backends)
    assert not any(isinstance(o.op, If) for o in _operations(program))
    x = np.float32([4, 5, 6])
    for chosen in [True] if known else [True, False]:
        found = list(onert.Execution(program).run([x] if known else [np.bool_(chosen), x]).values())
        assert found[0].tolist() == ([1, 1, 1] if chosen else x.tolist())


def _same() -> Subgraph:
    b = Builder()
    return b.subgraph([b.input(ONE)])


@pytest.mark.parametrize(("calls", "depth"), [(1, 30), (2, 6)])
def test_nested_calls_are_inlined_only_up_to_a_limit(calls: int, depth: int) -> None:
    graphs = []
    for at in range(depth):
        b = Builder()
        condition, x = b.input(TensorType(DType.BOOL, ())), b.input(ONE)
        for _ in range(calls if at < depth - 1 else 0):
            x = b.add(If(at + 1, at + 1, (ONE,)), condition, condition, x)
        graphs.append(b.subgraph([x]))
    program = _program(graphs)
    execution = onert.Execution(program)
    # Inlined, each graph would occur twice as often as its caller, once per call.
    assert sum(size(graph) for graph in (r.subgraph for r in program.routines)) <= calls * depth + 2 * MOST_REPEATED
    assert [int(r) for r in execution.run([np.bool_(True), np.int32(7)]).values()] == [7]


def test_loops_stay_when_the_pass_is_disabled() -> None:
    assert "While" in _kinds(fibonacci(), disabled_passes=frozenset({"enclose"}))
    assert "While" in _kinds(fibonacci(), optimize=False)


def test_operations_that_contain_graphs_survive_a_round_trip_through_text() -> None:
    for graphs in (fibonacci(), collatz(), running_sums(3)):
        graph = _program(graphs).main.subgraph
        assert parse_subgraph(text(graph)) == graph


def test_a_loop_gives_equal_results_for_any_number_of_threads_and_64_bit_values() -> None:
    wide = TensorType(DType.INT64, ())
    graphs = loop([ONE, ONE, wide], lambda b, g: [one_more(b, g[0]), g[1], g[2]])
    for threads in (1, 3):
        found = _results(graphs, np.int32(0), np.int32(3), np.int64(1 << 40), num_threads=threads)
        assert [int(r) for r in found] == [3, 3, 1 << 40]
