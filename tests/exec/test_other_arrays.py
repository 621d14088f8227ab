"""Other arrays for inputs and outputs: runs use them in place, and native kernels are not bound to them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np
import pytest
from backend.padded import Padded
from counters import running_sum
from length_models import MODELS, opened
from random_graphs import random_model

import onert
from onert.backend.registry import load_backends
from onert.compiler import Options, compile
from onert.compiler.program_cache import other_shapes
from onert.exec import setup
from onert.ir import Array, DType, ExecutionError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.runtime.bound_commands import Places

WAYS: dict[str, dict[str, Any]] = {
    "1 thread": {"num_threads": 1},
    "3 threads": {"num_threads": 3},
    "Parallel": {"num_threads": 2, "executor": "Parallel"},
    "reference": {"backends": ("reference",)},
}
_LENGTHS = (2, 7, 5, 12, 7, 7, 5)


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """All inputs are used in place, however small; the list has an item for each time that kernels are bound.

    Programs are compiled here: which ones the cache has, and so for which lengths a frame is made, depends on how long
    other processes took.
    """
    monkeypatch.setattr(other_shapes, "program_entry", lambda *_, **__: None)
    monkeypatch.setattr(setup, "_COPIED", -1)
    monkeypatch.setattr(setup, "_IN_PLACE", 0)
    made: list[object] = []
    init = Places.__init__

    def counted(self: Places, *given: Any) -> None:
        made.append(None)
        init(self, *given)

    monkeypatch.setattr(Places, "__init__", counted)
    return made


def _random(info: Any, rng: np.random.Generator) -> Array:
    if info.dtype.is_integer:
        return rng.integers(-128, 128, info.type.shape).astype(np.int8)
    return rng.normal(size=info.type.shape).astype(np.float32)


def _run(execution: onert.Execution, inputs: Sequence[Array], together: bool = False) -> list[Array]:
    """The results of a run on these inputs, set one by one or `together`."""
    if together:
        return [array.copy() for array in execution.run(inputs).values()]
    for at, array in enumerate(inputs):
        execution.set_input(at, array)
    execution.execute()
    return [execution.get_output(at).copy() for at in range(len(execution.outputs))]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(12))
def test_runs_on_other_arrays_are_those_of_new_executions(seed: int, way: str, bindings: list[object]) -> None:
    program = onert.compile(onert.load(random_model(seed, stored=bool(seed % 2))), **WAYS[way])
    rng, execution = np.random.default_rng(seed), onert.Execution(program)
    for turn in range(7):
        inputs = [_random(info, rng) for info in program.inputs]
        wanted = _run(onert.Execution(program), inputs)
        del bindings[:]
        for at, info in enumerate(program.outputs):
            if turn % 2 and program.main.subgraph.operands[program.main.subgraph.outputs[at]].data is None:
                execution.set_output(at, np.empty(info.type.shape, info.dtype.numpy))
        for mine, theirs in zip(_run(execution, inputs, together=turn in (2, 3, 6)), wanted, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert turn < 1 or not bindings


@pytest.mark.parametrize(("_", "model", "shapes"), MODELS, ids=[name for name, *_ in MODELS])
def test_runs_on_arrays_of_other_lengths_are_those_of_new_executions(
    _: str, model: Any, shapes: Any, bindings: list[object]
) -> None:
    package = opened(model())
    program = onert.compile(package, num_threads=2)
    rng, execution = np.random.default_rng(1), onert.Execution(program)
    for turn, length in enumerate(_LENGTHS):
        inputs = [
            _random(type(info)(info.name, info.dtype, shape), rng)
            for info, shape in zip(program.inputs, shapes(length), strict=True)
        ]
        wanted = onert.Execution(onert.compile(package, num_threads=2)).run(inputs)
        del bindings[:]
        for mine, theirs in zip(_run(execution, inputs, together=turn % 3 == 2), wanted.values(), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert turn < len(set(_LENGTHS)) or len(inputs) > 1 or not bindings


def _summed() -> Subgraphs:
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, (2, 3)), name) for name in "xy")
    flat = b.add(Reshape((6,)), b.add(Binary(BinaryKind.SUB), x, y))
    return b.model([b.add(Reshape((3, 2)), b.add(Unary(UnaryKind.SQUARE), flat))])


def test_one_array_may_be_two_inputs_and_then_one(bindings: list[object]) -> None:
    execution = onert.Execution(onert.compile(Package((_summed(),))))
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    for first, second in ((x, x), (x, y), (y, y), (y, x), (x, x)):
        np.testing.assert_array_equal(_run(execution, [first, second])[0].ravel(), (first - second).ravel() ** 2)
    assert len(bindings) == 1


def test_an_array_that_was_replaced_is_freed(bindings: list[object]) -> None:
    execution = onert.Execution(onert.compile(Package((_summed(),))))
    given = [np.full((2, 3), n, np.float32) for n in range(3)]
    kept = [ref(array) for array in given]
    for array in given:
        _run(execution, [array, array])
    del given, array
    assert [each() is None for each in kept] == [True, True, False]
    assert len(bindings) == 1


def test_later_changes_of_an_array_take_effect(bindings: list[object]) -> None:
    execution = onert.Execution(onert.compile(Package((_summed(),))))
    zero, x = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
    for array in (zero, x):
        _run(execution, [array, zero])
    x[...] = 3
    execution.execute()
    assert execution.get_output(0).tolist() == [[9, 9]] * 3
    assert len(bindings) == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_results_may_be_the_next_inputs(threads: int, bindings: list[object]) -> None:
    """Kernels are bound again: in which order threads may run commands depends on the memory that these write."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (64, 64)), "x")
    turned = b.add(Binary(BinaryKind.ADD), x, b.constant(np.ones((64, 1), np.float32)))
    execution = onert.Execution(onert.compile(Package((b.model([turned]),)), num_threads=threads))
    _run(execution, [np.zeros((64, 64), np.float32)])
    result = execution.output_buffer(0)
    assert result is not None
    before = len(bindings)
    for number in range(2, 5):
        execution.set_input(0, result)
        execution.execute()
        assert (execution.get_output(0) == number).all()
    assert len(bindings) > before


