"""Softmax of bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.reduction.softmax import Softmax, exponentials
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Slot
from onert_llvm.kernels.reduction.softmax_int8 import SoftmaxInt8
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES


def why_not(op: Softmax, types: CallTypes) -> str | None:
    """Why this backend does not run the softmax; None if it does."""
    x, out = types.input(0), types.output
    wider = x.dtype is DType.INT8 and out.dtype is DType.INT16
    if x.dtype not in BYTES or not (wider or out.dtype is x.dtype) or 0 in x.shape:
        return "only bytes to bytes, or to 16-bit numbers, are native"
    return None if op.in_fixed_point(out) else "its result is not quantised as fixed point wants it"


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Row by row."""
    at, operation, op = lowering.single(operations, Softmax)
    x, out = lowering.type(operation.used[0]), lowering.type(operation.outputs[0])
    kept, powers, shares = exponentials(op.beta * x.scale)
    tables = {"powers": np.where(kept, powers, 0).astype(np.int32), "shares": shares.astype(np.int32)}
    emit_rows(lowering, at, SoftmaxInt8(x.dtype is DType.INT8, out.dtype.bits), tables)


def emit_rows(lowering: Lowering, at: int, algorithm: Algorithm, tables: Mapping[str, Array]) -> None:
    """A kernel that works row by row with tables."""
    operation = lowering.subgraph.operations[at]
    source, target = operation.used[0], operation.outputs[0]
    shape = lowering.shape(source)
    rows = math.prod(shape[:-1])
    slots: dict[str, Slot] = {"x": lowering.operand(source), "out": lowering.operand(target), "width": shape[-1]}
    slots |= {name: lowering.constant(table) for name, table in tables.items()}
    lowering.emit(at, algorithm, slots, rows, (source,), (target,), 4 * rows * shape[-1])
