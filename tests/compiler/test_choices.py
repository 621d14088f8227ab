"""Choices among several graphs (Case) run natively, in process and in bundles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import onert
from onert.compiler.rewrite.choices import MOST_PORTS, with_binary_choices
from onert.ir import DType, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Case
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

_FLOATS = TensorType(DType.FLOAT32, (3,))
_KINDS: dict[UnaryKind, Callable[[np.ndarray], np.ndarray]] = {
    UnaryKind.ABS: np.abs,
    UnaryKind.NEG: np.negative,
    UnaryKind.SQUARE: np.square,
    UnaryKind.FLOOR: np.floor,
    UnaryKind.CEIL: np.ceil,
}


def _branch(kind: UnaryKind) -> Subgraph:
    b = Builder()
    return b.subgraph([b.add(Unary(kind), b.input(_FLOATS))])


def _choice(count: int, shape: tuple[int, ...] = ()) -> Subgraphs:
    b = Builder()
    index, x = b.input(TensorType(DType.INT32, shape), "index"), b.input(_FLOATS, "x")
    entry = b.subgraph([b.add(Case(tuple(range(1, count + 1)), (_FLOATS,)), index, x)])
    return Subgraphs((entry, *(_branch(tuple(_KINDS)[at % len(_KINDS)]) for at in range(count))))


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_case_runs_the_selected_branch_and_the_last_one_for_any_other_index(
    count: int, shape: tuple[int, ...], tmp_path: Path
) -> None:
    package = Package((_choice(count, shape),), "choice")
    program = onert.compile(package, num_threads=1)
    assert all(step.backend == "llvm" for step in program.main.steps)
    onert.bundle(package, tmp_path, cpu="native")
    runs = [onert.Execution(program).run, onert.load_bundle(tmp_path).run]
    x = np.float32([-1.5, 0.25, 2])
    for index in (0, 1, 2, 4, 5, -1, 1 << 20, -(1 << 31)):
        expected = tuple(_KINDS.values())[index if 0 <= index < count else count - 1](x)
        for run in runs:
            np.testing.assert_array_equal(*run([np.full(shape, index, np.int32), x]).values(), expected, strict=True)


def test_a_case_with_too_many_branches_is_not_rewritten() -> None:
    model = _choice(MOST_PORTS // 3 + 1)
    assert with_binary_choices(model) is model
    assert with_binary_choices(_choice(3)) is not model
