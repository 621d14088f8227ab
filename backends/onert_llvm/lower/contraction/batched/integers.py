"""Batched matrix products of quantised integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic.rescale import product_multiplier
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.symbolic.trace import largest
from onert.ir.value import Value
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize
from onert_llvm.kernels.contraction.batched.batched import BatchedContraction
from onert_llvm.kernels.contraction.batched.integer_terms import CentreBytes, CentredTerms, HalvesUp, WideTerms
from onert_llvm.kernels.contraction.byte_terms import Bytes
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.partition import partition
from onert_llvm.lower.strided_copy import move, operand, side
from onert_llvm.schedule.cost_model import Shape, product_tile
from onert_llvm.schedule.weight_packing import pack_columns, scaling

from .batch_shape import BatchShape, batch_shape, row_major_bytes, row_major_right

_MOST = (1 << 31) // (255 * 255)
"""The number of products of bytes less their zero points whose sum fits in 32 bits."""


def why_not(op: BatchMatMul, types: CallTypes) -> str | None:
    """Why this backend does not run the product; None if it does."""
    x, y, out = types.input(0), types.input(1), types.output
    if x.dtype not in (DType.INT8, DType.INT16) or out.dtype is not x.dtype:
        return "only conversions between 8 and 16-bit integers are native"
    if any(t.quantization is None or not t.quantization.per_tensor for t in (x, y, out)):
        return "its quantisation has no native form"
    if 0 in (*x.shape, *y.shape):
        return "a tensor has no elements"
    if x.dtype is DType.INT8:
        depth = x.shape[-2 if op.adjoint_x else -1] or 0
        return None if depth < _MOST else f"its sums have {depth} terms, expected fewer than {_MOST}"
    if out.zero_point:
        return "a zero point is not 0"
    _, (shift,) = product_multiplier(x, y, out)
    return None if shift <= 14 else "its sums are multiplied by more than 16 bits"


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A product tile by tile, batch by batch; transposed sides are first copied to scratch memory."""
    at, operation, op = lowering.single(operations, BatchMatMul)
    types = lowering.subgraph.types(operation)
    x, y = operation.used
    sides = batch_shape(lowering, at)
    whole = types.output.dtype is DType.INT8
    tile = evolve(product_tile(sides.m, sides.n, sides.k, lowering.isa, integer=True), ahead=0, stream=0)
    left, right = _scratch(lowering, at, op, sides, whole)
    a = _left(lowering, at, op, x, left, whole)
    b = _right(lowering, at, sides, right)
    shape = Shape(sides.m, sides.n, sides.k, integer=True)
    work, slots = partition(lowering, shape, tile, sides.k * 2, b.pointer, 0, sides.count)
    slots |= {
        "a": a.pointer,
        "c": lowering.operand(operation.outputs[0]),
        "offsets": sides.offsets(lowering, sides.m * a.step, sides.k * b.step),
        "per_batch": work.tiles,
        "k": sides.k // 2 if whole else sides.k,
        "a_row": a.step,
        "ldb": b.step,
    }
    reads = tuple(i for i, one in ((x, a), (y, b)) if one.access is None)
    touched = tuple(evolve(one.access, write=False) for one in (a, b) if one.access is not None)
    if whole:
        how, own = _requantized(lowering, types, sides.k)
        own["odd"] = sides.k % 2
        algorithm = BatchedContraction(tile, CentredTerms(), Bytes(how, alike=True))
    else:
        own = _multiplier(types)
        algorithm = BatchedContraction(tile, WideTerms(types.input(1).dtype is DType.INT16), HalvesUp())
    lowering.emit(at, algorithm, slots | own, sides.count * work.tiles, reads, operation.outputs, sides.flops, touched)


