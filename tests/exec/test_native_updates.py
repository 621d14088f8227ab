"""A program of one native step gives variables their new values in the same native call, if that is safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onert
from onert.exec import Execution
from onert.exec.frames.buffers import is_plain
from onert.exec.observers import Observer
from onert.ir import Array, DType, ExecutionError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast

SIZES = (1, 3, 16, 17, 63, 64, 65, 200)


def _delays() -> Package:
    """For each size a variable that holds the last numbers of a stream, and their sum with the next ones."""
    b = Builder()
    results = []
    for size in SIZES:
        x = b.input(TensorType(DType.INT8, (size,)), f"x{size}")
        handle = b.add(VarHandle("", f"{size}"))
        (before,) = b.add_many(ReadVariable((TensorType(DType.INT8, (2 * size,)),)), handle)
        both = b.add(Concat(0), before, x)
        constants = (b.constant(np.array([n], np.int32)) for n in (size, 2 * size))
        b.add_many(AssignVariable(), handle, b.add(Slice(), both, *constants))
        results.append(b.add(Binary(BinaryKind.MAXIMUM), both, both))
    return Package((Subgraphs((b.subgraph(results),)),), "delays")


def _state() -> dict[Any, Any]:
    return {("variable", "", f"{size}"): np.zeros(2 * size, np.int8) for size in SIZES}


def _given(seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-128, 128, size, np.int8) for size in SIZES]


def _calls_after(execution: Execution) -> int:
    """The calls that update state after the steps of a run."""
    frame = execution._runner.setup.frame
    return len(frame._host_updates()) if frame.stateful else 0


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_variables_of_all_sizes_get_their_values_in_the_only_step(executor: str) -> None:
    execution = Execution(onert.compile(_delays(), executor=executor, num_threads=1), state=_state())
    expected = Execution(onert.compile(_delays(), backends=("reference",)), state=_state())
    for seed in range(4):
        for one, other in zip(execution.run(_given(seed)).values(), expected.run(_given(seed)).values(), strict=True):
            np.testing.assert_array_equal(one, other)
    steps = len(execution.program.routines[0].steps)
    assert _calls_after(execution) == (0 if steps == 1 else len(SIZES))
    assert _calls_after(expected) == len(SIZES)


def test_another_array_in_the_state_is_updated_from_then_on() -> None:
    state = _state()
    execution = Execution(onert.compile(_delays(), num_threads=1), state=state)
    execution.run(_given(0))
    key = ("variable", "", "64")
    state[key] = np.arange(128, dtype=np.int8)
    result = list(execution.run(_given(1)).values())[SIZES.index(64)]
    np.testing.assert_array_equal(result[:128], np.arange(128))
    np.testing.assert_array_equal(state[key], np.concatenate([np.arange(64, 128), _given(1)[SIZES.index(64)]]))


def _assigned(value: Callable[[Builder, int, int], int]) -> Package:
    """A variable that is read before it is assigned a value made from it and an input."""
    b = Builder()
    x = b.input(TensorType(DType.INT8, (4,)), "x")
    handle = b.add(VarHandle("", "v"))
    (before,) = b.add_many(ReadVariable((TensorType(DType.INT8, (4,)),)), handle)
    b.add_many(AssignVariable(), handle, value(b, before, x))
    return Package((Subgraphs((b.subgraph([b.add(Binary(BinaryKind.MAXIMUM), before, x)]),)),), "m")


VARIABLE = ("variable", "", "v")


def test_a_variable_that_is_only_assigned_enters_the_state_after_the_step() -> None:
    b = Builder()
    x = b.input(TensorType(DType.INT8, (4,)), "x")
    b.add_many(AssignVariable(), b.add(VarHandle("", "v")), b.add(Binary(BinaryKind.ADD), x, x))
    state: dict[Any, Any] = {}
    package = Package((Subgraphs((b.subgraph([b.add(Binary(BinaryKind.MAXIMUM), x, x)]),)),), "m")
    Execution(onert.compile(package, num_threads=1), state=state).run([np.arange(4, dtype=np.int8)])
    np.testing.assert_array_equal(state[VARIABLE], [0, 2, 4, 6])


BYTES = np.zeros(8, np.int8)
COPIES = {
    "bytes": (BYTES[:4], BYTES[4:], True),
    "the same memory": (BYTES, BYTES, False),
    "overlapping": (BYTES[:5], BYTES[3:], False),
    "not contiguous": (BYTES[:4], np.zeros(8, np.int8)[::2], False),
    "empty": (BYTES[:0], BYTES[:0], False),
    "objects": (np.zeros(2, object), np.zeros(2, object), False),
}


@pytest.mark.parametrize("name", COPIES)
def test_only_contiguous_bytes_of_other_memory_are_copied_natively(name: str) -> None:
    target, source, native = COPIES[name]
    assert is_plain(target, source) == native


def test_a_step_that_may_fail_does_not_update_state() -> None:
    package = _assigned(lambda b, before, x: b.add(Gather(0), before, b.add(Cast(DType.INT32), x)))
    state: dict[Any, Any] = {VARIABLE: np.arange(4, dtype=np.int8)}
    execution = Execution(onert.compile(package, num_threads=1), state=state)
    execution.run([np.int8([3, 2, 1, 0])])
    assert _calls_after(execution) == 1
    with pytest.raises(ExecutionError, match="9"):
        execution.run([np.int8([0, 9, 0, 0])])
    np.testing.assert_array_equal(state[VARIABLE], [3, 2, 1, 0])


class _Recorder(Observer):
    """Counts runs."""

    count = 0

    def run_ends(self, *_: Any) -> None:
        self.count += 1


def test_observed_runs_update_state_after_their_steps() -> None:
    observer = _Recorder()
    execution = Execution(onert.compile(_delays(), num_threads=1), state=_state(), observers=[observer])
    execution.run(_given(0))
    assert observer.count == 1
    assert _calls_after(execution) == len(SIZES)
