"""After a failed run, state is what it was before, whatever fails and whatever runs the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import onert
from onert.ir import Array, DType, OnertError, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.data_movement.gather import Gather, GatherNd, PutRow
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

ROW = TensorType(DType.FLOAT32, (1, 4))
KEY = ("variable", "", "sum")
ONES = np.ones((1, 4), np.float32)


@frozen
class Failing:
    """Adds operations on the sum that fail for a certain index, natively or not."""

    draft: Callable[[Builder, int, int], int]
    good: int = 1
    bad: int = 9


FAILING = {
    "gather": Failing(lambda b, x, index: b.add(Gather(1), x, index)),
    "gather_nd": Failing(
        lambda b, x, index: b.add(GatherNd(), b.add(Slice(), x, *_constants(b, (0, 0), (1, 4))), _pair(b, index))
    ),
    "slice": Failing(lambda b, x, index: b.add(Slice(), x, _pair(b, index), b.constant(np.int32([1, 1])))),
}


def _constants(b: Builder, *values: tuple[int, ...]) -> list[int]:
    return [b.constant(np.array(v, np.int32)) for v in values]


def _pair(b: Builder, index: int) -> int:
    """The index of an element of the only row."""
    return b.add(Concat(0), b.constant(np.int32([0])), index)


def _variable(failing: Failing) -> tuple[Package, dict[Any, Any]]:
    """A resource variable incremented by an input, followed by an operation that may fail."""
    b = Builder()
    x, index = b.input(ROW, "x"), b.input(TensorType(DType.INT32, (1,)), "index")
    handle = b.add(VarHandle("", "sum"))
    (before,) = b.add_many(ReadVariable((ROW,)), handle)
    total = b.add(Binary(BinaryKind.ADD), before, x)
    b.add_many(AssignVariable(), handle, total)
    failed = failing.draft(b, total, index)
    return Package((Subgraphs((b.subgraph([total, failed]),)),), "m"), {KEY: np.zeros((1, 4), np.float32)}


def _operand(failing: Failing) -> tuple[Package, dict[Any, Any]]:
    """The same with a variable tensor."""
    b = Builder()
    x, index = b.input(ROW, "x"), b.input(TensorType(DType.INT32, (1,)), "index")
    before = b.variable(ROW, "sum")
    total = b.add(Binary(BinaryKind.ADD), before, x)
    b.update(before, total)
    failed = failing.draft(b, total, index)
    return Package((Subgraphs((b.subgraph([total, failed]),)),), "m"), {}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("state", [_variable, _operand], ids=["resource variable", "variable tensor"])
@pytest.mark.parametrize("backends", [("llvm",), ("reference",)], ids=lambda names: names[0])
@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_failed_run_leaves_state_unchanged(
    name: str,
    state: Callable[[Failing], tuple[Package, dict[Any, Any]]],
    backends: tuple[str, ...],
    executor: str,
    threads: int,
) -> None:
    failing = FAILING[name]
    package, variables = state(failing)
    program = onert.compile(
        package, executor=executor, num_threads=threads, backends=(*backends, "reference", "builtin")
    )
    execution = onert.Execution(program, state=variables)

    def run(index: int) -> Array:
        return next(iter(execution.run([ONES, np.int32([index])]).values()))

    for done in (1, 2):
        np.testing.assert_array_equal(run(failing.good), done * ONES)
    for done in (3, 4):
        for _ in range(2):
            with pytest.raises(OnertError, match="9"):
                run(failing.bad)
        np.testing.assert_array_equal(run(failing.good), done * ONES)


def _cache() -> Package:
    """A resource variable with a row that a run overwrites in place, followed by an operation that may fail."""
    b = Builder()
    x, at, index = b.input(ROW, "x"), *(b.input(TensorType(DType.INT32, (1,)), name) for name in ("at", "index"))
    handle = b.add(VarHandle("", "cache"))
    (before,) = b.add_many(ReadVariable((TensorType(DType.FLOAT32, (3, 4)),)), handle)
    cache = b.add(PutRow(), before, x, at)
    b.add_many(AssignVariable(), handle, cache)
    rows = b.add(Binary(BinaryKind.ADD), cache, b.constant(np.float32(0.5)))
    return Package((Subgraphs((b.subgraph([rows, b.add(Gather(1), rows, index)]),)),), "m")


@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_executions_that_share_state_see_nothing_of_a_failed_run(backends: tuple[str, ...], executor: str) -> None:
    shared: dict[Any, Any] = {("variable", "", "cache"): np.zeros((3, 4), np.float32)}
    program = onert.compile(_cache(), executor=executor, num_threads=1, backends=backends)
    failing, other = (onert.Execution(program, state=shared) for _ in range(2))
    expected = np.full((3, 4), 0.5, np.float32)
    for value in (1, 2, 3):
        expected[value % 3] = value + 0.5
        given = [value * ONES, np.int32([value % 3])]
        np.testing.assert_array_equal(next(iter(other.run([*given, np.int32([1])]).values())), expected)
        with pytest.raises(OnertError, match="9"):
            failing.run([7 * ONES, np.int32([(value + 1) % 3]), np.int32([9])])
        np.testing.assert_array_equal(next(iter(other.run([*given, np.int32([1])]).values())), expected)


@pytest.mark.parametrize("name", ["gather", "gather_nd"])  # the slice has an unknown shape before the run
@pytest.mark.parametrize("threads", [1, 2])
def test_a_bundle_entry_that_returns_an_error_leaves_state_unchanged(name: str, threads: int, tmp_path: Path) -> None:
    failing = FAILING[name]
    package, _ = _operand(failing)
    onert.bundle(package, tmp_path, threads=threads)
    loaded = onert.load_bundle(tmp_path)

    def run(index: int) -> Array:
        return next(iter(loaded.run([ONES, np.int32([index])]).values()))

    np.testing.assert_array_equal(run(failing.good), ONES)
    for done in (2, 3):
        with pytest.raises(onert.ExecutionError, match="returned error code"):
            run(failing.bad)
        np.testing.assert_array_equal(run(failing.good), done * ONES)
