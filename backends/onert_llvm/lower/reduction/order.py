"""Running sums and products, and the greatest elements of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.data_movement.fill import TopK
from onert.ir.ops.reduction.scan import CumProd, CumSum
from onert.ir.shape import normalize_axis
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.command.command import Slot
from onert_llvm.kernels.reduction.ranking import First
from onert_llvm.kernels.reduction.sorting import Sorted
from onert_llvm.kernels.reduction.topk import Greatest, RunningProduct, RunningSum
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS

_MANY, _LONG, _GROUPS = 32, 16, 4
"""At least so many elements of rows so many times as long are selected by groups, so many for each result. So there
are more groups than results even if the last register of 64 elements is left out."""
_PIECE = 128
"""The number of columns of running sums in a work tile."""


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None if it does."""
    x = types.input(0)
    if x.dtype not in KINDS or 0 in (*x.shape, *types.output.shape):
        return "elements of this type, or none, have no native form"
    if isinstance(op, CumProd) and x.quantization is not None:
        return "its elements are quantised"
    if isinstance(op, CumSum | CumProd):
        return None if types.input(1).value is not None else "the axis is not known before the run"
    places = types.outputs[1].dtype
    return None if places in (DType.INT32, DType.INT64) else f"places of {places.text} have no native form"


def lower_sum(lowering: Lowering, operations: Sequence[int]) -> None:
    """Running sums or products."""
    at, operation, op = lowering.single(operations, Op)
    assert isinstance(op, CumSum | CumProd)
    (x, axis), (result,) = operation.used, operation.outputs
    shape = lowering.shape(x)
    along = normalize_axis(int(lowering.elements(axis).reshape(-1)[0]), len(shape))
    before, width = (math.prod(part) for part in (shape[:along], shape[along + 1 :]))
    pieces = -(-width // _PIECE)
    slots = {"rows": shape[along], "width": width, "piece": _PIECE, "pieces": pieces}
    kind = RunningSum if isinstance(op, CumSum) else RunningProduct
    algorithm = kind(KINDS[lowering.type(x).dtype], op.exclusive, op.reverse)
    lowering.run(at, algorithm, before * pieces, {"x": x}, {"out": result}, slots, math.prod(shape))


def lower_top(lowering: Lowering, operations: Sequence[int]) -> None:
    """The greatest or least elements along the last axis: merged if they are all, else kept in a heap."""
    at, operation, op = lowering.single(operations, TopK)
    x, (values, places) = operation.used[0], operation.outputs
    shape, k = lowering.shape(x), lowering.shape(values)[-1]
    rows = math.prod(shape[:-1])
    kind, wide = KINDS[lowering.type(x).dtype], lowering.type(places).dtype is DType.INT64
    slots: dict[str, Slot] = {"width": shape[-1], "levels": k.bit_length() - 1}
    reads, writes = {"x": x}, {"values": values, "places": places}
    if are_same(k, shape[-1]):
        own = lowering.scratch(*(lowering.type(result).nbytes for result in (values, places)))
        slots |= {f"more_{name}": room.pointer for name, room in zip(writes, own, strict=True)}
        slots["levels"] = (k - 1).bit_length()
        lowering.run(at, Sorted(kind, wide, op.least), rows, reads, writes, slots, rows * k, own)
        return
    if are_same(k, 1) and not is_symbolic(shape[-1]) and shape[-1] < 1 << 31:
        own_slots: dict[str, Slot] = {"width": shape[-1]}
        lowering.run(at, First(kind, wide, op.least), rows, reads, writes, own_slots, rows * shape[-1])
        return
    long = k >= _MANY and shape[-1] >= _LONG * k
    slots |= {"k": k, "group": shape[-1] // (_GROUPS * k) if long else 1}
    lowering.run(at, Greatest(kind, wide, op.least, long), rows, reads, writes, slots, rows * shape[-1])
