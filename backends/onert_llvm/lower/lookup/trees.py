"""Ensembles of constant decision trees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.lookup.trees import Aggregation, TreeEnsemble
from onert_llvm.command.command import Slot
from onert_llvm.kernels.lookup.trees import RECORD, ROWS, WalkTrees
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS
from onert_llvm.schedule.tree_records import MOST_STEPS, Records, records

_JOINS = {Aggregation.MIN: "min", Aggregation.MAX: "max"}
_PARTS = ("features", "tests", "missing", "numbers", "yes", "no", "roots", "starts", "targets", "weights")
_REALS = (DType.FLOAT32, DType.FLOAT64)
_STEP = 16
"""The number of multiplications that take as long as a step to the next node."""


def why_not(op: TreeEnsemble, types: CallTypes) -> str | None:
    """Why this backend does not evaluate the trees; None if it does."""
    x, parts = types.input(0), [types.input(i) for i in range(1, 11)]
    if x.dtype not in (*_REALS, DType.INT32, DType.INT64) or 0 in (*x.shape, op.outputs):
        return "x is not a float32, float64, int32 or int64 matrix, or there is nothing to compute"
    if any(p.value is None for p in parts):
        return "the trees are not constant"
    if any(parts[_PARTS.index(name)].dtype not in _REALS for name in ("numbers", "weights")):
        return "thresholds and weights are neither float32 nor float64"
    given = _widened({name: _elements(part.value) for name, part in zip(_PARTS, parts, strict=True)}, x.dtype)
    if np.isnan(given["numbers"]).any():
        return "a threshold is neither finite nor infinite"
    if not np.isfinite(given["weights"]).all():
        return "a weight is not finite"
    if not len(given["roots"]) or max(map(len, given.values())) >= (1 << 31) // (4 * RECORD):
        return "there are no trees, or too many"
    if _records(op, given) is None:
        return f"a tree has a cycle, or is deeper than {MOST_STEPS}"
    return None


def _elements(value: Array | None) -> Array:
    assert value is not None
    return value


def _widened(given: dict[str, Array], x: DType) -> dict[str, Array]:
    """The parts of trees, with thresholds and weights in float64 if one of these or `x` is."""
    reals = ("numbers", "weights")
    wide = x is DType.FLOAT64 or any(given[name].dtype == np.float64 for name in reals)
    return given | {name: given[name].astype(np.float64 if wide else np.float32, copy=False) for name in reals}


def _alone(op: TreeEnsemble, given: dict[str, Array]) -> bool:
    """Whether every leaf has exactly one vote, and there is only one target."""
    return op.outputs == 1 and bool((np.diff(given["starts"]) == 1).all())


def _records(op: TreeEnsemble, given: dict[str, Array]) -> Records | None:
    return records(given, given["weights"] if _alone(op, given) else None)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Evaluate many rows at a time, tree by tree."""
    at, operation, op = lowering.single(operations, TreeEnsemble)
    x, *parts = operation.used
    rows, width = lowering.shape(x)
    dtype = lowering.type(x).dtype
    given = _widened({name: lowering.elements(part) for name, part in zip(_PARTS, parts, strict=True)}, dtype)
    made, one = _records(op, given), _alone(op, given)
    assert made is not None
    (sums,) = lowering.scratch(rows * op.outputs * 8)
    arrays = {"nodes": made.nodes, "roots": made.roots, "steps": made.steps, "together": made.together}
    if not one:
        arrays["starts"] = given["starts"].astype(np.int64)
        arrays["targets"] = given["targets"].astype(np.int32)
        arrays["weights"] = given["weights"]
    slots: dict[str, Slot] = {n: lowering.constant(np.ascontiguousarray(values)) for n, values in arrays.items()}
    slots |= {"sums": sums.pointer, "rows": rows, "outputs": op.outputs, "trees": len(made.roots)}
    mean, wide = op.aggregation is Aggregation.AVERAGE, given["numbers"].dtype == np.float64
    wide_out = lowering.type(operation.outputs[0]).dtype is DType.FLOAT64
    walk = WalkTrees(KINDS[dtype], width, made.negated, one, _JOINS.get(op.aggregation, "sum"), mean, wide, wide_out)
    work = _STEP * rows * int(made.steps.sum())
    lowering.run(at, walk, -(-rows // ROWS), {"x": x}, {"out": operation.outputs[0]}, slots, work, (sums,))
