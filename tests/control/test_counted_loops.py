"""Loops, branches and calls on tensors whose length only the run determines: native if a bound is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call, If, While
from onert.ir.ops.data_movement.fill import FirstEntries, Where
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.reduction.reduce import Reduce, Reduction

from .loops import ADD, LESS, MUL, ONE, floats, one_more

Array = np.ndarray[Any, Any]
ROWS = floats(None, 5)


def _int(b: Builder, *values: int) -> int:
    return b.constant(np.int32(values))


def _scalar(b: Builder, value: int) -> int:
    return b.constant(np.int32(value))


def _found(b: Builder, limit: float = 0) -> tuple[int, int]:
    """The rows of an input f32[7, 5] repeated for each of their elements above a limit, and how many rows that are."""
    x = b.input(floats(7, 5), "x")
    places = b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), x, b.constant(np.float32(limit))))
    first = b.add(Reshape(), b.add(Slice(), places, _int(b, 0, 0), _int(b, -1, 1)), _int(b, -1))
    rows = b.add(Gather(0), x, first)
    return rows, b.add(Gather(0), b.add(ShapeOf(), rows), _scalar(b, 0))


def _appended(b: Builder, rows: int, row: int) -> int:
    return b.add(Concat(0), rows, b.add(ExpandDims(), row, _scalar(b, 0)))


def _loop(
    top: Builder,
    starts: Sequence[int],
    types: Sequence[TensorType],
    body: Callable[[Builder, list[int]], list[int]],
    limit: int | None = None,
) -> tuple[Subgraph, Subgraph, Subgraph]:
    """A model of one loop that runs while its first operand is below the second, or below a limit."""
    results = top.add_many(While(1, 2, tuple(types)), *starts)
    cond, inner = Builder("condition"), Builder("body")
    given = [cond.input(t) for t in types]
    goes_on = cond.add(LESS, given[0], given[1] if limit is None else _scalar(cond, limit))
    following = body(inner, [inner.input(t) for t in types])
    return top.subgraph(results), cond.subgraph([goes_on]), inner.subgraph(following)


def _of_rows() -> tuple[Subgraph, ...]:
    """One round for each selected row: appends the running sum."""
    top = Builder()
    rows, number = _found(top)
    none, nothing = top.constant(np.zeros((0, 5), np.float32)), top.constant(np.zeros(5, np.float32))

    def body(b: Builder, g: list[int]) -> list[int]:
        total = b.add(ADD, g[4], b.add(Gather(0), g[2], g[0]))
        return [one_more(b, g[0]), g[1], g[2], _appended(b, g[3], total), total]

    types = [ONE, ONE, ROWS, ROWS, floats(5)]
    return _loop(top, [_scalar(top, 0), number, rows, none, nothing], types, body)


def _known_rounds() -> tuple[Subgraph, ...]:
    """Five rounds that each append one row to the selected ones."""
    top = Builder()
    rows, _ = _found(top)

    def body(b: Builder, g: list[int]) -> list[int]:
        return [one_more(b, g[0]), _appended(b, g[1], b.add(Reduce(Reduction.SUM), g[1], _int(b, 0)))]

    return _loop(top, [_scalar(top, 0), rows], [ONE, ROWS], body, 5)


def _found_rows_added() -> tuple[Subgraph, ...]:
    """Three rounds that each select the rows whose first element exceeds the round's number and append and prepend
    them.
    """
    top = Builder()
    rows, _ = _found(top)
    x = top.add(MUL, top.add(Concat(0), rows, rows), top.constant(np.float32(3)))

    def body(b: Builder, g: list[int]) -> list[int]:
        begins = b.add(Reshape(), b.add(Slice(), g[1], _int(b, 0, 0), _int(b, -1, 1)), _int(b, -1))
        above = b.add(Comparison(ComparisonKind.GREATER), begins, b.add(Cast(DType.FLOAT32), g[0]))
        found = b.add(Gather(0), g[1], b.add(Reshape(), b.add(Where(), above), _int(b, -1)))
        one = b.constant(np.full((1, 5), 9, np.float32))
        return [one_more(b, g[0]), g[1], b.add(Concat(0), g[2], found), b.add(Concat(0), found, g[3], one)]

    none = top.constant(np.zeros((0, 5), np.float32))
    return _loop(top, [_scalar(top, 0), x, none, none], [ONE, ROWS, ROWS, ROWS], body, 3)


def _filtered() -> tuple[Subgraph, ...]:
    """Three rounds that each keep the rows whose first element exceeds a limit."""
    top = Builder()
    rows, _ = _found(top, -0.5)

    def body(b: Builder, g: list[int]) -> list[int]:
        begins = b.add(Reshape(), b.add(Slice(), g[1], _int(b, 0, 0), _int(b, -1, 1)), _int(b, -1))
        limit = b.add(MUL, b.constant(np.float32(-0.3)), b.constant(np.float32(1)))
        places = b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), begins, limit))
        kept = b.add(Gather(0), g[1], b.add(Reshape(), places, _int(b, -1)))
        return [one_more(b, g[0]), b.add(MUL, kept, b.constant(np.float32(2)))]

    return _loop(top, [_scalar(top, 0), rows], [ONE, ROWS], body, 3)


def _counted_in_the_condition() -> tuple[Subgraph, ...]:
    """One round for each selected row, counted in the condition."""
    top = Builder()
    rows, _ = _found(top)
    types = [ONE, ROWS, floats(5)]
    start = top.constant(np.zeros(5, np.float32))
    results = top.add_many(While(1, 2, tuple(types)), _scalar(top, 0), rows, start)
    cond, inner = Builder("condition"), Builder("body")
    given = [cond.input(t) for t in types]
    goes_on = cond.add(LESS, given[0], cond.add(Gather(0), cond.add(ShapeOf(), given[1]), _scalar(cond, 0)))
    g = [inner.input(t) for t in types]
    following = [one_more(inner, g[0]), g[1], inner.add(ADD, g[2], inner.add(Gather(0), g[1], g[0]))]
    return top.subgraph(results), cond.subgraph([goes_on]), inner.subgraph(following)


def _branches(then: Callable[[Builder, int], int], otherwise: Callable[[Builder, int], int]) -> tuple[Subgraph, ...]:
    """One of two branches, by whether more than four rows were selected; its result is padded and reduced."""
    top = Builder()
    rows, number = _found(top)
    many = top.add(Comparison(ComparisonKind.GREATER), number, _scalar(top, 4))
    out = top.add(If(1, 2, (ROWS,)), many, rows)
    behind = top.add(Concat(0), top.constant(np.ones((1, 5), np.float32)), out)
    sides = []
    for write in (then, otherwise):
        b = Builder()
        sides.append(b.subgraph([write(b, b.input(ROWS))]))
    return top.subgraph([behind, top.add(Reduce(Reduction.MAX), behind, _int(top, 0))]), *sides


def _same(b: Builder, rows: int) -> int:
    return b.add(MUL, rows, rows)


def _pairs(top: Builder) -> int:
    """Pairwise differences of the selected rows' first elements: a square matrix."""
    first = top.add(Gather(1), _found(top)[0], _scalar(top, 0))
    return top.add(Binary(BinaryKind.SUB), *(top.add(ExpandDims(), first, _scalar(top, axis)) for axis in (0, 1)))


