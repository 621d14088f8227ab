"""Random nested branches, some of which refuse their input, run natively and match the reference backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import DType, ExecutionError, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import If
from onert.ir.ops.control_flow.refuse import Refuse
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

ROW, OPEN = TensorType(DType.FLOAT32, (6,)), TensorType(DType.FLOAT32, (None,))
FUNCTIONS = (UnaryKind.ABS, UnaryKind.NEG, UnaryKind.RELU, UnaryKind.SQUARE)
SENTENCE = "{0} of {rows} cannot be split into %d"


class Drawn:
    """A model with random subgraphs: chains of functions, with Ifs among them."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.graphs: list[Subgraph | None] = []

    def model(self) -> Subgraphs:
        self._graph(0)
        return Subgraphs(tuple(graph for graph in self.graphs if graph is not None))

    def _graph(self, depth: int) -> int:
        number = len(self.graphs)
        self.graphs.append(None)
        b = Builder(f"graph {number}")
        x, switch = b.input(ROW), b.input(ROW)
        if depth and self.random.random() < 0.25:
            y = b.add(Refuse(SENTENCE, (OPEN,)))
        else:
            y = self._chain(b, x, switch, depth)
        self.graphs[number] = b.subgraph([y])
        return number

    def _chain(self, b: Builder, x: int, switch: int, depth: int) -> int:
        for _ in range(1 + int(self.random.integers(3))):
            x = b.add(Unary(FUNCTIONS[self.random.integers(len(FUNCTIONS))]), x)
        if depth < 3:
            sides = self._graph(depth + 1), self._graph(depth + 1)
            x = b.add(If(*sides, (ROW,), refusable=True), self._condition(b, switch), x, switch)
        return b.add(Binary(BinaryKind.ADD), x, switch)

    def _condition(self, b: Builder, switch: int) -> int:
        kind = int(self.random.integers(3))
        if kind == 0:
            return b.constant(bool(self.random.integers(2)))
        at = b.constant([int(self.random.integers(6))], dtype=DType.INT32)
        element = b.add(Slice(), switch, at, b.constant([1], dtype=DType.INT32))
        other = b.constant([0.0], dtype=DType.FLOAT32)
        return b.add(Comparison(ComparisonKind.GREATER), element, other)


def _outcome(execution: Any, inputs: list[Any]) -> tuple[list[Any], str]:
    """The results and no error, or no results and the error if the run is refused."""
    try:
        return [next(iter(execution.run(inputs).values()))], ""
    except ExecutionError as error:
        return [], str(error)


@pytest.mark.parametrize("seed", range(24))
def test_random_branches_are_native_and_match_the_reference_backend(seed: int) -> None:
    package = Package((Drawn(seed).model(),), "drawn")
    program = onert.compile(package)
    native, reference = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    random = np.random.default_rng(seed)
    for _ in range(8):
        inputs = [random.normal(0, 1, 6).astype(np.float32) for _ in range(2)]
        (mine, refused), (expected, also) = _outcome(native, inputs), _outcome(reference, inputs)
        assert (SENTENCE in refused) == (SENTENCE in also) == (not expected)
        for a, b in zip(mine, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    remaining = [o.op for routine in program.routines for o in routine.subgraph.operations if isinstance(o.op, If)]
    assert all(any(_refuses(program, side) for side in op.subgraphs) for op in remaining)


def _refuses(program: Any, index: int) -> bool:
    """Whether a subgraph contains a refusal, or a branch that remains because both its sides refuse."""
    return any(isinstance(o.op, Refuse | If) for o in program.routines[index].subgraph.operations)


def test_a_refusal_raises_its_sentence_and_the_next_run_succeeds() -> None:
    then, otherwise, main = Builder("then"), Builder("otherwise"), Builder()
    x = then.input(ROW)
    graphs = [then.subgraph([then.add(Unary(UnaryKind.NEG), x)])]
    otherwise.input(ROW)
    graphs.append(otherwise.subgraph([otherwise.add(Refuse(SENTENCE, (OPEN,)))]))
    condition, x = main.input(TensorType(DType.BOOL, ())), main.input(ROW)
    graphs.insert(0, main.subgraph([main.add(If(1, 2, (OPEN,), refusable=True), condition, x)]))
    program = onert.compile(Package((Subgraphs(tuple(graphs)),), "refusing"))
    assert [step.backend for step in program.main.steps] == ["llvm"]
    execution, row = onert.Execution(program), np.arange(6, dtype=np.float32)
    for _ in range(2):
        with pytest.raises(ExecutionError) as refused:
            execution.run([np.bool_(False), row])
        assert str(refused.value).endswith(SENTENCE)
        (found,) = execution.run([np.bool_(True), row]).values()
        np.testing.assert_array_equal(found, -row)
