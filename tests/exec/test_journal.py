"""Claims about what is noted of state while a run is under way, and put back if it does not become whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert
from onert.exec.journal import Journal
from onert.ir import DType, ExecutionError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call
from onert.ir.ops.data_movement.gather import Gather, PutRow
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

ROW = TensorType(DType.FLOAT32, (4,))


def test_what_a_run_put_into_the_state_goes_and_what_it_replaced_comes_back() -> None:
    table: dict[str, int] = {"a": 1}
    state: dict[Any, Any] = {"table": table}
    journal = Journal(state)
    journal.begin()
    state["table"], state["new"] = {}, 5
    journal.restore()
    assert state == {"table": {"a": 1}}
    assert state["table"] is table


def test_a_variable_is_noted_once_and_put_back() -> None:
    array = np.ones(3)
    journal = Journal({})
    journal.note(array)  # no run is under way: nothing is kept
    journal.begin()
    for value in (2, 3):
        journal.note(array)
        array[...] = value
    journal.restore()
    assert array.tolist() == [1, 1, 1]
    journal.begin()
    journal.note(array)
    array[...] = 4
    journal.commit()
    journal.restore()
    assert array.tolist() == [4, 4, 4]


def _counting() -> Package:
    """Two calls of a subgraph that adds up what it is given, then an element of the sum."""
    inner = Builder("inner")
    x = inner.input(ROW, "x")
    before = inner.variable(ROW, "sum")
    total = inner.add(Binary(BinaryKind.ADD), before, x)
    inner.update(before, total)
    called = inner.subgraph([total])
    b = Builder()
    x, index = b.input(ROW, "x"), b.input(TensorType(DType.INT32, (1,)), "index")
    b.add(Call(1, (ROW,)), x)
    return Package((Subgraphs((b.subgraph([b.add(Gather(0), b.add(Call(1, (ROW,)), x), index)]), called)),), "m")


def test_what_subgraphs_put_into_variables_goes_where_a_run_fails() -> None:
    inner = Builder("inner")
    x, at = inner.input(TensorType(DType.FLOAT32, (1, 4)), "x"), inner.input(TensorType(DType.INT32, (1,)), "at")
    table = inner.variable(TensorType(DType.FLOAT32, (3, 4)), "table")
    made = inner.add(PutRow(), table, x, at)
    inner.update(table, made)
    called = inner.subgraph([inner.add(Reshape((12,)), made)])
    b = Builder()
    x, index = b.input(TensorType(DType.FLOAT32, (1, 4)), "x"), b.input(TensorType(DType.INT32, (1,)), "index")
    (found,) = b.add_many(Call(1, (TensorType(DType.FLOAT32, (12,)),)), x, b.constant(np.int32([1])))
    package = Package((Subgraphs((b.subgraph([found, b.add(Gather(0), found, index)]), called)),), "m")
    for backends in ((), ("reference",)):
        execution = onert.Execution(onert.compile(package, backends=backends))
        ones = np.ones((1, 4), np.float32)
        with pytest.raises(ExecutionError, match="99"):
            execution.run([ones, np.int32([99])])
        kept = [
            array for variables in execution._runner.setup.instance._variables.values() for array in variables.values()
        ]
        assert [array.any() for array in kept] == [False]
        assert next(iter(execution.run([ones, np.int32([0])]).values())).sum() == 4


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_variables_of_subgraphs_stay_as_they_were_where_a_run_fails(executor: str) -> None:
    execution = onert.Execution(onert.compile(_counting(), executor=executor))
    ones = np.ones(4, np.float32)
    for done in (2, 4):
        with pytest.raises(ExecutionError, match="9"):
            execution.run([ones, np.int32([9])])
        assert next(iter(execution.run([ones, np.int32([0])]).values())).tolist() == [done]
