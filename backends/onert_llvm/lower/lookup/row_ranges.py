"""Ranges of rows, each reduced to one row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.segment import ReduceRanges
from onert_llvm.command.command import Slot
from onert_llvm.kernels.lookup.row_ranges import RowRanges
from onert_llvm.kernels.reduction.fold import Fold
from onert_llvm.lower.command_builder import Lowering

_FOLDS = {
    Reduction.MEAN: Fold.SUM,
    Reduction.SUM: Fold.SUM,
    Reduction.MAX: Fold.MAX,
    Reduction.MIN: Fold.MIN,
}


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not reduce the ranges; None if it does."""
    return "a dimension is 0" if any(t is not None and 0 in t.shape for t in types.inputs) else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Reduce each range by a work tile of its own."""
    at, operation, op = lowering.single(operations, ReduceRanges)
    x, begin, end = operation.used
    (result,) = operation.outputs
    rows, *rest = lowering.shape(x)
    width, count = math.prod(rest), lowering.shape(begin)[0]
    slots: dict[str, Slot] = {
        **{name: lowering.operand(i) for name, i in (("x", x), ("begin", begin), ("end", end), ("out", result))},
        "rows": rows,
        "width": width,
    }
    kernel = RowRanges(_FOLDS[op.kind], op.kind is Reduction.MEAN, lowering.type(begin).dtype is DType.INT64)
    lowering.emit(at, kernel, slots, count, (x, begin, end), (result,), rows * width)
