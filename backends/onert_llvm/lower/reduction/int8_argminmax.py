"""Indices of the greatest or least byte."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert.ir import CallTypes, DType
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, axis_of
from onert_llvm.command.command import Slot
from onert_llvm.kernels.reduction.argminmax_int8 import ExtremeInt8
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES


def why_not(op: ArgReduce, types: CallTypes) -> str | None:
    """Why this backend does not look for the element; None if it does."""
    x = types.input(0)
    if x.dtype not in BYTES or types.input(1).value is None or 0 in x.shape:
        return "only bytes along a constant axis are native"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A register of columns at a time."""
    at, operation, op = lowering.single(operations, ArgReduce)
    source, target = operation.used[0], operation.outputs[0]
    types = lowering.subgraph.types(operation)
    shape = lowering.shape(source)
    axis = axis_of(types.input(1), len(shape))
    outer, inner = (math.prod(s) for s in (shape[:axis], shape[axis + 1 :]))
    chunks = -(-inner // lowering.isa.f32)
    slots: dict[str, Slot] = {
        "x": lowering.operand(source),
        "rows": shape[axis],
        "width": inner,
        "chunks": chunks,
        "out": lowering.operand(target),
    }
    signed, wide = types.input(0).dtype is DType.INT8, op.output is DType.INT64
    algorithm = ExtremeInt8(op.kind is Extreme.MAX, signed, wide)
    lowering.emit(at, algorithm, slots, outer * chunks, (source,), (target,), outer * inner * shape[axis])
