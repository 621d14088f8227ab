"""Similar operations whose results are concatenated become one operation if the bits stay the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from llvm.natively import evaluated

from onert.compiler.passes.join_siblings import FEWEST, join_siblings
from onert.compiler.passes.remove_dead import remove_dead
from onert.ir import DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.reduction.reduce import Reduce, Reduction


def _picked(b: Builder, x: int, columns: Sequence[int], axis: int = 1) -> int:
    return b.add(Gather(axis), x, b.constant(np.array(columns, np.int32)))


def _reduced(b: Builder, x: int, kind: Reduction = Reduction.SUM) -> int:
    return b.add(Reduce(kind, keep_dims=True), x, b.constant(np.int32([-1])))


def _begun() -> tuple[Builder, int]:
    b = Builder()
    return b, b.input(TensorType(DType.FLOAT32, (3, 6)), "x")


def _joined(graph: Subgraph) -> list[str]:
    """The kinds of operations left after two rounds, which compute the same values."""
    after = graph
    for _ in range(2):
        after = remove_dead(join_siblings.checked(after))
    x = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    for found, expected in zip(evaluated(after, [x]), evaluated(graph, [x]), strict=True):
        np.testing.assert_array_equal(found, expected)
    return [type(each.op).__name__ for each in after.operations]


def test_gathers_of_columns_of_one_tensor_are_joined() -> None:
    b, x = _begun()
    graph = b.model([b.add(Concat(-1), x, *(_picked(b, x, [i, 5]) for i in range(FEWEST)))]).primary
    assert _joined(graph) == ["Gather", "Concat"]


def test_reductions_of_rows_of_the_same_width_are_joined() -> None:
    b, x = _begun()
    pairs = [_reduced(b, _picked(b, x, [i, 5 - i])) for i in range(FEWEST)]
    singles = [_reduced(b, _picked(b, x, [i])) for i in range(FEWEST)]
    graph = b.model([b.add(Concat(1), *singles, *pairs)]).primary
    assert _joined(graph) == ["Gather", "Concat", "Reshape", "Reduce"] * 2 + ["Concat"]


@pytest.mark.parametrize("case", ["few", "rows", "kinds", "read elsewhere", "other axis"])
def test_operations_that_differ_are_not_joined(case: str) -> None:
    b, x = _begun()
    count, axis = FEWEST - (case == "few"), 0 if case == "other axis" else 1
    kinds = [Reduction.SUM, Reduction.PROD] * FEWEST if case == "kinds" else [Reduction.SUM] * FEWEST
    widths = range(1, 1 + FEWEST) if case == "rows" else [2] * FEWEST
    parts = [_picked(b, x, range(width)) for width in widths][:count]
    parts = [_reduced(b, part, kind) for part, kind in zip(parts, kinds, strict=False)]
    read = parts if case == "read elsewhere" else []
    graph = b.model([b.add(Concat(axis), *parts), *read]).primary
    assert join_siblings(graph) is graph
