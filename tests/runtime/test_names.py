"""Inputs and outputs are found by name and by position, and none is lost."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir import DType, ExecutionError, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

_F32 = TensorType(DType.FLOAT32, (1,))


def _program() -> onert.Program:
    """abs(x), -y, and the first again."""
    b = Builder()
    results = [
        b.add(Unary(kind), x) for kind, x in ((UnaryKind.ABS, b.input(_F32, "x")), (UnaryKind.NEG, b.input(_F32)))
    ]
    return onert.compile(Package((b.model([*results, results[0]]),), "named"))


def test_every_input_and_output_has_a_unique_name() -> None:
    """A dictionary of outputs loses none even if tensors have no name or share one."""
    program = _program()
    assert [info.name for info in program.inputs] == ["x", "input_1"]
    assert [info.name for info in program.outputs] == ["output_0", "output_1", "output_2"]
    outputs = onert.Execution(program).run({"x": np.float32([-2]), "input_1": np.float32([3])})
    assert {name: array.tolist() for name, array in outputs.items()} == {
        "output_0": [2.0],
        "output_1": [-3.0],
        "output_2": [2.0],
    }


def test_positions_work_as_well_as_names() -> None:
    execution = onert.Execution(_program())
    execution.set_input(0, np.float32([-1]))
    execution.set_input("input_1", np.float32([1]))
    execution.execute()
    assert [execution.get_output(i).tolist() for i in (0, 1, -1)] == [[1.0], [-1.0], [1.0]]


@pytest.mark.parametrize(("name", "says"), [("z", "no input 'z', expected one of 'x', 'input_1'"), (2, "0 to 1")])
def test_the_error_for_a_wrong_name_lists_the_valid_ones(name: str | int, says: str) -> None:
    with pytest.raises(ExecutionError, match=says):
        onert.Execution(_program()).set_input(name, np.float32([1]))
