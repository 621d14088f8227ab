"""The journal records state while a run is in progress, and restores it if the run does not complete."""

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


def test_restoring_removes_new_state_and_brings_back_replaced_state() -> None:
    table: dict[str, int] = {"a": 1}
    state: dict[Any, Any] = {"table": table}
    journal = Journal(state)
    journal.begin()
    state["table"], state["new"] = {}, 5
    journal.restore()
    assert state == {"table": {"a": 1}}
    assert state["table"] is table


def test_a_variable_is_recorded_once_and_restored() -> None:
    array = np.ones(3)
    journal = Journal({})
    journal.note(array)  # no run is in progress, so nothing is recorded
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
    """Two calls of a subgraph that accumulates its input, then an element of the sum."""
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


def test_new_variables_of_subgraphs_are_reset_if_a_run_fails() -> None:
    inner = Builder("inner")
    x, at = inner.input(TensorType(DType.FLOAT32, (1, 4)), "x"), inner.input(TensorType(DType.INT32, (1,)), "at")
    table = inner.variable(TensorType(DType.FLOAT32, (3, 4)), "table")
    updated = inner.add(PutRow(), table, x, at)
    inner.update(table, updated)
    called = inner.subgraph([inner.add(Reshape((12,)), updated)])
    b = Builder()
    x, index = b.input(TensorType(DType.FLOAT32, (1, 4)), "x"), b.input(TensorType(DType.INT32, (1,)), "index")
    (found,) = b.add_many(Call(1, (TensorType(DType.FLOAT32, (12,)),)), x, b.constant(np.int32([1])))
    package = Package((Subgraphs((b.subgraph([found, b.add(Gather(0), found, index)]), called)),), "m")
    for backends in ((), ("reference",)):
        execution = onert.Execution(onert.compile(package, backends=backends))
        ones = np.ones((1, 4), np.float32)
        with pytest.raises(ExecutionError, match="99"):
            execution.run([ones, np.int32([99])])
        stored = [
            array for variables in execution._runner.setup.instance._variables.values() for array in variables.values()
        ]
        assert [array.any() for array in stored] == [False]
        assert next(iter(execution.run([ones, np.int32([0])]).values())).sum() == 4


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_variables_of_subgraphs_are_unchanged_if_a_run_fails(executor: str) -> None:
    execution = onert.Execution(onert.compile(_counting(), executor=executor))
    ones = np.ones(4, np.float32)
    for done in (2, 4):
        with pytest.raises(ExecutionError, match="9"):
            execution.run([ones, np.int32([9])])
        assert next(iter(execution.run([ones, np.int32([0])]).values())).tolist() == [done]