def test_results_of_run_may_be_the_next_inputs_without_binding_again(
    bindings: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_LARGE", 1)
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (4, 4)), "x")
    execution = onert.Execution(onert.compile(Package((b.model([b.add(Unary(UnaryKind.SQUARE), x)]),))))
    x = np.full((4, 4), 2, np.float32)
    for power in (2, 4, 8, 16):
        execution.set_input(0, x)
        (x,) = execution.run([x]).values()
        assert (x == 2.0**power).all()
    assert len(bindings) == 1


def test_sums_over_runs_go_on_with_other_arrays(bindings: list[object]) -> None:
    b, total = running_sum()
    execution = onert.Execution(onert.compile(Package((b.model([total]),))))
    found = [float(_run(execution, [np.full(1, n, np.float32)])[0][0]) for n in range(5)]
    assert found == [0, 1, 3, 6, 10]


def test_backends_that_cannot_redirect_are_bound_again(bindings: list[object]) -> None:
    execution = onert.Execution(compile(Package((_summed(),)), Options(), (Padded(), *load_backends(["llvm"]))))
    for n in range(3):
        x = np.full((2, 3), n, np.float32)
        assert _run(execution, [x, np.zeros_like(x)])[0].tolist() == [[n * n] * 2] * 3


def test_small_arrays_that_do_not_fit_are_refused_after_others_that_did() -> None:
    execution = onert.Execution(onert.compile(Package((_summed(),))))
    x, zero = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    for array in (zero, x, zero, x):
        assert _run(execution, [array, zero])[0].tolist() == [[array[0, 0] ** 2] * 2] * 3
    for sentence, array in {"type float64": x.astype(np.float64), "shape": np.ones((3, 2), np.float32)}.items():
        with pytest.raises(ExecutionError, match=sentence):
            execution.set_input(0, array)
    memory = np.zeros(7, np.float32)
    execution.set_output(0, memory[:6].reshape(3, 2))
    with pytest.raises(ExecutionError, match="memory that output"):
        execution.set_input(0, memory[1:].reshape(2, 3))
    execution.execute()
    assert memory[:6].tolist() == [1] * 6


@pytest.mark.parametrize("end", ["input", "output"])
def test_a_copy_onto_itself_is_made_again_once_an_end_is_elsewhere(end: str, bindings: list[object]) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (4, 4)), "x")
    execution = onert.Execution(onert.compile(Package((b.model([b.add(Copy(), x)]),))))
    _run(execution, [np.ones((4, 4), np.float32)])
    result = execution.output_buffer(0)
    assert result is not None
    assert (_run(execution, [result])[0] == 1).all()
    if end == "output":
        execution.set_output(0, np.zeros((4, 4), np.float32))
        execution.execute()
        assert (execution.get_output(0) == 1).all()
    for value in (2, 3):
        assert (_run(execution, [np.full((4, 4), value, np.float32)])[0] == value).all()
