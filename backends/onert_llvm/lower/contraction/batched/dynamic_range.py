"""Products of floats and constant byte matrices, with each row quantised on the fly (dynamic range)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.rescale import filter_scales
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert_llvm.kernels.contraction.dynamic_quantization import Dynamic
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.dynamic_range_conv_fc import columns, multiply
from onert_llvm.lower.contraction.epilogue import epilogue_task
from onert_llvm.lower.contraction.quantized_rows import advanced, quantize

from .batch_shape import batch_shape

_MOST_PRODUCTS = 256
"""The most products of one operation, each of which is a command."""


def why_not(op: BatchMatMul, types: CallTypes) -> str | None:
    """Why this backend does not run the product; None if it does."""
    x, y = types.input(0), types.input(1)
    if x.dtype is not DType.FLOAT32 or types.output.dtype is not DType.FLOAT32 or y.dtype is not DType.INT8:
        return "only float32 with constant bytes is native"
    if y.value is None or y.quantization is None:
        return "the byte matrices are not constant"
    if 0 in (*x.shape, *y.shape):
        return "a tensor has no elements"
    if (x.shape[-2 if op.adjoint_x else -1] or 0) > MOST_TERMS:
        return "its sums do not fit in 32 bits"
    several = math.prod(y.value.shape[:-2]) > 1
    if several and math.prod(d or 1 for d in types.output.shape[:-2]) > _MOST_PRODUCTS:
        return f"it is more than {_MOST_PRODUCTS} products"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """One product of all rows if there is one byte matrix, else one for each batch."""
    at, operation, op = lowering.single(operations, BatchMatMul)
    x, y = operation.used
    sides = batch_shape(lowering, at)
    m, depth, n = sides.m, sides.k, sides.n
    stored, scales = lowering.elements(y), filter_scales(lowering.type(y))
    matrices = (stored if not op.adjoint_y else stored.swapaxes(-1, -2)).reshape(-1, depth, n)
    rows = math.prod(lowering.shape(x)) // depth
    source = quantize(lowering, at, x, rows, 0, op.asymmetric_inputs, transposed=op.adjoint_x)
    after = epilogue_task(lowering, operations, Activation.NONE, None, n)
    how = Dynamic(after.epilogue, op.asymmetric_inputs)
    if len(matrices) == 1:
        own = evolve(after, slots=after.slots | columns(lowering, matrices, scales))
        multiply(lowering, at, source, matrices, own, how, (rows, depth), None)
        return
    firsts, others = (np.arange(math.prod(own)).reshape(own) for own in sides.own)
    for number, (first, matrix) in enumerate(np.broadcast(firsts, others)):
        part = matrices[matrix][None]
        place = advanced(after.place, 4 * number * m * n)
        own = evolve(after, slots=after.slots | columns(lowering, part, scales), place=place)
        multiply(lowering, at, source.from_item(int(first) * m), part, own, how, (m, depth), None)
