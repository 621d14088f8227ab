"""Products of bytes and a constant matrix of signed bytes, whose sums are stored as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert_llvm.kernels.contraction.epilogue import PLAIN
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS
from onert_llvm.kernels.contraction.scaled_results import Scaled
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.epilogue import EpilogueTask
from onert_llvm.lower.dtype_sets import BYTES

from .layers import multiply


def why_not(op: BatchMatMul, types: CallTypes) -> str | None:
    """Why this backend does not run the product; None if it does."""
    x, y = types.input(0), types.input(1)
    if op.output is not DType.INT32 or x.dtype not in BYTES or y.dtype is not DType.INT8:
        return "only products of bytes that become int32 are native"
    if y.value is None or op.adjoint_x or any(d != 1 for d in y.shape[:-2]) or y.rank > x.rank:
        return "the second operand is not a constant matrix, or the first is transposed"
    if any(t.quantization is not None and any(t.quantization.zero_points) for t in (x, y)):
        return "an operand has a zero point, but int32 sums are stored uncorrected"
    if 0 in (*x.shape, *y.shape):
        return "a tensor has no elements"
    return None if (x.shape[-1] or 0) <= MOST_TERMS else "its sums do not fit in 32 bits"


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """The product of all rows and the matrix."""
    at, operation, op = lowering.single(operations, BatchMatMul)
    x, y = operation.used
    matrix = lowering.elements(y).reshape(lowering.shape(y)[-2:])
    weights = np.ascontiguousarray(matrix.T if op.adjoint_y else matrix)[None]
    depth = weights.shape[1]
    m = math.prod(lowering.shape(x)) // depth
    (result,) = operation.outputs
    after = EpilogueTask(PLAIN, {}, (), lowering.operand(result), (result,))
    multiply(lowering, at, weights, (m, depth), after, Scaled(PLAIN, "i32"))
