"""Random numbers go on from run to run natively, in process and in bundles, with the bits of their definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
from onert.compiler.legalize.decomposition import decompositions
from onert.compiler.state.generators import with_generators
from onert.ir import CallTypes, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.random_numbers import Distribution, Multinomial, Random
from onert.ir.ops.data_movement.reshape import ShapeOf
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.stablehlo.gather import BitGenerator, HloRngBitGenerator
from onert.ir.text import parse_subgraph, text

Array = np.ndarray[Any, Any]
LOGITS = np.float32([[0.2, 1.3, 2.5, -np.inf], [-np.inf, 1, -np.inf, 0.5], [0.1, 3, 0.1, 0.7]])


class _Kept:
    """The state of one execution."""

    def __init__(self) -> None:
        self.state: dict[Any, Any] = {}


def _package(*ops: Random) -> Package:
    """The sum of random numbers and the input, for each operation, in the input's shape."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (3, 7)), "x")
    return Package(
        (b.model([b.add(Binary(BinaryKind.ADD), x, b.add(op, b.add(ShapeOf(), x))) for op in ops]),), "drawn"
    )


def _classes(op: Multinomial, count: int) -> Package:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, LOGITS.shape), "logits")
    return Package((b.model([b.add(op, b.add(Unary(UnaryKind.ABS), x), b.constant(np.int32(count)))]),), "classes")


def _expected(op: Random | Multinomial, kept: Any, *given: Array) -> Array:
    inputs = tuple(TensorType(DType.from_numpy(x.dtype), x.shape) for x in given)
    return op.evaluate_in(kept, CallTypes(inputs, ()), *given)


def _is_native(program: onert.Program) -> bool:
    return all(step.backend == "llvm" for step in program.main.steps)


@pytest.mark.parametrize("seeds", [(1, 2), (-5, 1 << 40)])
@pytest.mark.parametrize("distribution", Distribution)
def test_seeds_say_which_numbers_come_in_which_run(
    distribution: Distribution, seeds: tuple[int, int], tmp_path: Path
) -> None:
    op, kept = Random(distribution, *seeds, 4), _Kept()
    package = _package(op)
    program = onert.compile(package, num_threads=1)
    assert _is_native(program)
    onert.bundle(package, tmp_path, cpu="native")
    execution, bundle = onert.Execution(program), onert.load_bundle(tmp_path)
    x = np.zeros((3, 7), np.float32)
    for _ in range(3):
        theirs = _expected(op, kept, np.int64(x.shape))
        for found in (execution.run([x]), bundle.run([x])):
            np.testing.assert_allclose(*found.values(), theirs, rtol=1e-6, strict=True)


def test_another_length_goes_on_where_the_last_ended() -> None:
    op, kept = Random(Distribution.UNIFORM, 3, 4), _Kept()
    execution = onert.Execution(onert.compile(_package(op)), state={})
    for size in (3, 5, 3, 8, 2):
        x = np.zeros((size, 7), np.float32)
        execution.set_input_shape("x", x.shape)
        np.testing.assert_array_equal(*execution.run([x]).values(), _expected(op, kept, np.int64(x.shape)))


def test_numbers_without_a_seed_are_others_in_each_execution_and_in_no_bundle(tmp_path: Path) -> None:
    package = _package(Random(Distribution.NORMAL))
    program, x = onert.compile(package), np.zeros((3, 7), np.float32)
    assert _is_native(program)
    first, second = onert.Execution(program), onert.Execution(program)
    found = [next(iter(each.run([x]).values())).copy() for each in (first, first, second)]
    assert all((found[a] != found[b]).any() for a, b in ((0, 1), (0, 2), (1, 2)))
    with pytest.raises(onert.CompileError, match="no seed"):
        onert.bundle(package, tmp_path)
    model = program.main.subgraph
    assert parse_subgraph(text(model)) == model


def test_one_generator_of_two_operations_serves_both_in_turn() -> None:
    op, kept = Random(Distribution.UNIFORM, 3, 4), _Kept()
    execution, x = onert.Execution(onert.compile(_package(op, op))), np.zeros((3, 7), np.float32)
    for _ in range(2):
        for found in execution.run([x]).values():
            np.testing.assert_array_equal(found, _expected(op, kept, np.int64(x.shape)))


@pytest.mark.parametrize("to", [DType.INT32, DType.INT64])
def test_classes_are_drawn_by_their_chances(to: DType, tmp_path: Path) -> None:
    op, kept = Multinomial(to, 5, 6), _Kept()
    package = _classes(op, 9)
    program = onert.compile(package, num_threads=1)
    assert _is_native(program)
    onert.bundle(package, tmp_path, cpu="native")
    execution, bundle = onert.Execution(program), onert.load_bundle(tmp_path)
    for logits in (LOGITS, LOGITS * 2, np.where(LOGITS > -1, LOGITS, np.inf)):
        theirs = _expected(op, kept, np.abs(logits), np.int32(9))
        for found in (execution.run([logits]), bundle.run([logits])):
            np.testing.assert_array_equal(*found.values(), theirs, strict=True)
    for each in (execution, bundle):
        with pytest.raises(onert.ExecutionError):
            each.run([np.full_like(LOGITS, np.nan)])


@pytest.mark.parametrize(("words", "refused"), [(1 << 22, False), ((1 << 22) + 1, True)])
def test_so_many_words_are_drawn_at_once_natively(words: int, refused: bool) -> None:
    """Each takes some hundred bytes in between."""
    op = HloRngBitGenerator(BitGenerator.PHILOX, DType.UINT32, (words,))
    state = TensorType(DType.UINT64, (3,))
    types = CallTypes((state,), (state, TensorType(DType.UINT32, (words,))))
    (decomposition,) = decompositions(HloRngBitGenerator)
    assert (decomposition.why_not(op, types) is not None) is refused


@pytest.mark.parametrize(("count", "refused"), [(1 << 10, False), ((1 << 10) + 1, True)])
def test_so_many_sums_of_chances_are_compared_natively(count: int, refused: bool) -> None:
    b = Builder()
    logits = b.input(TensorType(DType.FLOAT32, (1, 1 << 12)))
    graph = b.subgraph([b.add(Multinomial(DType.INT32, 5, 6), logits, b.constant(np.int32(count)))])
    assert bool(with_generators(graph, None).state) is not refused
