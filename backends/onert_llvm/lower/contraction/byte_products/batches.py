"""Batched products of byte matrices, neither of them constant; sums are converted to real numbers or stored as is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.batched.batch_matmul_scaled import MatMulScaled, PackBytes
from onert_llvm.kernels.contraction.batched.byte_columns import RowMajorBytes
from onert_llvm.kernels.contraction.epilogue import PLAIN
from onert_llvm.kernels.contraction.int8_microkernel import MOST_TERMS, offset
from onert_llvm.kernels.contraction.register_tile import Tile, columns
from onert_llvm.kernels.contraction.scaled_results import Scaled
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.batched.batch_shape import BatchShape, batch_shape
from onert_llvm.lower.contraction.epilogue import EpilogueTask
from onert_llvm.lower.dtype_sets import BYTES
from onert_llvm.schedule.cost_model import Shape, row_work
from onert_llvm.schedule.float_packing import panels
from onert_llvm.schedule.weight_packing import panel_bytes_int8
from onert_llvm.target.isa import Isa

from .layers import results

_FEW_ROWS = 8
"""Up to so many rows a right side is not packed."""


def why_not(op: BatchMatMul, types: CallTypes) -> str | None:
    """Why this backend does not run the product; None if it does."""
    x, y, whole = types.input(0), types.input(1), types.output.dtype is DType.INT32
    if x.dtype not in BYTES or y.dtype not in BYTES or not (whole or types.output.dtype is DType.FLOAT32):
        return "only products of bytes that become float32 or int32 are native"
    if whole and any(t.quantization is not None for t in (x, y)):
        return "an operand has a scale, but int32 sums are stored unscaled"
    if not whole and any(t.quantization is None or not t.quantization.per_tensor for t in (x, y)):
        return "its quantisation has no native form"
    if op.adjoint_x or op.adjoint_y:
        return "an operand is transposed"
    if 0 in (*x.shape, *y.shape):
        return "a tensor has no elements"
    return None if (x.shape[-1] or 0) <= MOST_TERMS else "its sums do not fit in 32 bits"


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Pack the right side, then multiply batch by batch.

    With a = stored + offset (what the instruction multiplies) and b a signed byte, with zero points A and B, the sum of
    (a - A)(b - B) is that of a·b, less A times the sum of b and B times the sum of a, plus k·A·B.
    """
    at = operations[0]
    x, y = lowering.operation(at).used
    sides, isa = batch_shape(lowering, at), lowering.isa
    m, depth, n, products, count = sides.m, sides.k, sides.n, sides.count, math.prod(sides.own[1])
    source, other = lowering.type(x), lowering.type(y)
    (first, second), factor = (0, 0), np.float32(1)
    if source.quantization is not None:
        first, second, factor = source.zero_point, other.zero_point, np.float32(source.scale) * np.float32(other.scale)
        after, how = results(lowering, operations, n)
    else:
        result = lowering.operation(at).outputs[0]
        after, how = EpilogueTask(PLAIN, {}, (), lowering.operand(result), (result,)), Scaled(PLAIN, "i32")
    signed, rest = source.dtype is DType.INT8, depth % isa.group
    shape = Shape(m, n, depth, integer=True)
    moved = first + offset(isa, signed)
    zero = second - (0 if other.dtype is DType.INT8 else 128)
    unpacked = None
    if _few(sides, isa):
        unpacked = RowMajorBytes(rest, signed, other.dtype is DType.INT8, moved != 0)
        sums = max(1, isa.registers // 2 // isa.group - unpacked.shifted)
        rows = -(-m // -(-m // sums))
        together = max(1, isa.registers // 2 // (isa.group * (rows + unpacked.shifted)))
        tile = Tile(rows, columns(n, isa.group * together, isa))
    else:
        tile = evolve(lowering.tile((MatMulScaled, rest, signed, how), shape), ahead=0, stream=0)
    across, wide = panels(n, tile.columns, isa), isa.whole(n)
    work = row_work(shape, tile, across, depth, lowering.isa, lowering.threads, products)
    common: dict[str, Slot] = {"k": depth, "n": n, "columns": wide, "panels": across}
    reads, touched = (x, *after.reads), tuple[Access, ...]()
    if unpacked is None:
        panel_bytes = panel_bytes_int8(1, depth, tile.columns, isa)
        packed, start = lowering.scratch(count * across * panel_bytes, count * wide * 4)
        common |= {"b": packed.pointer, "start": start.pointer, "panel_bytes": panel_bytes}
        own = common | {"y": lowering.operand(y), "times": -moved, "plus": depth * moved * zero}
        kind = PackBytes(tile.columns, rest, other.dtype is DType.INT8)
        lowering.emit(at, kind, own, count * across, (y,), (), count * n * depth, (packed, start))
        touched = tuple(evolve(each, write=False) for each in (packed, start))
    else:
        reads = (*reads, y)
        common |= {"b": lowering.operand(y), "ldb": n, "panel_bytes": tile.columns.widest * isa.f32}
        common |= {"plus": depth * moved * zero} | ({"times": -moved} if moved else {})
    slots = common | after.slots
    slots |= {
        "a": lowering.operand(x),
        "c": after.place,
        "offsets": sides.offsets(lowering, m * depth, 1),
        "per_batch": work.tiles,
        "lda": depth,
        "ldc": n,
        "weight_zero": zero,
        "m": m,
        "mc": work.mc,
        "factors": lowering.computed(partial(_filled, float(factor)), wide),
    }
    algorithm = MatMulScaled(tile, rest, signed, zero != 0, how, unpacked)
    lowering.emit(at, algorithm, slots, products * work.tiles, reads, after.writes, sides.flops, touched)


def _few(sides: BatchShape, isa: Isa) -> bool:
    """Whether there are too few rows for packing the right side to pay."""
    return not isa.small and not is_symbolic(sides.m) and sides.m <= _FEW_ROWS


@of_lengths
def _filled(factor: float, count: int) -> Array:
    return np.full(count, factor, np.float32)
