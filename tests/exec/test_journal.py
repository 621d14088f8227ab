"""Claims about when the state is copied before a run, so that it can be put back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import onert
from onert.exec.journal import Journal
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import CallOnce
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

ONCE = SimpleNamespace(settled=True)
FIRST = SimpleNamespace(settled=False)
NATIVE = SimpleNamespace(indivisible=True)
OTHER = SimpleNamespace()


@pytest.mark.parametrize(
    ("calls", "kept", "copies"),
    [
        ([NATIVE], (), False),
        ([ONCE, NATIVE], (), False),
        ([NATIVE, ONCE], (), False),
        ([FIRST, NATIVE], (), True),
        ([NATIVE, NATIVE], (), True),
        ([OTHER], (), True),
        ([ONCE, OTHER], (), True),
        ([NATIVE], ("a tensor that is kept",), True),
    ],
)
def test_state_is_copied_unless_one_native_call_changes_it(calls: list[Any], kept: Any, copies: bool) -> None:
    state: dict[Any, Any] = {"v": np.ones(3)}
    journal = Journal(state, {})
    frame: Any = SimpleNamespace(calls=tuple(calls), routine=SimpleNamespace(subgraph=SimpleNamespace(state=kept)))
    journal.begin(frame)
    state["v"][:] = 2
    journal.restore()
    assert state["v"][0] == (1 if copies else 2)


def test_a_call_that_was_made_once_is_settled() -> None:
    row = TensorType(DType.FLOAT32, (4,))
    b = Builder()
    b.add_many(CallOnce(1))
    x, handle = b.input(row, "x"), b.add(VarHandle("", "sum"))
    total = b.add(Binary(BinaryKind.ADD), b.add(ReadVariable((row,)), handle), x)
    b.add_many(AssignVariable(), handle, total)
    once = Builder("initialise")
    once.add_many(AssignVariable(), once.add(VarHandle("", "sum")), once.constant(np.zeros(4, np.float32)))
    execution = onert.Execution(onert.compile(Package((Subgraphs((b.subgraph([total]), once.subgraph([]))),), "sum")))
    calls = execution._frame.calls
    settled = [call for call in calls if hasattr(call, "settled")]
    assert [call.settled for call in settled] == [False]
    execution.run([np.ones(4, np.float32)])
    assert [call.settled for call in settled] == [True]
    assert execution.run([np.ones(4, np.float32)]).popitem()[1].tolist() == [2.0] * 4
