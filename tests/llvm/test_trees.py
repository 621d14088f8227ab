"""Tree ensembles run natively with every kind of test."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from onert.ir import Array
from onert.ir.ops.lookup.trees import Aggregation, TreeEnsemble
from onert_llvm.kernels.lookup.trees import CHILD, RECORD
from onert_llvm.schedule.tree_records import records
from onert_llvm.target.isa import target

from .natively import evaluated, natively, single, why_not

FEATURES, OUTPUTS = 5, 3


def _forest(seed: int, trees: int, levels: int) -> tuple[Array, ...]:
    """Complete trees with all kinds of tests, in the order of the operation's operands."""
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
        draw.choice([-np.inf, -2, -1, 0, 1, 2, np.inf], nodes).astype(np.float32),
        follows(2 * at + 1),
        follows(2 * at + 2),
        np.arange(trees) * inner,
        np.concatenate([[0], np.cumsum(counts)]),
        draw.integers(0, OUTPUTS - 1, votes),  # the last output gets no votes
        draw.normal(0, 1, votes).astype(np.float32),
    )


@pytest.mark.parametrize("aggregation", list(Aggregation), ids=lambda a: a.name)
@pytest.mark.parametrize(
    ("kind", "numbers", "weights"),
    [
        (np.float32, np.float32, np.float32),
        (np.int32, np.float32, np.float32),
        (np.int64, np.float32, np.float32),
        (np.float64, np.float64, np.float64),
        (np.float64, np.float32, np.float32),
        (np.float32, np.float64, np.float32),
        (np.int32, np.float64, np.float64),
        (np.float32, np.float32, np.float64),
    ],
)
def test_tree_ensembles_match_their_definition(
    aggregation: Aggregation, kind: type, numbers: type, weights: type
) -> None:
    x = np.random.default_rng(3).integers(-3, 4, (41, FEATURES)).astype(kind)
    if np.dtype(kind).kind == "f":
        x[::7, ::2] = np.nan
        most = np.finfo(kind).max
        x[1:5] = np.array([[np.inf], [-np.inf], [most], [-most]])
        x[5:7] = np.nextafter(x[5:7], np.array([[-1], [1]], kind))
    for trees, levels in ((1, 1), (9, 4)):
        parts = [*_forest(trees, trees, levels)]
        parts[3], parts[9] = parts[3].astype(numbers), parts[9].astype(weights) + weights(1e-9)
        graph, inputs = single(TreeEnsemble(OUTPUTS, aggregation), x, *parts, constant=range(1, 11))
        (expected,), (found,) = evaluated(graph, inputs), natively(graph, inputs, target("native"))
        np.testing.assert_array_equal(found, expected)


def test_cyclic_and_very_deep_trees_are_not_native() -> None:
    parts = list(_forest(1, 2, 2))
    x = np.zeros((2, FEATURES), np.float32)
    parts[4] = parts[4].copy()
    parts[4][1] = 0
    graph, _ = single(TreeEnsemble(OUTPUTS), x, *parts, constant=range(1, 11))
    assert "cycle" in str(why_not(graph))
    assert _steps(np.append(np.arange(1, 600), -1)) is None
    assert _steps(np.append(np.arange(1, 100), -1)) == 100


def _steps(follows: Array) -> int | None:
    """The number of steps of one tree in which each node leads to one other node, or to the only leaf."""
    zeros = np.zeros(len(follows), np.int64)
    parts = {"features": zeros, "tests": zeros, "missing": zeros, "numbers": zeros.astype(np.float32)}
    parts |= {"yes": follows, "no": np.full(len(follows), -1), "roots": zeros[:1], "starts": np.arange(2)}
    made = records(parts, None)
    return None if made is None else int(made.steps.max())


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_leaves_with_one_vote_store_it(real: Any) -> None:
    parts = [*_forest(2, 9, 4)]
    leaves = len(parts[7]) - 1
    weights = np.random.default_rng(0).normal(0, 1, leaves).astype(real)
    parts[3], parts[7:] = parts[3].astype(real), [np.arange(leaves + 1), np.zeros(leaves, np.int64), weights]
    x = np.random.default_rng(4).normal(0, 1, (41, FEATURES)).astype(real)
    graph, inputs = single(TreeEnsemble(1), x, *parts, constant=range(1, 11))
    (expected,), (found,) = evaluated(graph, inputs), natively(graph, inputs, target("native"))
    np.testing.assert_array_equal(found, expected)


def test_a_shared_subtree_is_stored_once() -> None:
    count = 30
    follows = np.append(np.arange(1, count), -1)
    zeros = np.zeros(count, np.int64)
    parts = {"features": zeros, "tests": zeros, "missing": zeros, "numbers": zeros.astype(np.float32)}
    parts |= {"yes": follows, "no": follows, "roots": zeros[:3], "starts": np.arange(2)}
    made = records(parts, None)
    assert made is not None
    assert len(made.nodes) == 3 + 2 * count
    assert made.nodes[:, CHILD].max() < RECORD * len(made.nodes)
    x = np.zeros((40, 1), np.float32)
    given = [parts[name] for name in ("features", "tests", "missing", "numbers", "yes", "no", "roots", "starts")]
    inputs = (x, *given, np.zeros(1, np.int64), np.ones(1, np.float32))
    graph, arrays = single(TreeEnsemble(1), *inputs, constant=range(1, 11))
    (found,) = natively(graph, arrays, target("native"))
    assert found.tolist() == [[3]] * 40


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_nan_takes_the_branch_that_its_node_specifies(real: Any) -> None:
    """Every kind of test, with both branches for NaN, at and around its threshold."""
    least = np.nextafter(real(0), real(1))
    line = np.array([-np.inf, -1, np.nextafter(real(-1), real(0)), -0.0, 0.0, least, 1, np.inf, np.nan], real)
    kinds = list(product(range(6), range(2), np.array([-1, 0, np.finfo(real).max], real)))
    tests, missing, numbers = (np.array(part) for part in zip(*kinds, strict=True))
    zeros, at = np.zeros(len(kinds), np.int64), np.arange(len(kinds))
    starts, votes = np.arange(2 * len(kinds) + 1), (2.0 ** np.arange(2)).astype(np.float32)
    targets, weights = np.repeat(at, 2), np.tile(votes, len(kinds))
    nodes = (zeros, tests, missing, numbers.astype(real), -1 - 2 * at, -2 - 2 * at)
    x = np.tile(line, 3).reshape(-1, 1)
    graph, inputs = single(TreeEnsemble(len(kinds)), x, *nodes, at, starts, targets, weights, constant=range(1, 11))
    (expected,), (found,) = evaluated(graph, inputs), natively(graph, inputs, target("native"))
    assert set(expected.reshape(-1).tolist()) == {1.0, 2.0}
    np.testing.assert_array_equal(found, expected)
