"""The memory of an output is its own: no input, other output or arena may share a byte with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import onert
from onert.exec.memory_overlap import Spans
from onert.ir import Array, DType, ExecutionError, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

Setter = Callable[[onert.Execution, Array], None]


def _execution(arena: Array | None = None, backend: str = "llvm") -> onert.Execution:
    """Two inputs x and y of 2 by 4 floats; the outputs are |-x| and |y * y|."""
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, (2, 4)), name) for name in "xy")
    inner = [b.add(Unary(kind), i) for i, kind in ((x, UnaryKind.NEG), (y, UnaryKind.SQUARE))]
    package = Package((b.model([b.add(Unary(UnaryKind.ABS), i) for i in inner]),))
    return onert.Execution(onert.compile(package, backends=(backend,), num_threads=1), arena=arena)


def _part(memory: Array, start: int, step: int = 1) -> Array:
    """Eight of the memory's floats as a tensor."""
    return memory[start : start + 8 * step : step].reshape(2, 4)


OVERLAPS = [(0, 0), (0, 7), (7, 0), (3, 8)]
"""Starts of two tensors of eight floats that share at least one."""
OVERLAPPING: dict[str, tuple[Setter, Setter, str]] = {
    "an output over an input": (
        lambda e, a: e.set_input("x", a),
        lambda e, a: e.set_output(1, a),
        "output '.*' is given memory that input 'x' uses",
    ),
    "an output over another": (
        lambda e, a: e.set_output(0, a),
        lambda e, a: e.set_output(1, a),
        "output '.*' is given memory that output '.*' uses",
    ),
    "an input over an output": (
        lambda e, a: e.set_output(0, a),
        lambda e, a: e.set_input("y", a),
        "input 'y' is given memory that output '.*' uses",
    ),
}


@pytest.mark.parametrize("starts", OVERLAPS, ids=str)
@pytest.mark.parametrize("case", OVERLAPPING)
def test_memory_already_in_use_is_rejected(case: str, starts: Sequence[int]) -> None:
    first, second, sentence = OVERLAPPING[case]
    execution, memory = _execution(), np.zeros(16, np.float32)
    first(execution, _part(memory, starts[0]))
    with pytest.raises(ExecutionError, match=sentence):
        second(execution, _part(memory, starts[1]))


@pytest.mark.parametrize("case", OVERLAPPING)
def test_adjacent_memory_does_not_overlap(case: str) -> None:
    first, second, _ = OVERLAPPING[case]
    execution, memory = _execution(), np.arange(16, dtype=np.float32)
    for name in "xy":
        execution.set_input(name, np.ones((2, 4), np.float32))
    first(execution, _part(memory, 0))
    second(execution, _part(memory, 8))
    before = memory.copy()
    execution.execute()
    assert (memory != before).any()


def test_a_strided_input_must_not_share_memory_with_an_output() -> None:
    execution, memory = _execution(), np.zeros(32, np.float32)
    execution.set_input("x", _part(memory, 0, 2))
    with pytest.raises(ExecutionError, match="input 'x' uses"):
        execution.set_output(0, _part(memory, 7))
    execution.set_output(0, _part(memory, 16))


def test_an_output_in_the_arena_is_rejected() -> None:
    arena = np.zeros(1024, np.float32)
    execution = _execution(arena, backend="reference")
    assert execution.program.arena_bytes > 0
    with pytest.raises(ExecutionError, match="the arena uses"):
        execution.set_output(0, _part(arena[-arena.ctypes.data % 64 // 4 :], 0))
    execution.set_output(0, np.zeros((2, 4), np.float32))


def test_an_output_may_keep_its_memory_and_replaced_memory_may_be_used_again() -> None:
    execution, memory = _execution(), np.zeros(16, np.float32)
    one, other = _part(memory, 0), _part(memory, 8)
    execution.set_output(0, one)
    execution.set_output(0, one)
    execution.set_output(0, other)
    execution.set_input("x", one)
    execution.set_input("x", np.ones((2, 4), np.float32))
    execution.set_output(1, one)
    assert execution._frame.tensors[execution._runner.setup.output(1)].buffer is one


def test_run_copies_inputs_so_a_result_may_be_the_next_input() -> None:
    execution, result = _execution(), np.zeros((2, 4), np.float32)
    execution.set_output(1, result)
    given = np.full((2, 4), 2.0, np.float32)
    for expected in (4.0, 16.0, 256.0):
        execution.run([given, given])
        assert (result == expected).all()
        given = result


@pytest.mark.parametrize("seed", range(20))
def test_spans_find_an_overlap_with_any_of_many_arrays(seed: int) -> None:
    rng, room = np.random.default_rng(seed), np.zeros(400, np.uint8)

    def some() -> Array:
        start, size = int(rng.integers(0, 380)), int(rng.integers(1, 20))
        return room[start : start + size : rng.choice([1, 2])]

    many = [*(some() for _ in range(rng.integers(0, 12))), room[200:200]]
    spans = Spans(many)
    for _ in range(100):
        array = some()
        overlaps = any(np.may_share_memory(array, other) for other in many)
        assert spans.are_apart_from(array) is not overlaps
