"""Ensembles of decision trees that are constant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.lookup.trees import Aggregation, Test, TreeEnsemble
from onert_llvm.command.command import Slot
from onert_llvm.kernels.lookup.trees import EQUAL, GREATER, LESS, UNORDERED, WalkTrees
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS

_CODES = {
    Test.LESS_EQUAL: LESS | EQUAL,
    Test.LESS: LESS,
    Test.GREATER_EQUAL: GREATER | EQUAL,
    Test.GREATER: GREATER,
    Test.EQUAL: EQUAL,
    Test.NOT_EQUAL: LESS | GREATER | UNORDERED,
}
_MOST_DEPTH = 1 << 9
"""Tests on a path. Trees that people learn have some ten."""
_JOINS = {Aggregation.MIN: "min", Aggregation.MAX: "max"}


def why_not(op: TreeEnsemble, types: CallTypes) -> str | None:
    """Why this backend does not walk the trees; None if it does."""
    x, parts = types.input(0), [types.input(i) for i in range(1, 11)]
    if x.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64) or 0 in (*x.shape, op.outputs):
        return "x is no matrix of float32, int32 or int64"
    if any(p.value is None for p in parts):
        return "the trees are not constant"
    numbers, weights = parts[3], parts[9]
    if any(p.dtype is not DType.FLOAT32 or not np.isfinite(_elements(p.value)).all() for p in (numbers, weights)):
        return "a number or a vote is no finite float32"
    if not types.input(7).shape[0] or max(len(_elements(p.value)) for p in parts) >= 1 << 31:
        return "there are no trees, or too many"
    if depth(_elements(parts[4].value), _elements(parts[5].value)) is None:
        return f"a tree leads in a circle, or is deeper than {_MOST_DEPTH}"
    return None


def _elements(value: Array | None) -> Array:
    assert value is not None
    return value


def depth(yes: Array, no: Array) -> int | None:
    """The most nodes on a path of which each follows the one before; None for a circle, and for very long paths.

    Found from the leaves upwards: in each round the nodes are settled of which all that follows is.
    """
    settled = np.zeros(len(yes), np.bool_)
    for length in range(_MOST_DEPTH + 1):
        if settled.all():
            return length
        below = [(ways < 0) | settled[np.maximum(ways, 0)] for ways in (yes, no)]
        now = below[0] & below[1]
        if (now == settled).all():
            return None
        settled = now
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Row by row, tree by tree."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, TreeEnsemble)
    x, *parts = operation.used
    rows, width = lowering.shape(x)
    names = ("features", "tests", "missing", "numbers", "yes", "no", "roots", "starts", "targets", "weights")
    given = {name: lowering.elements(part) for name, part in zip(names, parts, strict=True)}
    codes = np.array([_CODES[Test(int(t))] for t in given["tests"]], np.int32).reshape(-1)
    given["codes"] = codes | np.where(given["missing"] != 0, UNORDERED, 0).astype(np.int32)
    (sums,) = lowering.scratch(rows * op.outputs * 8)
    kinds = {"numbers": np.float32, "weights": np.float32, "starts": np.int64}
    slots: dict[str, Slot] = {
        name: lowering.constant(np.ascontiguousarray(values, kinds.get(name, np.int32)))
        for name, values in given.items()
        if name not in ("tests", "missing")
    }
    trees, steps = len(given["roots"]), depth(given["yes"], given["no"])
    assert steps is not None
    slots |= {"x": lowering.operand(x), "out": lowering.operand(operation.outputs[0]), "sums": sums.pointer}
    slots |= {"width": width, "outputs": op.outputs, "trees": trees, "depth": steps}
    kind = KINDS[lowering.type(x).dtype]
    walk = WalkTrees(kind, _JOINS.get(op.aggregation, "sum"), op.aggregation is Aggregation.AVERAGE)
    lowering.emit(at, walk, slots, rows, (x,), operation.outputs, rows * trees * steps, (sums,))
