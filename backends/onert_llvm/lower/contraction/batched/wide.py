"""Batched matrix products in float64 and in 32-bit and 64-bit integers."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import CallTypes, DType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.batched.batch_matmul_wide import ROWS, MatMulWide
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS

from .batch_shape import batch_shape, row_major_bytes, row_major_right

WIDE = (DType.FLOAT64, DType.INT32, DType.INT64)


def why_not(op: BatchMatMul, types: CallTypes) -> str | None:
    """Why this backend does not run the product; None if it does."""
    dtypes = {t.dtype for t in (*types.inputs, *types.outputs) if t is not None}
    if len(dtypes) != 1 or not dtypes.issubset(WIDE):
        return "only float64 and 32-bit or 64-bit integers are native, all of one type"
    if 0 in (*types.input(0).shape, *types.input(1).shape):
        return "a tensor has no elements"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A product without an epilogue."""
    at, operation, op = lowering.single(operations, BatchMatMul)
    (x, y), (result,) = operation.used, operation.outputs
    sides = batch_shape(lowering, at)
    b, extra = lowering.operand(y), tuple[Access, ...]()
    if op.adjoint_y:
        extra = (row_major_right(lowering, at, sides.n, lowering.scratch(row_major_bytes(lowering, at, sides.n))[0]),)
        b = extra[0].pointer
    row_tiles = -(-sides.m // ROWS)
    slots: dict[str, Slot] = {
        "a": lowering.operand(x),
        "b": b,
        "c": lowering.operand(result),
        "offsets": sides.offsets(lowering, sides.m * sides.k, sides.k * sides.n),
        "row_tiles": row_tiles,
        "m": sides.m,
        "n": sides.n,
        "depth": sides.k,
        "a_row": 1 if op.adjoint_x else sides.k,
        "a_step": sides.m if op.adjoint_x else 1,
    }
    reads = (x, *(() if extra else (y,)))
    algorithm = MatMulWide(KINDS[lowering.type(x).dtype])
    lowering.emit(at, algorithm, slots, sides.count * row_tiles, reads, (result,), sides.flops, extra)
