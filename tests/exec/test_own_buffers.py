"""The memory that an execution owns for its inputs and outputs, which callers may read and write in place."""

from __future__ import annotations

import numpy as np
import pytest
from backend.padded import Padded
from backend.test_own_layout import mixed
from length_models import found, opened

import onert
from onert.backend.registry import load_backends
from onert.compiler import Options, compile
from onert.ir import CompileError, DType, ExecutionError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind


def _sum() -> Subgraphs:
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, (2, 3)), name) for name in "xy")
    return b.model([b.add(Binary(BinaryKind.ADD), x, y)])


def test_runs_read_and_write_the_own_memory_of_every_length() -> None:
    execution = onert.Execution(onert.compile(opened(_sum())))
    for rows in (2, 5, 3, 7, 3, 30, 1, 0, 4):
        execution.set_input_shapes({"x": (rows, 3), 1: (rows, 3)})
        assert [info.shape for info in (*execution.inputs, *execution.outputs)] == [(rows, 3)] * 3
        x, y, z = execution.input_buffer(0), execution.input_buffer("y"), execution.output_buffer(0)
        assert z is not None
        for factor in (1, 2):
            x[...] = factor * rows
            y[...] = 1
            execution.execute()
            assert z.tolist() == [[factor * rows + 1] * 3] * rows
            np.testing.assert_array_equal(execution.get_output(0), z)


def test_shapes_that_do_not_fit_together_change_nothing() -> None:
    execution = onert.Execution(onert.compile(opened(_sum())))
    with pytest.raises(CompileError, match="5, 3"):
        execution.set_input_shapes({"x": (4, 3), "y": (5, 3)})
    assert [info.shape for info in execution.inputs] == [(2, 3)] * 2


def test_inputs_have_to_be_set_again_only_if_shapes_change() -> None:
    execution = onert.Execution(onert.compile(opened(_sum())))
    for rows in (2, 5, 3, 7, 4, 6):
        execution.set_input_shapes({"x": (rows, 3), "y": (rows, 3)})
        with pytest.raises(ExecutionError, match="x"):
            execution.execute()
        for at in (0, 1):
            execution.set_input(at, np.full((rows, 3), rows, np.float32))
        execution.set_input_shapes({"y": (rows, 3), "x": (rows, 3)})
        execution.execute()
        assert execution.get_output(0).tolist() == [[2 * rows] * 3] * rows


def test_an_array_replaces_the_own_memory_of_an_input() -> None:
    execution = onert.Execution(onert.compile(opened(_sum())))
    own = [execution.input_buffer(at) for at in (0, 1)]
    for buffer in own:
        buffer[...] = 1
    execution.execute()
    execution.set_input(0, np.full((2, 3), 5, np.float32))
    execution.execute()
    assert execution.get_output(0).tolist() == [[6] * 3] * 2
    execution.input_buffer(0)[...] = 2
    execution.execute()
    assert execution.get_output(0).tolist() == [[3] * 3] * 2


def test_an_output_of_unknown_size_has_no_memory_before_it_is_computed() -> None:
    execution = onert.Execution(onert.compile(opened(found())))
    assert execution.output_buffer(0) is None
    assert execution.outputs[0].shape == (None,)


def test_outputs_computed_in_other_memory_are_written_to_the_host_s() -> None:
    execution = onert.Execution(compile(Package((mixed(),)), Options(), (Padded(), *load_backends(["reference"]))))
    execution.input_buffer(0)[...] = 1
    execution.execute()
    (expected,) = execution.run([np.ones((6, 5), np.float32)]).values()
    assert expected.any()
    np.testing.assert_array_equal(execution.output_buffer(0), expected)