def _requantized(lowering: Lowering, types: CallTypes, depth: int) -> tuple[Requantize, dict[str, Slot]]:
    x, y, out = types.input(0), types.input(1), types.output
    pair = product_multiplier(x, y, out)
    how = scaling(np.array([largest(depth) * 255 * 255]), pair, out.zero_point)
    columns = pack_columns(how, np.zeros(lowering.isa.f32, np.int64), pair, out.zero_point, lowering.isa)
    kind = Requantize(how)
    slots: dict[str, Slot] = {"columns": lowering.constant(columns), "zero_point": out.zero_point}
    return kind, {**{name: slots[name] for name in kind.slots}, "zero": y.zero_point}


def _multiplier(types: CallTypes) -> dict[str, Slot]:
    """TFLite's 16-bit mantissa, and the right shift of its products."""
    (mantissa,), (shift,) = product_multiplier(types.input(0), types.input(1), types.output)
    reduced = (int(mantissa) + (1 << 15)) >> 16 if mantissa < 0x7FFF0000 else 0x7FFF
    return {"mantissa": reduced, "right": 15 - int(shift)}


@frozen
class _Side(Value):
    """One side as kernels read it: rows `step` elements apart, in scratch memory if `access` is set."""

    pointer: Pointer
    step: int
    access: Access | None = None


@frozen
class _LeftScratch(Value):
    """Scratch memory for the left side: transposed, and centred. None where not needed."""

    transposed: Access | None
    centred: Access | None


def _scratch(
    lowering: Lowering, at: int, op: BatchMatMul, sides: BatchShape, whole: bool
) -> tuple[_LeftScratch, Access | None]:
    """The scratch memory of both sides, requested at once because it is all live during the operation."""
    x = lowering.operation(at).used[0]
    left = math.prod(sides.own[0]) * sides.m
    even, padded = -(-sides.k // 2) * 2, _padded(lowering, sides)
    sizes = (
        left * sides.k * lowering.type(x).dtype.itemsize if op.adjoint_x else 0,
        left * even * 2 if whole else 0,
        row_major_bytes(lowering, at, padded) if op.adjoint_y or padded > sides.n else 0,
    )
    found = lowering.scratch(*sizes)
    rooms = [room if size else None for room, size in zip(found, sizes, strict=True)]
    return _LeftScratch(rooms[0], rooms[1]), rooms[2]


def _padded(lowering: Lowering, sides: BatchShape) -> int:
    """The number of columns, rounded up to whole registers."""
    return lowering.isa.whole(sides.n)


def _left(lowering: Lowering, at: int, op: BatchMatMul, x: int, rooms: _LeftScratch, whole: bool) -> _Side:
    """The left side with contiguous terms; bytes become an even number of 16-bit numbers less their zero point."""
    own = operand(lowering, x)
    flat = own.view.reshape(-1, *own.view.shape[-2:])
    plain = _Side(own.pointer, own.view.shape[-1])
    if rooms.transposed is not None:
        transposed = flat.swapaxes(1, 2)
        there = side(rooms.transposed.pointer, transposed.shape, lowering.type(x).dtype.itemsize)
        move(lowering, at, own.at(transposed), there, (x,))
        plain = _Side(rooms.transposed.pointer, transposed.shape[2], rooms.transposed)
    if not whole or rooms.centred is None:
        return plain
    rows = math.prod(flat.shape) // plain.step
    even = -(-plain.step // 2) * 2
    slots: dict[str, Slot] = {"x": plain.pointer, "out": rooms.centred.pointer, "width": plain.step, "out_step": even}
    slots["zero"] = lowering.type(x).zero_point
    reads = () if plain.access is not None else (x,)
    touched = (rooms.centred, *(() if plain.access is None else (evolve(plain.access, write=False),)))
    lowering.emit(at, CentreBytes(), slots, rows, reads, (), rows * even, touched)
    return _Side(rooms.centred.pointer, even, rooms.centred)


def _right(lowering: Lowering, at: int, sides: BatchShape, room: Access | None) -> _Side:
    """The right side with contiguous columns, rounded up to whole registers."""
    if room is None:
        return _Side(lowering.operand(lowering.operation(at).used[1]), sides.n)
    padded = _padded(lowering, sides)
    return _Side(room.pointer, padded, row_major_right(lowering, at, padded, room))
