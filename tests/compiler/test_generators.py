"""Random numbers continue from run to run natively, in process and in bundles, with the bits of their definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
from onert.compiler.legalize.decomposition import decompositions
from onert.compiler.state.generators import with_generators
from onert.ir import CallTypes, DType, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call, Case, If, While
from onert.ir.ops.data_movement.fill import FirstEntries
from onert.ir.ops.data_movement.joining import Pack
from onert.ir.ops.data_movement.random_numbers import STATE, Distribution, Multinomial, MultinomialFrom, Random
from onert.ir.ops.data_movement.reshape import ShapeOf
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.stablehlo.gather import BitGenerator, HloRngBitGenerator
from onert.ir.text import parse_subgraph, text

from .counted_rows import evaluated

Array = np.ndarray[Any, Any]
LOGITS = np.float32([[0.2, 1.3, 2.5, -np.inf], [-np.inf, 1, -np.inf, 0.5], [0.1, 3, 0.1, 0.7]])


class _StateHolder:
    """The state of one execution."""

    def __init__(self) -> None:
        self.state: dict[Any, Any] = {}


def _package(*ops: Random) -> Package:
    """For each operation, the input plus random numbers of its shape."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (3, 7)), "x")
    return Package(
        (b.model([b.add(Binary(BinaryKind.ADD), x, b.add(op, b.add(ShapeOf(), x))) for op in ops]),), "drawn"
    )


def _classes(op: Multinomial, count: int) -> Package:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, LOGITS.shape), "logits")
    return Package((b.model([b.add(op, b.add(Unary(UnaryKind.ABS), x), b.constant(np.int32(count)))]),), "classes")


def _expected(op: Random | Multinomial, holder: Any, *given: Array) -> Array:
    inputs = tuple(TensorType(DType.from_numpy(x.dtype), x.shape) for x in given)
    return op.evaluate_in(holder, CallTypes(inputs, ()), *given)


def _is_native(program: onert.Program) -> bool:
    return all(step.backend == "llvm" for step in program.main.steps)


@pytest.mark.parametrize("seeds", [(1, 2), (-5, 1 << 40)])
@pytest.mark.parametrize("distribution", Distribution)
def test_seeds_determine_the_numbers_of_each_run(
    distribution: Distribution, seeds: tuple[int, int], tmp_path: Path
) -> None:
    op, holder = Random(distribution, *seeds, 4), _StateHolder()
    package = _package(op)
    program = onert.compile(package, num_threads=1)
    assert _is_native(program)
    onert.bundle(package, tmp_path, cpu="native")
    execution, bundle = onert.Execution(program), onert.load_bundle(tmp_path)
    x = np.zeros((3, 7), np.float32)
    for _ in range(3):
        theirs = _expected(op, holder, np.int64(x.shape))
        for found in (execution.run([x]), bundle.run([x])):
            np.testing.assert_allclose(*found.values(), theirs, rtol=1e-6, strict=True)


def test_a_run_of_another_length_continues_the_sequence_of_numbers() -> None:
    op, holder = Random(Distribution.UNIFORM, 3, 4), _StateHolder()
    execution = onert.Execution(onert.compile(_package(op)), state={})
    for size in (3, 5, 3, 8, 2):
        x = np.zeros((size, 7), np.float32)
        execution.set_input_shape("x", x.shape)
        np.testing.assert_array_equal(*execution.run([x]).values(), _expected(op, holder, np.int64(x.shape)))


def test_numbers_without_a_seed_differ_in_each_execution_and_are_rejected_in_bundles(tmp_path: Path) -> None:
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


def test_two_operations_take_turns_with_a_shared_generator(tmp_path: Path) -> None:
    op, holder = Random(Distribution.UNIFORM, 3, 4), _StateHolder()
    package, x = _package(op, op), np.zeros((3, 7), np.float32)
    program = onert.compile(package)
    assert _is_native(program)
    onert.bundle(package, tmp_path, cpu="native")
    execution, bundle = onert.Execution(program), onert.load_bundle(tmp_path)
    for _ in range(2):
        runs = (execution.run([x]), bundle.run([x]))
        for both in zip(*(found.values() for found in runs), strict=True):
            theirs = _expected(op, holder, np.int64(x.shape))
            for found in both:
                np.testing.assert_array_equal(found, theirs)


_ONE, _FLOATS = TensorType(DType.INT32, ()), TensorType(DType.FLOAT32, (2,))
_DRAWN = Random(Distribution.UNIFORM, 5, 6)


def _body(b: Builder, x: int) -> int:
    return b.add(Binary(BinaryKind.ADD), x, b.add(_DRAWN, b.constant(np.int32([2]))))


def _called_graph() -> Subgraph:
    b = Builder()
    return b.subgraph([_body(b, b.input(_FLOATS))])