def _loop_of_pairs(body: Callable[[Builder, list[int]], list[int]]) -> tuple[Subgraph, ...]:
    top = Builder()
    return _loop(top, [_scalar(top, 0), _pairs(top)], [ONE, floats(None, None)], body, 3)


def _wider_pairs(b: Builder, g: list[int]) -> list[int]:
    """Pads one row and two columns of zeros."""
    return [one_more(b, g[0]), b.add(Pad(), b.add(MUL, g[1], g[1]), b.constant(np.int32([[0, 1], [2, 0]])))]


def _less_of_pairs(b: Builder, g: list[int]) -> list[int]:
    """Drops the first row and subtracts the number of columns from the others."""
    columns = b.add(Cast(DType.FLOAT32), b.add(Gather(0), b.add(ShapeOf(), g[1]), _scalar(b, 1)))
    left = b.add(StridedSlice(end_mask=3, begin_mask=2), g[1], _int(b, 1, 0), _int(b, 0, 0), _int(b, 1, 1))
    return [one_more(b, g[0]), b.add(Binary(BinaryKind.SUB), left, columns)]


def _branches_of_pairs() -> tuple[Subgraph, ...]:
    """The pairs, or two rows of forty numbers."""
    top = Builder()
    pairs = _pairs(top)
    number = top.add(Gather(0), top.add(ShapeOf(), pairs), _scalar(top, 0))
    type_ = floats(None, None)
    out = top.add(If(1, 2, (type_,)), top.add(Comparison(ComparisonKind.GREATER), number, _scalar(top, 4)), pairs)
    then, otherwise = Builder(), Builder()
    otherwise.input(type_)
    sums = top.add(Reduce(Reduction.SUM), out, _int(top, 0))
    sides = (
        then.subgraph([_same(then, then.input(type_))]),
        otherwise.subgraph([otherwise.constant(np.full((2, 40), 3, np.float32))]),
    )
    return top.subgraph([sums, out]), *sides


