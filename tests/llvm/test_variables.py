"""Resource variables: operands of the entry if known at compile time, otherwise looked up at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert
from onert.exec.observers.profile import Profile
from onert.ir import DType, ExecutionError, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

ROW, PAIR = TensorType(DType.FLOAT32, (3,)), TensorType(DType.FLOAT32, (2,))
HANDLE = TensorType(DType.RESOURCE, ())
ADD = Binary(BinaryKind.ADD)
State = dict[Any, Any]


def _execution(*graphs: Subgraph, state: State | None = None, threads: int = 1) -> onert.Execution:
    program = onert.compile(Package((Subgraphs(graphs),), "made"), backends=("llvm", "builtin"), num_threads=threads)
    return onert.Execution(program, state=state)


def _results(execution: onert.Execution, *inputs: object) -> list[list[float]]:
    return [array.tolist() for array in execution.run([np.asarray(x, np.float32) for x in inputs]).values()]


def _zeros(*names: str) -> State:
    return {("variable", "", name): np.zeros(3, np.float32) for name in names}


def _growing() -> Subgraph:
    """Reads v, assigns the sum of v and x to it, and reads it again through another handle."""
    b = Builder()
    x = b.input(ROW, "x")
    handle = b.add(VarHandle("", "v"))
    b.add_many(AssignVariable(), b.add(VarHandle("", "x")), x)
    before = b.add(ReadVariable((ROW,)), handle)
    b.add_many(AssignVariable(), handle, b.add(ADD, before, x))
    return b.subgraph([before, b.add(ReadVariable((ROW,)), b.add(VarHandle("", "v")))])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_variable_is_read_as_last_assigned(threads: int) -> None:
    state = _zeros("v")
    execution = _execution(_growing(), state=state, threads=threads)
    assert _results(execution, [1, 2, 3]) == [[0, 0, 0], [1, 2, 3]]
    assert _results(execution, [1, 1, 1]) == [[1, 2, 3], [2, 3, 4]]
    assert state["variable", "", "x"].tolist() == [1, 1, 1]
    assert state["variable", "", "v"].tolist() == [2, 3, 4]


def test_executions_with_shared_state_see_each_other_s_assignments() -> None:
    state = _zeros("v")
    first = _execution(_growing(), state=state)
    second = onert.Execution(first.program, state=state)
    assert _results(first, [1, 2, 3]) == [[0, 0, 0], [1, 2, 3]]
    assert _results(second, [1, 1, 1]) == [[1, 2, 3], [2, 3, 4]]
    assert _results(second, [1, 1, 1]) == [[2, 3, 4], [3, 4, 5]]
    assert _results(first, [0, 0, 1]) == [[3, 4, 5], [3, 4, 6]]
    first.reset_variables()
    with pytest.raises(ExecutionError, match="before anything"):
        second.run([np.zeros(3, np.float32)])


def test_an_initial_array_given_by_the_caller_is_not_modified() -> None:
    state = _zeros("v")
    given = state["variable", "", "v"]
    assert _results(_execution(_growing(), state=state), [1, 2, 3]) == [[0, 0, 0], [1, 2, 3]]
    assert given.tolist() == [0, 0, 0]


def test_two_handle_operands_may_refer_to_one_variable() -> None:
    """Assigned through one handle, read through the other before and after."""
    inner = Builder("inner")
    x, one, other = inner.input(ROW, "x"), inner.input(HANDLE, "one"), inner.input(HANDLE, "other")
    before = inner.add(ReadVariable((ROW,)), other)
    inner.add_many(AssignVariable(), one, inner.add(ADD, x, x))
    called = inner.subgraph([before, inner.add(ReadVariable((ROW,)), other)])
    for names, expected in ((("a", "a"), [2, 4, 6]), (("a", "b"), [0, 0, 0])):
        outer = Builder()
        value = outer.input(ROW, "x")
        handles = [outer.add(VarHandle("", name)) for name in names]
        found = outer.add_many(Call(1, (ROW, ROW)), value, *handles)
        execution = _execution(outer.subgraph(found), called, state=_zeros("a", "b"))
        assert _results(execution, [1, 2, 3]) == [[0, 0, 0], expected]


def test_a_variable_may_change_its_shape() -> None:
    b = Builder()
    long, short = b.input(ROW, "long"), b.input(PAIR, "short")
    handle = b.add(VarHandle("", "v"))
    found = []
    for value, type_ in ((long, ROW), (short, PAIR), (long, ROW)):
        b.add_many(AssignVariable(), handle, value)
        found.append(b.add(ReadVariable((type_,)), handle))
    assert _results(_execution(b.subgraph(found)), [1, 2, 3], [4, 5]) == [[1, 2, 3], [4, 5], [1, 2, 3]]


def test_reading_an_unassigned_or_wrongly_shaped_variable_raises() -> None:
    b = Builder()
    graph = b.subgraph([b.add(ReadVariable((ROW,)), b.add(VarHandle("", "v")))])
    state: State = {}
    execution = _execution(graph, state=state)
    with pytest.raises(ExecutionError, match=r"'v' is read before anything was assigned"):
        execution.run([])
    state["variable", "", "v"] = np.zeros(2, np.float32)
    with pytest.raises(ExecutionError, match=r"'v' has float32\[2\], expected float32\[3\]"):
        execution.run([])
    state["variable", "", "v"] = np.ones(3, np.float32)
    assert _results(execution) == [[1, 1, 1]]


def test_observed_runs_update_variables_too() -> None:
    state = _zeros("v")
    plain = _execution(_growing(), state=state)
    watched = onert.Execution(plain.program, state=state, observers=(Profile(),))
    assert _results(watched, [1, 2, 3]) == [[0, 0, 0], [1, 2, 3]]
    assert _results(watched, [1, 1, 1]) == [[1, 2, 3], [2, 3, 4]]


@pytest.mark.parametrize("threads", [1, 2])
def test_variables_are_read_and_assigned_in_order_when_reshapes_are_elided(threads: int) -> None:
    b = Builder()
    x = b.input(ROW, "x")
    # A reshape between arena tensors shares their memory, so its command is left out.
    column = b.add(Reshape((3, 1)), b.add(ADD, x, x))
    row = b.add(Reshape((3,)), b.add(ADD, column, column))
    handle = b.add(VarHandle("", "v"))
    before = b.add(ReadVariable((ROW,)), handle)
    total = b.add(ADD, row, before)
    b.add_many(AssignVariable(), handle, total)
    again = b.add(ADD, total, b.add(ReadVariable((ROW,)), handle))
    execution = _execution(b.subgraph([again]), state=_zeros("v"), threads=threads)
    assert _results(execution, [1, 2, 3]) == [[8, 16, 24]]
    assert _results(execution, [1, 2, 3]) == [[16, 32, 48]]
