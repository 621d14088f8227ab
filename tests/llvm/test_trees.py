"""Ensembles of trees run natively, whatever leads to their leaves."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import Array
from onert.ir.ops.lookup.trees import Aggregation, TreeEnsemble
from onert_llvm.lower.lookup.trees import depth
from onert_llvm.target.isa import target

from .natively import by_meaning, natively, single, why_not

FEATURES, OUTPUTS = 5, 3


def _forest(seed: int, trees: int, levels: int) -> tuple[Array, ...]:
    """Whole trees of all kinds of tests, in the order of the operation's operands."""
    draw = np.random.default_rng(seed)
    inner, leaves = (1 << levels) - 1, 1 << levels
    nodes = trees * inner
    at = np.arange(nodes) % inner
    base = np.arange(nodes) // inner

    def follows(child: Array) -> Array:
        return np.where(child < inner, base * inner + child, -1 - (base * leaves + child - inner))

    counts = draw.integers(0, 4, trees * leaves)
    votes = int(counts.sum())
    return (
        draw.integers(0, FEATURES, nodes),
        draw.integers(0, 6, nodes),
        draw.integers(0, 2, nodes),
        draw.integers(-2, 3, nodes).astype(np.float32),
        follows(2 * at + 1),
        follows(2 * at + 2),
        np.arange(trees) * inner,
        np.concatenate([[0], np.cumsum(counts)]),
        draw.integers(0, OUTPUTS - 1, votes),  # nobody votes for the last
        draw.normal(0, 1, votes).astype(np.float32),
    )


@pytest.mark.parametrize("aggregation", list(Aggregation), ids=lambda a: a.name)
@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64])
def test_every_row_finds_its_leaves(aggregation: Aggregation, kind: type) -> None:
    x = np.random.default_rng(3).integers(-3, 4, (41, FEATURES)).astype(kind)
    if kind is np.float32:
        x[::7, ::2] = np.nan
    for trees, levels in ((1, 1), (9, 4)):
        parts = _forest(trees, trees, levels)
        graph, inputs = single(TreeEnsemble(OUTPUTS, aggregation), x, *parts, constant=range(1, 11))
        (expected,), (found,) = by_meaning(graph, inputs), natively(graph, inputs, target("native"))
        np.testing.assert_array_equal(found, expected)


def test_trees_that_never_end_are_not_walked_natively() -> None:
    parts = list(_forest(1, 2, 2))
    x = np.zeros((2, FEATURES), np.float32)
    parts[4] = parts[4].copy()
    parts[4][1] = 0
    graph, _ = single(TreeEnsemble(OUTPUTS), x, *parts, constant=range(1, 11))
    assert "circle" in str(why_not(graph))
    assert depth(parts[4], parts[5]) is None
    long = np.arange(1, 600)
    assert depth(np.append(long, -1), np.full(600, -1)) is None
    assert depth(np.append(long[:99], -1), np.full(100, -1)) == 100
