"""Memory with its own layout: it defines the size of tensors, and no tensor shares memory with another."""

from __future__ import annotations

import numpy as np
import pytest

from onert.backend import CHANNELS_FIRST, HOST, OwnLayout, tensor_bytes
from onert.backend.registry import load_backends
from onert.compiler import Options, compile
from onert.exec import Execution
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

from .padded import PADDED, Padded

ADD = Binary(BinaryKind.ADD)


def mixed() -> Subgraphs:
    """Sums and reshapes of rows that do not fill a vector, around a function of another backend."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (6, 5)), "x")
    rows = b.constant(np.arange(10, dtype=np.float32).reshape(2, 5))
    total = b.add(ADD, x, x)
    other = b.add(Reshape((3, 10)), total)
    bent = b.add(Unary(UnaryKind.TANH), b.add(ADD, other, other))
    third = b.add(Reshape((3, 2, 5)), bent)
    return b.model([b.add(Reshape((30,)), b.add(ADD, b.add(ADD, third, rows), third))])


SIZES = [((6, 5), 6 * 16 * 4), ((30,), 32 * 4), ((2, 3, 16), 96 * 4), ((4, 0), 0)]


@pytest.mark.parametrize(("shape", "nbytes"), SIZES, ids=str)
def test_the_memory_defines_the_size_of_a_tensor(shape: tuple[int, ...], nbytes: int) -> None:
    type_ = TensorType(DType.FLOAT32, shape)
    assert tensor_bytes(PADDED, type_) == nbytes
    assert tensor_bytes(HOST, type_) == tensor_bytes(CHANNELS_FIRST, type_) == 4 * np.prod(shape)


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
@pytest.mark.parametrize("planner", ["Best", "Bump", "WIC", "Recycle"])
def test_arenas_are_planned_for_the_layout_and_results_are_correct(executor: str, planner: str) -> None:
    options = Options(executor=executor, planner=planner)
    program = compile(Package((mixed(),)), options, (Padded(), *load_backends(["reference"])))
    assert {"padded", "reference"} <= {step.backend for step in program.main.steps}
    plan = program.memory_plan["host-padded"]
    graph = program.main.subgraph
    for operand, place in plan.placements.items():
        assert place.nbytes == PADDED.nbytes(graph.type(operand))
        assert place.offset + place.nbytes <= plan.size
    x = np.random.default_rng(7).standard_normal((6, 5)).astype(np.float32)
    third = np.tanh(4 * x.reshape(3, 10)).reshape(3, 1, 2, 5)[:, 0]
    expected = (2 * third + np.arange(10, dtype=np.float32).reshape(2, 5)).ravel()
    execution = Execution(program)
    for _ in range(2):
        (found,) = execution.run([x]).values()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("memory", [PADDED, CHANNELS_FIRST], ids=lambda m: m.name)
def test_a_reshape_in_memory_with_its_own_layout_is_a_copy(memory: object) -> None:
    assert isinstance(memory, OwnLayout)
    assert not isinstance(HOST, OwnLayout)
    program = compile(Package((mixed(),)), Options(), (Padded(), *load_backends(["reference"])))
    placements = program.memory_plan["host-padded"].placements
    assert all(place.root == operand for operand, place in placements.items())
