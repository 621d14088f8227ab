"""Large inputs and outputs of `run` are not copied: callers get the memory that the run wrote, and later runs write
elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest
from backend.padded import Padded
from backend.test_own_layout import mixed
from length_models import opened

import onert
from onert.backend.registry import load_backends
from onert.compiler import Options, compile
from onert.exec import setup
from onert.ir import Array, DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

_SHAPE = (2, 3)


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "_LARGE", 1)
    monkeypatch.setattr(setup, "_IN_PLACE", 1)


def _model() -> Subgraphs:
    """-x, and x * x twice."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, _SHAPE), "x")
    square = b.add(Binary(BinaryKind.MUL), x, x)
    return b.model([b.add(Unary(UnaryKind.NEG), x), square, square])


def _fixed() -> onert.Execution:
    return onert.Execution(onert.compile(Package((_model(),))))


EXECUTIONS: dict[str, Callable[[], onert.Execution]] = {
    "fixed sizes": _fixed,
    "3 threads": lambda: onert.Execution(onert.compile(Package((_model(),)), num_threads=3)),
    "Parallel": lambda: onert.Execution(onert.compile(Package((_model(),)), executor="Parallel")),
    "open sizes": lambda: onert.Execution(onert.compile(opened(_model()))),
    "reference": lambda: onert.Execution(onert.compile(Package((_model(),)), backends=("reference",))),
}


def _x(value: float, rows: int = 2) -> Array:
    return np.full((rows, 3), value, np.float32)


@pytest.mark.parametrize("kind", EXECUTIONS)
def test_results_do_not_change_with_later_runs(kind: str) -> None:
    execution, found = EXECUTIONS[kind](), []
    for value in range(1, 8):
        found.append(list(execution.run([_x(value)]).values()))
        if value % 3 == 0:
            execution.set_input(0, _x(9))
            execution.execute()
            assert [execution.get_output(at)[0, 0] for at in range(3)] == [-9, 81, 81]
    for value, (negative, *squares) in enumerate(found, 1):
        np.testing.assert_array_equal(negative, _x(-value))
        for square in squares:
            np.testing.assert_array_equal(square, _x(value * value))
    every = [array for arrays in found for array in arrays]
    assert not any(np.may_share_memory(a, b) for at, a in enumerate(every) for b in every[:at])


def test_results_from_other_memory_do_not_change_with_later_runs() -> None:
    execution = onert.Execution(compile(Package((mixed(),)), Options(), (Padded(), *load_backends(["reference"]))))
    found = [next(iter(execution.run([np.full((6, 5), value, np.float32)]).values())) for value in range(3)]
    for value, array in enumerate(found):
        np.testing.assert_array_equal(array, execution.run([np.full((6, 5), value, np.float32)]).popitem()[1])


def test_results_do_not_change_with_runs_of_other_lengths() -> None:
    execution, found = EXECUTIONS["open sizes"](), []
    lengths = (2, 5, 5, 5, 7, 7, 5, 5, 2, 7, 7)
    for value, rows in enumerate(lengths):
        found.append(list(execution.run([_x(value, rows)]).values()))
        if value % 2:  # the frame's own memory may be written
            execution.execute()
            execution.set_input(0, _x(99, rows + 1))
            execution.execute()
    for value, (rows, arrays) in enumerate(zip(lengths, found, strict=True)):
        for array, expected in zip(arrays, (-value, value * value, value * value), strict=True):
            np.testing.assert_array_equal(array, _x(expected, rows))


