"""Resource variables that branches and loops use become operands and results of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import onert
from onert.compiler.state import called_variables
from onert.ir import DType, ExecutionError, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call, CallOnce, If, While
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind

ROW, COUNT, FLAG = TensorType(DType.FLOAT32, (3,)), TensorType(DType.INT32, ()), TensorType(DType.BOOL, ())
HANDLE = TensorType(DType.RESOURCE, ())
ADD, MUL, LESS = Binary(BinaryKind.ADD), Binary(BinaryKind.MUL), Comparison(ComparisonKind.LESS)
BACKENDS = pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])


def _execution(graphs: Sequence[Subgraph], **options: Any) -> onert.Execution:
    return onert.Execution(onert.compile(Package((Subgraphs(tuple(graphs)),), "made"), **options))


def _operations(execution: onert.Execution) -> list[str]:
    return [type(o.op).__name__ for o in execution.program.main.subgraph.operations]


def _run(execution: onert.Execution, *inputs: object) -> list[Any]:
    return [array.tolist() for array in execution.run([np.asarray(x) for x in inputs]).values()]


def _first_values() -> Subgraph:
    once = Builder("once")
    once.add_many(AssignVariable(), once.add(VarHandle("", "v")), once.constant(np.float32([1, 2, 3])))
    return once.subgraph([])


def _update(b: Builder, handle: int, op: Binary, x: int) -> int:
    value = b.add(op, b.add(ReadVariable((ROW,)), handle), x)
    b.add_many(AssignVariable(), handle, value)
    return value


def _branching(initialized: bool = True) -> list[Subgraph]:
    """v += x if c, otherwise v is unchanged; the results are what the branch returns, and v. One branch is given the
    handle that the other finds by name."""
    top, then, otherwise = Builder(), Builder("then"), Builder("otherwise")
    c, x = top.input(FLAG, "c"), top.input(ROW, "x")
    if initialized:
        top.add_many(CallOnce(3))
    handle = top.add(VarHandle("", "v"))
    result = top.add(If(1, 2, (ROW,)), c, handle, x)
    given, step = then.input(HANDLE), then.input(ROW)
    changed = then.subgraph([_update(then, given, ADD, step)])
    otherwise.input(HANDLE)
    step = otherwise.input(ROW)
    read = otherwise.add(ReadVariable((ROW,)), otherwise.add(VarHandle("", "v")))
    same = otherwise.subgraph([otherwise.add(MUL, read, step)])
    return [top.subgraph([result, top.add(ReadVariable((ROW,)), handle)]), changed, same, _first_values()]


def _looping() -> list[Subgraph]:
    """for i < 3: v = v * x if v < 100 in the called branch; the loop carries the handle."""
    top, condition, body, called = Builder(), Builder("condition"), Builder("body"), Builder("called")
    x = top.input(ROW, "x")
    top.add_many(CallOnce(4))
    start, handle = top.constant(np.int32(0)), top.add(VarHandle("", "v"))
    count, passed, _ = top.add_many(While(1, 2, (COUNT, HANDLE, ROW)), start, handle, x)
    given = [condition.input(t) for t in (COUNT, HANDLE, ROW)]
    condition_graph = condition.subgraph([condition.add(LESS, given[0], condition.constant(np.int32(3)))])
    i, own, factor = (body.input(t) for t in (COUNT, HANDLE, ROW))
    body.add_many(Call(3, (ROW,)), own, factor)
    body_graph = body.subgraph([body.add(ADD, i, body.constant(np.int32(1))), own, factor])
    given = [called.input(t) for t in (HANDLE, ROW)]
    called_graph = called.subgraph([_update(called, given[0], MUL, given[1])])
    results = [count, top.add(ReadVariable((ROW,)), passed)]
    return [top.subgraph(results), condition_graph, body_graph, called_graph, _first_values()]


@BACKENDS
def test_a_branch_reads_and_assigns_variables(backends: tuple[str, ...]) -> None:
    execution = _execution(_branching(), backends=backends)
    assert "ReadVariable" not in _operations(execution)
    x = np.float32([1, 10, 100])
    assert _run(execution, np.bool_(True), x) == [[2, 12, 103], [2, 12, 103]]
    assert _run(execution, np.bool_(False), x) == [[2, 120, 10300], [2, 12, 103]]
    assert _run(execution, np.bool_(True), x) == [[3, 22, 203], [3, 22, 203]]


@BACKENDS
def test_a_loop_reads_and_assigns_variables_in_what_it_calls(backends: tuple[str, ...]) -> None:
    execution = _execution(_looping(), backends=backends)
    assert not {"ReadVariable", "While"} & set(_operations(execution))
    assert _run(execution, np.float32([1, 2, 3])) == [3, [1, 16, 81]]
    assert _run(execution, np.float32([1, 2, 3])) == [3, [1, 128, 2187]]


def test_a_variable_that_may_have_no_value_is_looked_up_at_run_time() -> None:
    execution = _execution(_branching(initialized=False))
    assert "ReadVariable" in _operations(execution)
    with pytest.raises(ExecutionError, match="variable 'v' is read before anything was assigned to it"):
        _run(execution, np.bool_(True), np.float32([1, 10, 100]))


def test_graphs_that_are_called_too_often_keep_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(called_variables, "MOST_OPERATIONS", 3)
    execution = _execution(_looping(), max_iterations=99)  # options of its own: no cached program is found
    assert "While" in _operations(execution)
    assert _run(execution, np.float32([1, 2, 3])) == [3, [1, 16, 81]]