def _called() -> tuple[Subgraph, ...]:
    top = Builder()
    rows, _ = _found(top)
    out = top.add(Call(1, (ROWS,)), rows)
    b = Builder()
    return top.subgraph([top.add(Reduce(Reduction.SUM), out, _int(top, 0))]), b.subgraph([_same(b, b.input(ROWS))])


MODELS: dict[str, Callable[[], tuple[Subgraph, ...]]] = {
    "a round for each row": _of_rows,
    "rows added in rounds that are known": _known_rounds,
    "rows left out in each round": _filtered,
    "rows that are found added in each round": _found_rows_added,
    "rows counted in the condition": _counted_in_the_condition,
    "no rows or their squares": lambda: _branches(_same, lambda b, _: b.constant(np.zeros((0, 5), np.float32))),
    "two rows or their squares": lambda: _branches(_same, lambda b, _: b.constant(np.ones((2, 5), np.float32))),
    "twice the rows or the rows": lambda: _branches(lambda b, x: b.add(Concat(0), x, x), lambda b, x: x),
    "three rows or one": lambda: _branches(
        lambda b, _: b.constant(np.full((3, 5), 4, np.float32)), lambda b, _: b.constant(np.ones((1, 5), np.float32))
    ),
    "what is called": _called,
    "pairs that grow along both axes": lambda: _loop_of_pairs(_wider_pairs),
    "pairs that become fewer": lambda: _loop_of_pairs(_less_of_pairs),
    "pairs or a constant": _branches_of_pairs,
}


def _package(name: str) -> Package:
    return Package((Subgraphs(MODELS[name]()),), "counted")


def _given(share: float) -> Array:
    x = np.random.default_rng(5).uniform(0.1, 1, (7, 5)).astype(np.float32)
    x.reshape(-1)[round(share * x.size) :] *= -1
    return x


def _evaluated(program: onert.Program) -> set[type]:
    """The kinds of operations that do not run natively."""
    return {
        type(routine.subgraph.operations[at].op)
        for routine in program.routines
        for step in routine.steps
        if step.backend != "llvm"
        for at in step.sequence.operations
    }


