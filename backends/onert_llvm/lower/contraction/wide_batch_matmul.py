"""Products of matrices in batches, in float64 and in integers of 32 and 64 bits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import evolve

from onert.ir import CallTypes, DType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.shape import broadcast, static
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.contraction.batched.batch_matmul_wide import ROWS, MatMulWide
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS
from onert_llvm.lower.strided_copy import move, operand, side

from .float_batch_matmul import offsets_of

WIDE = (DType.FLOAT64, DType.INT32, DType.INT64)


def why_not(op: BatchMatMul, types: CallTypes) -> str | None:
    """Why this backend does not run the product; None if it does."""
    dtypes = {t.dtype for t in (*types.inputs, *types.outputs) if t is not None}
    if len(dtypes) != 1 or not dtypes.issubset(WIDE):
        return "only float64 and integers of 32 and 64 bits are native, all of one type"
    if 0 in (*types.input(0).shape, *types.input(1).shape):
        return "a tensor has no elements"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A product alone."""
    at, operation, op = lowering.single(operations, BatchMatMul)
    (x, y), (result,) = operation.used, operation.outputs
    left, right = lowering.shape(x), lowering.shape(y)
    depth, m = left[-2:] if op.adjoint_x else left[-2:][::-1]
    n = right[-2] if op.adjoint_y else right[-1]
    batches = static(broadcast((left[:-2], right[:-2])))
    count = math.prod(batches)
    b, extra = _right(lowering, at, y) if op.adjoint_y else (lowering.operand(y), ())
    row_tiles = -(-m // ROWS)
    slots: dict[str, Slot] = {
        "a": lowering.operand(x),
        "b": b,
        "c": lowering.operand(result),
        "offsets": offsets_of(lowering, (left[:-2], right[:-2]), batches, (m * depth, depth * n)),
        "row_tiles": row_tiles,
        "m": m,
        "n": n,
        "depth": depth,
        "a_row": 1 if op.adjoint_x else depth,
        "a_step": m if op.adjoint_x else 1,
    }
    reads = (x, *(() if extra else (y,)))
    flops = 2 * count * m * n * depth
    algorithm = MatMulWide(KINDS[lowering.type(x).dtype])
    lowering.emit(at, algorithm, slots, count * row_tiles, reads, (result,), flops, accesses=extra)


def _right(lowering: Lowering, at: int, y: int) -> tuple[Pointer, tuple[Access, ...]]:
    """The right side with its columns as neighbours, copied to scratch memory."""
    shape, itemsize = lowering.shape(y), lowering.type(y).dtype.itemsize
    columns, depth = shape[-2:]
    count = math.prod(shape[:-2])
    (room,) = lowering.scratch(count * depth * columns * itemsize)
    own, target = operand(lowering, y), side(room.pointer, (count, depth, columns), itemsize)
    move(lowering, at, own.at(own.view.reshape(count, columns, depth).swapaxes(1, 2)), target, (y,))
    return room.pointer, (evolve(room, write=False),)