def _same_graph() -> Subgraph:
    b = Builder()
    return b.subgraph([b.add(Unary(UnaryKind.ABS), b.input(_FLOATS))])


def _looping() -> tuple[Subgraph, Subgraph]:
    """The condition and body of a loop that counts up to a number and adds random numbers to its state."""
    bs = Builder(), Builder()
    ends = [[b.input(_ONE), b.input(_ONE), b.input(_FLOATS)] for b in bs]
    (i, n, _), (j, m, x) = ends
    condition = bs[0].subgraph([bs[0].add(Comparison(ComparisonKind.LESS), i, n)])
    following = bs[1].add(Binary(BinaryKind.ADD), j, bs[1].constant(np.int32(1)))
    return condition, bs[1].subgraph([following, m, bs[1].add(Call(3, (_FLOATS,)), x)])


def _drawing_in_a(kind: str) -> Package:
    """An entry that draws after a subgraph that may have drawn."""
    b = Builder()
    n, x = b.input(_ONE, "n"), b.input(_FLOATS, "x")
    if kind == "loop":
        zero = b.constant(np.int32(0))
        y = b.add_many(While(1, 2, (_ONE, _ONE, _FLOATS)), zero, n, x)[2]
    elif kind == "branch":
        y = b.add(If(3, 4, (_FLOATS,)), b.add(Comparison(ComparisonKind.GREATER), n, b.constant(np.int32(2))), x)
    else:
        y = b.add(Case((3, 4, 3), (_FLOATS,)), n, x)
    entry = b.subgraph([y, _body(b, x)])
    return Package((Subgraphs((entry, *_looping(), _called_graph(), _same_graph())),), kind)


@pytest.mark.parametrize(("kind", "drawn"), [("loop", (0, 3, 1)), ("branch", (0, 1, 0)), ("case", (1, 1, 0))])
def test_subgraphs_and_their_callers_take_turns_with_a_generator(
    kind: str, drawn: Sequence[int], tmp_path: Path
) -> None:
    package, holder = _drawing_in_a(kind), _StateHolder()
    program = onert.compile(package, num_threads=1)
    assert _is_native(program)
    onert.bundle(package, tmp_path, cpu="native")
    execution, bundle = onert.Execution(program), onert.load_bundle(tmp_path)
    for n, times in zip((0, 3, 1), drawn, strict=True):
        x, given = np.float32([0.25, 0.5]), [np.int32(n), np.float32([0.25, 0.5])]
        theirs = [x]
        for _ in range(times):
            theirs[0] = theirs[0] + _expected(_DRAWN, holder, np.int32([2]))
        theirs.append(x + _expected(_DRAWN, holder, np.int32([2])))
        for found in (execution.run(given), bundle.run(given)):
            for one, other in zip(found.values(), theirs, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)


def test_a_model_that_draws_in_a_loop_condition_is_not_rewritten() -> None:
    """A condition returns nothing but whether the loop continues."""
    b, c, d = Builder(), Builder(), Builder()
    x = b.add(While(1, 2, (_FLOATS,)), b.input(_FLOATS))
    drawn = c.add(Reduce(Reduction.SUM), _body(c, c.input(_FLOATS)), c.constant(np.int32([0])))
    condition = c.subgraph([c.add(Comparison(ComparisonKind.LESS), drawn, c.constant(np.float32(9)))])
    body = d.subgraph([_body(d, d.input(_FLOATS))])
    model = Subgraphs((b.subgraph([x]), condition, body))
    assert with_generators(model, 0) is model
    execution, holder = onert.Execution(onert.compile(Package((model,), "drawn"))), _StateHolder()
    (found,) = execution.run([np.zeros(2, np.float32)]).values()
    theirs = np.zeros(2, np.float32)
    while (theirs + _expected(_DRAWN, holder, np.int32([2]))).sum() < 9:
        theirs = theirs + _expected(_DRAWN, holder, np.int32([2]))
    np.testing.assert_array_equal(found, theirs)