@pytest.mark.parametrize("kind", ["fixed sizes", "open sizes"])
def test_the_memory_that_a_run_wrote_is_returned(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = EXECUTIONS[kind]()
    for value in (1, 2, 3):
        execution.run([_x(value)])
    copies = list[object]()
    copied = setup.copied
    monkeypatch.setattr(setup, "copied", lambda array, info: copies.append(info) or copied(array, info))
    first, *_ = execution.run([_x(4)]).values()
    assert not copies
    kept, memory = ref(first.base), first.ctypes.data
    assert execution.get_output(0).ctypes.data != memory
    execution.run([_x(5)])
    del first
    assert kept() is None


USES: dict[str, Callable[[Array], Any]] = {
    "the array": lambda array: array,
    "a part": lambda array: array[1:],
    "a part of a part": lambda array: array[1:][:, 1:],
    "another type": lambda array: array.reshape(-1).view(np.uint8),
    "another class": lambda array: array.view(np.recarray),
    "a buffer": memoryview,
    "an array of the buffer": np.frombuffer,
    "an array by strides": lambda array: np.lib.stride_tricks.as_strided(array, (2,)),
    "another library": np.from_dlpack,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", EXECUTIONS)
def test_what_a_caller_has_of_a_result_does_not_change(kind: str, use: str) -> None:
    execution = EXECUTIONS[kind]()
    for value in (1, 2, 3):
        execution.run([_x(value)])
    kept = USES[use](next(iter(execution.run([_x(4)]).values())))
    before = bytes(kept)
    for value in (5, 6):
        execution.run([_x(value)])
    assert bytes(kept) == before


def test_memory_of_results_that_are_gone_is_written_again() -> None:
    execution = _fixed()
    for value in (1, 2, 3):
        execution.run([_x(value)])
    first = execution.run([_x(4)])[execution.outputs[0].name]
    memory = first.ctypes.data
    del first
    assert execution.run([_x(5)])[execution.outputs[0].name].ctypes.data == memory


def test_a_result_may_be_the_next_input() -> None:
    for kind in ("fixed sizes", "3 threads", "open sizes"):
        execution, x = EXECUTIONS[kind](), _x(2)
        execution.run([x])
        for turn in range(3):
            x = execution.run([x])[execution.outputs[0].name]
            execution.set_input(0, x)
            before = x.copy()
            assert execution.get_output(0).tolist() == before.tolist()
            execution.execute()
            np.testing.assert_array_equal(x, before)
            assert execution.get_output(0)[0, 0] == -x[0, 0], f"{kind}, {turn}"


def test_own_memory_that_is_known_to_the_user_is_not_handed_out() -> None:
    for kind in ("fixed sizes", "open sizes"):
        execution = EXECUTIONS[kind]()
        first = execution.run([_x(1)])
        own = execution.output_buffer(0)
        assert own is not None
        np.testing.assert_array_equal(own, _x(-1))
        for value in (2, 3):
            found: Any = execution.run([_x(value)])
            np.testing.assert_array_equal(own, _x(-value))
            assert not np.may_share_memory(own, found[execution.outputs[0].name])
        np.testing.assert_array_equal(first[execution.outputs[0].name], _x(-1))


def test_buffers_of_the_user_are_returned_and_stay() -> None:
    execution, mine = _fixed(), np.zeros(_SHAPE, np.float32)
    before = execution.run([_x(1)])
    execution.set_output(0, mine)
    for value in (2, 3):
        assert execution.run([_x(value)])[execution.outputs[0].name] is mine
        np.testing.assert_array_equal(mine, _x(-value))
    np.testing.assert_array_equal(before[execution.outputs[0].name], _x(-1))


def test_an_input_used_in_place_is_freed_after_the_next_run() -> None:
    execution = _fixed()
    given = [_x(value) for value in range(4)]
    kept = [ref(array) for array in given]
    for array in given:
        execution.run([array])
    del given, array
    assert [each() is None for each in kept] == [True, True, True, False]


def test_inputs_that_are_not_contiguous_are_copied_between_others_that_are() -> None:
    for kind in ("fixed sizes", "open sizes"):
        execution, strided = EXECUTIONS[kind](), np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2].T
        for array in (_x(1), strided, _x(2), strided, strided, _x(3)):
            negative, square, _ = execution.run([array]).values()
            np.testing.assert_array_equal(negative, -array)
            np.testing.assert_array_equal(square, array * array)


def test_an_input_in_the_memory_of_an_output_is_copied() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (64, 64)), "x")
    twice = b.add(BatchMatMul(), x, x)
    execution = onert.Execution(onert.compile(Package((b.model([twice]),))))
    memory = np.zeros((64, 64), np.float32)
    execution.set_output(0, memory)
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) % 7
    for _ in range(3):
        memory[...] = x
        (found,) = execution.run([memory]).values()
        assert found is memory
        np.testing.assert_array_equal(found, x @ x)
