"""Products of matrices in batches, in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.shape import broadcast, static
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.contraction.batched.batched import BatchedContraction
from onert_llvm.kernels.contraction.float_terms import FloatTerms
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, operand, side
from onert_llvm.schedule.cost_model import Shape, product_tile, row_work
from onert_llvm.schedule.weight_packing import panels

from .attention import softmax_of_products
from .bfloat.layers import terms
from .epilogue import tail
from .float_conv_fc import multiply, product


def why_not(op: BatchMatMul, types: CallTypes) -> str | None:
    """Why this backend does not run the product; None if it does."""
    if any(t is not None and t.dtype is not DType.FLOAT32 for t in (*types.inputs, *types.outputs)):
        return "only float32 is native"
    if 0 in (*types.input(0).shape, *types.input(1).shape):
        return "a tensor has no elements"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A product and its epilogue, or attention, which ends in another product.

    A constant matrix on the right is packed as that of a fully connected layer.
    """
    if len(operations) > 1 and isinstance(lowering.operation(operations[-1]).op, BatchMatMul):
        softmax_of_products.lower(lowering, operations)
        return
    _, operation, op = lowering.first(operations, BatchMatMul)
    x, y = operation.used
    one = math.prod(lowering.shape(y)[:-2]) == 1
    if one and not op.adjoint_x and lowering.subgraph.operands[y].is_constant:
        _packed(lowering, operations, op, x, lowering.elements(y).reshape(lowering.shape(y)[-2:]))
    else:
        _batched(lowering, operations, op, x, y)


def _packed(lowering: Lowering, operations: Sequence[int], op: BatchMatMul, x: int, weights: Array) -> None:
    w = weights.T if op.adjoint_y else weights
    depth, n = w.shape
    m = math.prod(lowering.shape(x)) // depth
    after = tail(lowering, operations, Activation.NONE, None, n)
    found = product(lowering, m, w[None], kind=terms(lowering, m, depth, w))
    multiply(lowering, operations[0], x, depth, found, after)


def _batched(lowering: Lowering, operations: Sequence[int], op: BatchMatMul, x: int, y: int) -> None:
    left, right = lowering.shape(x), lowering.shape(y)
    depth, m = left[-2:] if op.adjoint_x else left[-2:][::-1]
    n = right[-2] if op.adjoint_y else right[-1]
    batches = static(broadcast((left[:-2], right[:-2])))
    if not op.adjoint_x and math.prod(right[:-2]) == 1:
        m, batches, left = m * math.prod(batches), (), left[-2:]  # all rows meet one matrix
        right = right[-2:]
    b, ldb, extra = _right(lowering, operations[0], op, y, depth, n)
    offsets = offsets_of(lowering, (left[:-2], right[:-2]), batches, (m * depth, depth * ldb))
    count = math.prod(batches)
    tile = evolve(product_tile(m, n, depth, lowering.isa), ahead=0, stream=False)
    parts = panels(n, tile.columns, lowering.isa)
    work = row_work(Shape(m, n, depth), tile, parts, depth * 4, lowering.isa, lowering.threads, count)
    after = tail(lowering, operations, Activation.NONE, None, n)
    slots: dict[str, Slot] = {
        **after.slots,
        "a": lowering.operand(x),
        "b": b,
        "c": after.place,
        "offsets": offsets,
        "per_batch": work.tiles,
        "k": depth,
        "a_row": 1 if op.adjoint_x else depth,
        "a_step": m if op.adjoint_x else 1,
        "ldb": ldb,
        "ldc": n,
        "m": m,
        "n": n,
        "mc": work.mc,
        "panels": parts,
        "panel_bytes": 0,
    }
    algorithm = BatchedContraction(tile, FloatTerms(masked=not extra), after.epilogue, strided=True)
    reads = (x, *(() if extra else (y,)), *after.reads)
    flops = 2 * count * m * n * depth
    lowering.emit(operations[0], algorithm, slots, count * work.tiles, reads, after.writes, flops, accesses=extra)


def offsets_of(
    lowering: Lowering, sides: Sequence[Sequence[int]], batches: Sequence[int], sizes: Sequence[int]
) -> Pointer:
    """Where the matrices of each batch begin in both operands, whose batches broadcast and whose matrices have so many
    elements [batches, 2]: in elements.
    """
    left, right = sides
    return lowering.computed(partial(_offsets, len(left), len(right)), *left, *right, *batches, *sizes)


def _offsets(left: int, right: int, *numbers: int) -> Array:
    """The offsets for the batches of both operands, so many dimensions each, those of the result, and both sizes."""
    *dims, first, second = numbers
    sides = ((dims[:left], first), (dims[left : left + right], second))
    batches = dims[left + right :]
    starts = [np.arange(math.prod(own), dtype=np.int64).reshape(own) * size for own, size in sides]
    return np.stack([np.broadcast_to(each, batches).reshape(-1) for each in starts], -1)


def _right(
    lowering: Lowering, at: int, op: BatchMatMul, y: int, depth: int, n: int
) -> tuple[Pointer, int, tuple[Access, ...]]:
    """The right side with its columns as neighbours, the distance of its rows, and the scratch memory it is in.

    It is copied there where it lies the other way round, or where a row's last register cannot be read in part.
    """
    lanes = lowering.isa.f32
    if not op.adjoint_y and (lowering.isa.masks or n % lanes == 0):
        return lowering.operand(y), n, ()
    shape = lowering.shape(y)
    count = math.prod(shape[:-2])
    ldb = -(-n // lanes) * lanes
    (room,) = lowering.scratch(count * depth * ldb * 4)
    own = operand(lowering, y)
    flat = own.view.reshape(count, *shape[-2:])
    target = side(room.pointer, (count, depth, ldb), 4)
    move(lowering, at, own.at(flat.swapaxes(1, 2) if op.adjoint_y else flat), target.at(target.view[:, :, :n]), (y,))
    return room.pointer, ldb, (evolve(room, write=False),)