@pytest.mark.parametrize("name", MODELS)
def test_data_dependent_lengths_run_natively(name: str, tmp_path: Path) -> None:
    package = _package(name)
    program = onert.compile(package, num_threads=1)
    assert _evaluated(program) <= {FirstEntries}
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    onert.bundle(package, tmp_path, cpu="native")
    loaded = onert.load_bundle(tmp_path)
    for share in (0.5, 0, 1, 0.1):
        theirs = list(expected.run([_given(share)]).values())
        for one, other in zip(execution.run([_given(share)]).values(), theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, strict=True)
        found = list(loaded.run([_given(share)]).values())
        for one, other in zip(found, theirs, strict=False):
            np.testing.assert_allclose(one[tuple(map(slice, other.shape))], other, rtol=1e-5)


@pytest.mark.parametrize("executor", ["Dataflow", "Parallel"])
@pytest.mark.parametrize("name", ["a round for each row", "two rows or their squares"])
def test_every_executor_runs_data_dependent_lengths(name: str, executor: str) -> None:
    package = _package(name)
    execution = onert.Execution(onert.compile(package, executor=executor, num_threads=2))
    expected = onert.Execution(onert.compile(package, backends=("reference",)))
    for share in (0.5, 0, 1):
        theirs = expected.run([_given(share)]).values()
        for one, other in zip(execution.run([_given(share)]).values(), theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, strict=True)


def _doubled(b: Builder, g: list[int]) -> list[int]:
    return [one_more(b, g[0]), b.add(Concat(0), g[1], g[1])]


def _longer(b: Builder, g: list[int]) -> list[int]:
    return [one_more(b, g[0]), b.add(Concat(0), g[1], b.constant(np.ones((1, 5), np.float32)))]


def test_loops_without_a_usable_bound_run_step_by_step() -> None:
    """Rows that double, a number of rounds that is an input, and rounds that append more than is worth computing."""
    top = Builder()
    asked, x = top.input(ONE, "rounds"), top.input(floats(2, 5), "x")

    def body(b: Builder, g: list[int]) -> list[int]:
        following, longer = _longer(b, [g[0], g[2]])
        return [following, g[1], longer]

    rounds = _loop(top, [_scalar(top, 0), asked, x], [ONE, ONE, ROWS], body)
    for graphs, inputs in (
        (rounds, [np.int32(3), _given(1)[:2]]),
        (_start(_doubled, 5), [_given(1)[:2]]),
        (_start(_longer, 1 << 20), None),
    ):
        package = Package((Subgraphs(graphs),), "open")
        program = onert.compile(package, num_threads=1)
        assert While in _evaluated(program)
        if inputs is not None:
            expected = onert.Execution(onert.compile(package, backends=("reference",))).run(inputs).values()
            for one, other in zip(onert.Execution(program).run(inputs).values(), expected, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)


def _start(body: Callable[[Builder, list[int]], list[int]], limit: int) -> tuple[Subgraph, ...]:
    top = Builder()
    return _loop(top, [_scalar(top, 0), top.input(floats(2, 5), "x")], [ONE, ROWS], body, limit)


def test_branches_with_large_results_are_not_merged() -> None:
    top = Builder()
    condition, x = top.input(TensorType(DType.BOOL, ()), "c"), top.input(TensorType(DType.FLOAT64, (1,)), "x")
    out = top.add(If(1, 2, (TensorType(DType.FLOAT64, (None, None)),)), condition, x)
    sides = []
    shapes = [(1 << 20, 1), (5, 1)]
    for shape in shapes:
        b = Builder()
        sides.append(b.subgraph([b.add(BroadcastTo(), b.input(TensorType(DType.FLOAT64, (1,))), _int(b, *shape))]))
    program = onert.compile(Package((Subgraphs((top.subgraph([out]), *sides)),), "open"), num_threads=1)
    assert If in _evaluated(program)
    execution = onert.Execution(program)
    assert [execution.run([np.bool_(c), np.ones(1)])["output_0"].shape for c in (True, False)] == shapes