_SHAPES: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    "rows": lambda n, m: (n, 3),
    "columns": lambda n, m: (2, n),
    "both": lambda n, m: (n, 3, m),
    "a row": lambda n, m: (1, n),
}


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("distribution", Distribution)
def test_random_tensors_of_a_computed_shape_are_native(distribution: Distribution, shape: str, tmp_path: Path) -> None:
    op, holder, b = Random(distribution, 7, 8), _StateHolder(), Builder()
    ends = [b.input(TensorType(DType.INT32, ()), name) for name in "nm"]
    few = [b.add(Binary(BinaryKind.MINIMUM), each, b.constant(np.int32(6))) for each in ends]
    sizes = [b.constant(np.int32(d)) if d < 4 else few[d - 8] for d in _SHAPES[shape](8, 9)]
    package = Package((b.model([b.add(op, b.add(Pack(0), *sizes))]),), "drawn")
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries}
    onert.bundle(package, tmp_path, cpu="native")
    execution, bundle = onert.Execution(program), onert.load_bundle(tmp_path)
    for n, m in ((5, 2), (0, 3), (6, 6), (1, 4)):
        wanted = _SHAPES[shape](n, m)
        theirs = _expected(op, holder, np.int32(wanted))
        given = [np.int32(n), np.int32(m)][: len(package.models[0].primary.inputs)]
        (found,) = execution.run(given).values()
        np.testing.assert_allclose(found, theirs, rtol=1e-6, strict=True)
        whole = bundle.run(given)[program.outputs[0].name]
        np.testing.assert_allclose(whole[tuple(map(slice, wanted))], theirs, rtol=1e-6, strict=True)


@pytest.mark.parametrize("counted", ["rows", "classes", "samples"])
def test_classes_of_a_computed_number_of_entries_are_drawn_natively(counted: str) -> None:
    """The number of rows, the number of classes, or the number of samples is computed at run time."""
    op, holder, b = Multinomial(DType.INT32, 5, 6), _StateHolder(), Builder()
    x, n = b.input(TensorType(DType.FLOAT32, (4, 5)), "x"), b.input(TensorType(DType.INT32, ()), "n")
    most = b.add(
        Binary(BinaryKind.MINIMUM),
        b.add(Binary(BinaryKind.MAXIMUM), n, b.constant(np.int32(0))),
        b.constant(np.int32(4)),
    )
    one, few = b.constant(np.int32(1)), b.constant(np.int32(3))
    sizes = {"rows": (most, b.constant(np.int32(5))), "classes": (one, most), "samples": (one, b.constant(np.int32(5)))}
    part = b.add(Slice(), x, b.constant(np.int32([0, 0])), b.add(Pack(0), *sizes[counted]))
    program = onert.compile(Package((b.model([b.add(op, part, most if counted == "samples" else few)]),), "classes"))
    assert evaluated(program) <= {FirstEntries}
    execution = onert.Execution(program)
    given = np.random.default_rng(3).standard_normal((4, 5)).astype(np.float32)
    for n_ in (2, 4, 1, 3):
        logits = given[:n_] if counted == "rows" else given[:1, : n_ if counted == "classes" else 5]
        theirs = _expected(op, holder, logits, np.int32(n_ if counted == "samples" else 3))
        np.testing.assert_array_equal(*execution.run([given, np.int32(n_)]).values(), theirs, strict=True)


@pytest.mark.parametrize("to", [DType.INT32, DType.INT64])
def test_classes_are_drawn_by_their_probabilities(to: DType, tmp_path: Path) -> None:
    op, holder = Multinomial(to, 5, 6), _StateHolder()
    package = _classes(op, 9)
    program = onert.compile(package, num_threads=1)
    assert _is_native(program)
    onert.bundle(package, tmp_path, cpu="native")
    execution, bundle = onert.Execution(program), onert.load_bundle(tmp_path)
    for logits in (LOGITS, LOGITS * 2, np.where(LOGITS > -1, LOGITS, np.inf)):
        theirs = _expected(op, holder, np.abs(logits), np.int32(9))
        for found in (execution.run([logits]), bundle.run([logits])):
            np.testing.assert_array_equal(*found.values(), theirs, strict=True)
    for each in (execution, bundle):
        with pytest.raises(onert.ExecutionError):
            each.run([np.full_like(LOGITS, np.nan)])


@pytest.mark.parametrize(("words", "rejected"), [(1 << 22, False), ((1 << 22) + 1, True)])
def test_only_a_limited_number_of_random_words_is_drawn_natively(words: int, rejected: bool) -> None:
    """Each word needs about a hundred bytes of intermediate results."""
    op = HloRngBitGenerator(BitGenerator.PHILOX, DType.UINT32, (words,))
    state = TensorType(DType.UINT64, (3,))
    types = CallTypes((state,), (state, TensorType(DType.UINT32, (words,))))
    (decomposition,) = decompositions(HloRngBitGenerator)
    assert (decomposition.why_not(op, types) is not None) is rejected


@pytest.mark.parametrize(("count", "rejected"), [(1 << 10, False), ((1 << 10) + 1, True)])
def test_only_a_limited_number_of_cumulative_probabilities_is_compared_natively(count: int, rejected: bool) -> None:
    inputs = STATE, TensorType(DType.FLOAT32, (1, 1 << 12)), TensorType(DType.INT32, ())
    types = CallTypes(inputs, (STATE, TensorType(DType.INT32, (1, count))))
    (decomposition,) = decompositions(MultinomialFrom)
    assert (decomposition.why_not(MultinomialFrom(DType.INT32), types) is not None) is rejected
