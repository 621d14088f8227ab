"""Ensembles of decision trees."""

from __future__ import annotations

from enum import Enum

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, operands, require
from onert.ir.types import CallTypes, TensorType


class Aggregation(Enum):
    """How the votes for a target are combined."""

    SUM = "sum"
    AVERAGE = "sum over the number of trees"
    MIN = "min"
    MAX = "max"


class Test(Enum):
    """How a node compares a feature with its threshold; the value is its code in the operand `tests`."""

    LESS_EQUAL = 0
    LESS = 1
    GREATER_EQUAL = 2
    GREATER = 3
    EQUAL = 4
    NOT_EQUAL = 5


_COMPARE = {
    Test.LESS_EQUAL: np.less_equal,
    Test.LESS: np.less,
    Test.GREATER_EQUAL: np.greater_equal,
    Test.GREATER: np.greater,
    Test.EQUAL: np.equal,
    Test.NOT_EQUAL: np.not_equal,
}


@frozen
class TreeEnsemble(Op):
    """An ensemble of decision trees: tests lead from each root to a leaf, whose votes are aggregated per target.

    - `x`: numbers [rows, features]
    - `features`, `tests`, `missing`: int64, one per node: the feature that it tests, how (see `Test`), and whether
      NaN passes
    - `numbers`: floats, the nodes' thresholds
    - `yes`, `no`: int64: the next node if the test passes or fails; leaf n is -1 - n
    - `roots`: int64: the first node of each tree, or its only leaf
    - `starts`: int64 [leaves + 1]: where the votes of each leaf begin in the next two operands
    - `targets`, `weights`: int64 and floats: the target of each vote, and its weight

    Result: [rows, outputs] of the weights' type; a target without votes has 0. Source: ONNX-ML's TreeEnsemble.
    """

    outputs: int
    aggregation: Aggregation = Aggregation.SUM

    params = operands("x features tests missing numbers yes no roots starts targets weights")

    def infer(self, x: TensorType, *trees: TensorType) -> TensorType:
        features, tests, missing, numbers, yes, no, roots, starts, targets, weights = trees
        real = x.dtype.is_float or x.dtype.is_integer
        require(real and x.rank == 2, f"x is {x}, expected numbers of 2 dimensions")
        for operand in (features, tests, missing, yes, no, roots, starts, targets):
            fits = operand.dtype is DType.INT64 and operand.rank == 1
            require(fits, f"a part of the trees is {operand}, expected i64 of rank 1")
        for operand in (numbers, weights):
            require(operand.dtype.is_float and operand.rank == 1, f"numbers are {operand}, expected floats of rank 1")
        for operand in (tests, missing, numbers, yes, no):
            require(shapes.compatible(operand.shape, features.shape), f"a part of the trees is {operand}")
        require(shapes.compatible(targets.shape, weights.shape), f"targets are {targets}, weights {weights}")
        require(0 <= self.outputs < 1 << 24, f"there are {self.outputs} targets")
        known = [p.value for p in (features, tests, yes, no, roots, starts, targets) if p.value is not None]
        if len(known) == 7:
            self._check(x.shape[1], *known)
        return weights.result((x.shape[0], self.outputs))

    def _check(self, width: int | None, *parts: Array) -> None:
        """Raises RuleError if a number refers to no feature, test, node, leaf, vote or target."""
        features, tests, yes, no, roots, starts, targets = parts
        nodes, leaves = len(features), len(starts) - 1
        _within(features, 0, (1 << 31) if width is None else width, "features")
        _within(tests, 0, len(Test), "tests")
        for children, name in ((yes, "nodes that follow"), (no, "nodes that follow"), (roots, "roots")):
            _within(children, -leaves, nodes, name)
        _within(targets, 0, self.outputs, "targets")
        require(leaves >= 0 and starts[0] == 0 and starts[-1] == len(targets), "the leaves do not cover all votes")
        require(bool((np.diff(starts) >= 0).all()), "the votes of a leaf begin after those of the next")

    def flops(self, types: CallTypes) -> int:
        rows, trees = types.input(0).shape[0] or 0, types.input(7).shape[0] or 0
        return 16 * rows * trees

    def rounds(self, types: CallTypes) -> int:
        return 16 * (types.input(7).shape[0] or 0)

    def evaluate(self, x: Array, *trees: Array) -> Array:
        features, tests, missing, numbers, yes, no, roots, starts, targets, weights = trees
        self._check(x.shape[1], features, tests, yes, no, roots, starts, targets)
        low = {Aggregation.MIN: np.inf, Aggregation.MAX: -np.inf}.get(self.aggregation, 0.0)
        out = np.full((len(x), self.outputs), low, np.float64)
        voted = np.zeros((len(x), self.outputs), np.bool_)
        rows = np.arange(len(x))
        real = x if x.dtype.kind == "f" else x.astype(np.float32)
        for root in roots:
            at = np.full(len(x), root, np.int64)
            for _ in range(len(features)):
                going = rows[at >= 0]
                if not len(going):
                    break
                node = at[going]
                value = real[going, features[node]]
                passed = _passes(tests[node], value, numbers[node]) | (np.isnan(value) & (missing[node] != 0))
                at[going] = np.where(passed, yes[node], no[node])
            require(bool((at < 0).all()), "a tree contains a cycle")
            leaf = -1 - at
            counts = starts[leaf + 1] - starts[leaf]
            row = np.repeat(rows, counts)
            first = np.repeat(np.cumsum(counts) - counts, counts)
            vote = np.repeat(starts[leaf], counts) + np.arange(len(row)) - first
            _add(self.aggregation, out, (row, targets[vote]), weights[vote])
            voted[row, targets[vote]] = True
        if self.aggregation is Aggregation.AVERAGE:
            out /= max(len(roots), 1)
        return np.where(voted, out, 0).astype(weights.dtype)


def _within(values: Array, low: int, high: int, name: str) -> None:
    inside = not values.size or (int(values.min()) >= low and int(values.max()) < high)
    require(inside, f"{name} go from {values.min(initial=0)} to {values.max(initial=0)}, expected {low} to {high - 1}")


def _passes(tests: Array, values: Array, numbers: Array) -> Array:
    found = np.zeros(len(values), np.bool_)
    for test, compare in _COMPARE.items():
        chosen = tests == test.value
        if chosen.any():
            found[chosen] = compare(values[chosen], numbers[chosen])
    return found


def _add(aggregation: Aggregation, out: Array, places: tuple[Array, Array], votes: Array) -> None:
    if aggregation is Aggregation.MIN:
        np.minimum.at(out, places, votes)
    elif aggregation is Aggregation.MAX:
        np.maximum.at(out, places, votes)
    else:
        np.add.at(out, places, votes)
