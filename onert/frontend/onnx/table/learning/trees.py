"""Tree ensembles in their three encodings, each as one operation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from attrs import define, field

from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import Array, DType, ModelError
from onert.ir.ops.lookup.trees import Aggregation, Test, TreeEnsemble

from .scores import TRANSFORMS, best, labelled, labels, transformed

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_MEMBER = len(_MODES)
_AGGREGATIONS = {
    "AVERAGE": Aggregation.AVERAGE,
    "SUM": Aggregation.SUM,
    "MIN": Aggregation.MIN,
    "MAX": Aggregation.MAX,
}


@define(eq=False)
class _Trees:
    """The operands of the operation as they are collected; `dtype` is that of thresholds and votes."""

    dtype: DType = DType.FLOAT32
    features: list[int] = field(factory=list)
    tests: list[int] = field(factory=list)
    missing: list[int] = field(factory=list)
    numbers: list[float] = field(factory=list)
    yes: list[int] = field(factory=list)
    no: list[int] = field(factory=list)
    roots: list[int] = field(factory=list)
    starts: list[int] = field(factory=lambda: [0])
    targets: list[int] = field(factory=list)
    weights: list[float] = field(factory=list)

    def leaf(self, votes: Sequence[tuple[int, float]]) -> int:
        """Add a leaf with these votes, and return its number."""
        for target, weight in votes:
            self.targets.append(target)
            self.weights.append(weight)
        self.starts.append(len(self.targets))
        return -(len(self.starts) - 1)

    def keep_first_votes(self) -> None:
        """Keep only the first vote of each leaf."""
        kept = [start for start, end in pairwise(self.starts) if start < end]
        self.starts = [0, *accumulate(int(start < end) for start, end in pairwise(self.starts))]
        self.targets = [self.targets[at] for at in kept]
        self.weights = [self.weights[at] for at in kept]

    def operation(self, node: Node, outputs: int, aggregation: Aggregation) -> Expression:
        d, x = node.draft, operand(node, 0)
        x = x.unsqueeze(0) if x.rank == 1 else x

        def constant(values: Sequence[float], dtype: DType = DType.INT64) -> int:
            return d.constant(np.array(list(values), dtype.numpy), dtype)

        nodes = (constant(part) for part in (self.features, self.tests, self.missing))
        ways = (constant(part) for part in (self.yes, self.no, self.roots, self.starts, self.targets))
        numbers, weights = constant(self.numbers, self.dtype), constant(self.weights, self.dtype)
        op = TreeEnsemble(outputs, aggregation)
        return x.of(d.add(op, x.operand, *nodes, numbers, *ways, weights))


def _ensemble(node: Node) -> int:
    """TreeEnsemble 5, with separate lists of nodes and leaves."""
    trees = _Trees()
    splits, weights, modes = (node.tensor(name) for name in ("nodes_splits", "leaf_weights", "nodes_modes"))
    if splits is None or weights is None or modes is None:
        raise ModelError("nodes_splits, leaf_weights or nodes_modes is absent")
    trees.dtype = weights[1]
    targets = node.integers("leaf_targetids") or ()
    if len(targets) != weights[0].size:
        raise ModelError(f"there are {len(targets)} targets for {weights[0].size} leaves")
    for target, weight in zip(targets, weights[0].reshape(-1), strict=True):
        trees.leaf([(target, float(weight))])
    count = splits[0].size
    parts = [node.integers(f"nodes_{name}") or () for name in ("featureids", "trueleafs", "falseleafs")]
    parts += [node.integers(f"nodes_{name}") or () for name in ("truenodeids", "falsenodeids")]
    tracks = node.integers("nodes_missing_value_tracks_true") or (0,) * count
    if any(len(part) != count for part in (*parts, tracks, modes[0].reshape(-1))):
        raise ModelError(f"the lists of nodes are not all of {count} elements")
    members = _member_sets(node)
    _require(parts[3], parts[1], len(targets), count)
    _require(parts[4], parts[2], len(targets), count)
    place = _places([int(m) for m in modes[0].reshape(-1)], members)
    for at in range(count):
        yes, no = (
            -1 - child if leaf else place[child]
            for leaf, child in ((parts[1][at], parts[3][at]), (parts[2][at], parts[4][at]))
        )
        _append(
            trees,
            parts[0][at],
            int(modes[0].reshape(-1)[at]),
            float(splits[0].reshape(-1)[at]),
            tracks[at],
            yes,
            no,
            members,
        )
    for root in node.integers("tree_roots") or ():
        if not 0 <= root < count:
            raise ModelError(f"root {root} is not one of {count} nodes")
        trees.roots.append(place[root])
    kinds = tuple(_AGGREGATIONS.values())
    aggregation, how = node.integer("aggregate_function", 1), node.integer("post_transform")
    if not 0 <= aggregation < len(kinds) or not 0 <= how < len(TRANSFORMS):
        raise ModelError(f"aggregate_function is {aggregation}, post_transform {how}, which ONNX does not define")
    outputs = node.integer("n_targets", max(targets, default=0) + 1)
    return transformed(trees.operation(node, outputs, kinds[aggregation]), TRANSFORMS[how]).operand


def _require(children: Sequence[int], leaves: Sequence[int], votes: int, nodes: int) -> None:
    for child, leaf in zip(children, leaves, strict=True):
        if not 0 <= child < (votes if leaf else nodes):
            raise ModelError(f"a branch leads to {child}, but there are {votes} leaves and {nodes} nodes")


def _member_sets(node: Node) -> list[list[float]]:
    """The sets of the membership nodes in reverse order, so that each can be popped."""
    found = node.tensor("membership_values")
    sets: list[list[float]] = [[]]
    for value in [] if found is None else found[0].reshape(-1).tolist():
        if value != value:
            sets.append([])
        else:
            sets[-1].append(value)
    return sets[::-1]


def _places(modes: Sequence[int], members: list[list[float]]) -> list[int]:
    """The index of each node, where a membership node is expanded to a row of comparisons."""
    sizes = [len(each) for each in reversed(members)]
    found, at, asked = [], 0, 0
    for mode in modes:
        found.append(at)
        if mode == _MEMBER:
            if asked >= len(sizes):
                raise ModelError("there are fewer sets in membership_values than membership nodes")
            at += max(sizes[asked], 1)
            asked += 1
        else:
            at += 1
    return found


def _append(
    trees: _Trees, feature: int, mode: int, number: float, tracks: int, yes: int, no: int, members: list[list[float]]
) -> None:
    if mode == _MEMBER:
        values = members.pop() or [float("nan")]
        rows = [(Test.EQUAL.value, value) for value in values]
    elif 0 <= mode < _MEMBER:
        rows = [(mode, number)]
    else:
        raise ModelError(f"the mode of a node is {mode}, expected 0 to {_MEMBER}")
    for at, (test, value) in enumerate(rows):
        trees.features.append(feature)
        trees.tests.append(test)
        trees.missing.append(tracks)
        trees.numbers.append(value)
        trees.yes.append(yes)
        trees.no.append(no if at == len(rows) - 1 else len(trees.features))


def _numbers(node: Node, name: str) -> tuple[Array, DType]:
    """Floats of an attribute, or doubles of the one that may replace it."""
    whole = node.tensor(f"{name}_as_tensor")
    if whole is not None:
        return whole[0].reshape(-1), whole[1]
    return np.array(node.numbers(name) or (), np.float32), DType.FLOAT32


def _read(node: Node, side: str) -> _Trees:
    """The encoding with a number for each tree and node. Leaves are nodes too; `side` is the prefix of their votes."""
    trees = _Trees()
    ids = [node.integers(f"nodes_{name}") or () for name in ("treeids", "nodeids", "featureids")]
    ways = [node.integers(f"nodes_{name}") or () for name in ("truenodeids", "falsenodeids")]
    modes, (numbers, trees.dtype) = node.texts("nodes_modes"), _numbers(node, "nodes_values")
    count = len(modes)
    tracks = node.integers("nodes_missing_value_tracks_true") or (0,) * count
    weights, _ = _numbers(node, f"{side}_weights")
    votes = [node.integers(f"{side}_{name}") or () for name in ("treeids", "nodeids", "ids")]
    if any(len(part) != count for part in (*ids, *ways, numbers, tracks)):
        raise ModelError(f"the lists of nodes are not all of {count} elements")
    if any(len(part) != len(weights) for part in votes):
        raise ModelError(f"the lists of votes are not all of {len(weights)} elements")
    given: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for tree, at, target, weight in zip(*votes, weights.tolist(), strict=True):
        given.setdefault((tree, at), []).append((target, weight))
    place: dict[tuple[int, int], int] = {}
    inner = 0
    for tree, at, mode in zip(ids[0], ids[1], modes, strict=True):
        if (tree, at) in place:
            raise ModelError(f"node {at} of tree {tree} occurs twice")
        if mode == "LEAF":
            place[tree, at] = trees.leaf(given.get((tree, at), ()))
        elif mode in _MODES:
            place[tree, at] = inner
            inner += 1
        else:
            raise ModelError(f"the mode of a node is {mode!r}, expected LEAF or one of {', '.join(_MODES)}")
    roots: dict[int, int] = {}
    for index, (tree, at, mode) in enumerate(zip(ids[0], ids[1], modes, strict=True)):
        roots.setdefault(tree, place[tree, at])
        if mode == "LEAF":
            continue
        yes, no = (place.get((tree, way[index])) for way in ways)
        if yes is None or no is None:
            raise ModelError(f"node {at} of tree {tree} leads to a node that does not exist")
        _append(trees, ids[2][index], _MODES.index(mode), float(numbers[index]), tracks[index], yes, no, [])
    trees.roots.extend(roots.values())
    return trees


def _bases(node: Node, count: int) -> Array:
    """The base values: none, one, or one for each of `count` targets or classes."""
    values, _ = _numbers(node, "base_values")
    if len(values) not in (0, 1, count):
        raise ModelError(f"there are {len(values)} base values for {count} targets")
    return values


def _plus(votes: Expression, bases: Array) -> Expression:
    return votes + votes.of(votes.draft.constant(bases.astype(votes.dtype.numpy), votes.dtype)) if len(bases) else votes


def _regressor(node: Node) -> int:
    """The value of each target, as ONNX Runtime computes it: a target without votes gets no base value. Of a single
    target, only the first vote of a leaf counts, and PROBIT is the only transform."""
    trees = _read(node, "target")
    named = node.choice("aggregate_function", _AGGREGATIONS, "SUM")
    outputs = node.integer("n_targets", max(trees.targets, default=0) + 1)
    how = node.text("post_transform", "NONE")
    bases = _bases(node, outputs)
    bases = np.where(np.isin(np.arange(outputs), trees.targets), bases, 0) if len(bases) else bases
    if outputs == 1:
        trees.keep_first_votes()
        how = how if how == "PROBIT" or how not in TRANSFORMS else "NONE"
    votes = _plus(trees.operation(node, outputs, _AGGREGATIONS[named]), bases)
    return transformed(votes, how).cast(DType.FLOAT32).operand


def _classifier(node: Node) -> tuple[int, int]:
    """The best class of each row, and the scores. A class without votes and base value is never the best."""
    trees = _read(node, "class")
    classes = labels(node, "classlabels_int64s", "classlabels_strings")
    if classes is None:
        raise ModelError("has no labels")
    count = len(classes[0])
    how = node.text("post_transform", "NONE")
    if count == 2:
        return _one_of_two(node, trees, classes, how)
    bases = _bases(node, count)
    scores = _plus(trees.operation(node, count, Aggregation.SUM), bases)
    voted = sorted({*trees.targets, *range(len(bases))})
    if 0 < len(voted) < count:
        chosen = best(scores.take(voted, 1), (classes[0][voted], classes[1]))
    else:
        chosen = best(scores, classes)
    return chosen.operand, transformed(scores, how).cast(DType.FLOAT32).operand


def _one_of_two(node: Node, trees: _Trees, classes: tuple[Array, DType], how: str) -> tuple[int, int]:
    """Two classes, whose files ONNX Runtime interprets in its own way.

    - If only the first class has votes, they are scores of the second, and the first gets 1 - score, or -score if a
      weight is negative. LOGISTIC applies to -score and score; other transforms do not apply.
    - A base value of the second class is for the votes of the first if both have votes; the first gets the opposite.
    - A class without votes has the score 0 otherwise.
    - The second class is chosen if its score is positive, or above 0.5 if one class has votes, none of them negative.
      If both have votes, integer labels are ignored: the result is 0 or 1.
    """
    voted, bases = set(trees.targets), _bases(node, 2)
    positive = min(trees.weights, default=0.0) >= 0
    votes = trees.operation(node, 2, Aggregation.SUM)
    first, second = (votes.take([at], 1) for at in range(2))
    if 1 in voted:
        if len(bases) == 2:
            second = first + float(bases[1])
        if len(bases) and 0 in voted:
            first = -second if len(bases) == 2 else first + float(bases[0])
        decides = second
    else:
        decides = first = first + float(bases[0]) if len(bases) else first
        if len(bases) < 2:
            first, second = -first if how == "LOGISTIC" or not positive else 1 - first, first
            how = how if how == "LOGISTIC" or how not in TRANSFORMS else "NONE"
    place = (decides.squeeze(1) > (0.5 if positive and len(voted) == 1 else 0.0)).cast(DType.INT64)
    scores = transformed(first.concat([second], 1), how).cast(DType.FLOAT32)
    ignored = len(voted) == 2 and classes[1] is DType.INT64
    return (place if ignored else labelled(place, classes)).operand, scores.operand


TABLE: dict[str, Importer] = {
    "TreeEnsemble": _ensemble,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
}
