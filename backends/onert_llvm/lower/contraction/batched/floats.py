"""Batched matrix products in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import evolve

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.symbolic.trace import hint
from onert_llvm.command.command import Access
from onert_llvm.kernels.contraction.batched.batched import BatchedContraction
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.contraction.float_terms import FloatTerms
from onert_llvm.kernels.contraction.register_tile import Tile, columns
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.attention import softmax_of_products
from onert_llvm.lower.contraction.bfloat.computed import paired, worth_pairs
from onert_llvm.lower.contraction.dots import dots
from onert_llvm.lower.contraction.epilogue import epilogue_task
from onert_llvm.lower.contraction.float_conv_fc import multiply_constant
from onert_llvm.lower.contraction.partition import partition
from onert_llvm.schedule.cost_model import Shape, lanes_for, product_tile

from .batch_shape import batch_shape, row_major_bytes, row_major_left, row_major_right

_WIDE = 8
"""From this many registers of columns on, a single row is computed without others beside it."""
_MANY_COLUMNS = 64
"""From this many columns on, transposing a matrix whose rows are columns of memory takes less time than it saves."""
_FEW_ROWS, _MANY_TERMS = 8, 128
"""Limits for leaving a matrix untransposed: with more rows transposing it pays, and with fewer terms the horizontal
sums take too long.
"""


def why_not(op: BatchMatMul, types: CallTypes) -> str | None:
    """Why this backend does not run the product; None if it does."""
    if any(t is not None and t.dtype is not DType.FLOAT32 for t in (*types.inputs, *types.outputs)):
        return "only float32 is native"
    if 0 in (*types.input(0).shape, *types.input(1).shape):
        return "a tensor has no elements"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A product and its epilogue, or an attention, which ends in another product.

    A constant right-hand matrix is packed like that of a fully connected layer.
    """
    if any(isinstance(lowering.operation(at).op, Softmax) for at in operations):
        softmax_of_products.lower(lowering, operations)
        return
    _, operation, op = lowering.first(operations, BatchMatMul)
    x, y = operation.used
    one = math.prod(lowering.shape(y)[:-2]) == 1
    vector = lowering.shape(y)[-2 if op.adjoint_y else -1] == 1
    if one and not op.adjoint_x and not vector and lowering.subgraph.operands[y].is_constant:
        _packed(lowering, operations, op, x, lowering.elements(y).reshape(lowering.shape(y)[-2:]))
    else:
        _batched(lowering, operations, op, x, y)


def _packed(lowering: Lowering, operations: Sequence[int], op: BatchMatMul, x: int, weights: Array) -> None:
    w = weights.T if op.adjoint_y else weights
    depth, n = w.shape
    m = math.prod(lowering.shape(x)) // depth
    after = epilogue_task(lowering, operations, Activation.NONE, None, n)
    multiply_constant(lowering, operations[0], x, m, w, after)


def _batched(lowering: Lowering, operations: Sequence[int], op: BatchMatMul, x: int, y: int) -> None:
    at, sides = operations[0], batch_shape(lowering, operations[0])
    if not op.adjoint_x and math.prod(sides.own[1]) == 1:
        sides = evolve(sides, m=sides.m * sides.count, own=((), ()), batches=())  # all rows share one matrix
    if sides.n == 1 and not op.adjoint_x:  # the rows of x times a vector
        after, own = epilogue_task(lowering, operations, Activation.NONE, None, sides.m), sides.own[::-1]
        dots(lowering, at, y, x, (1, sides.m, sides.k), after, own, sides.batches)
        return
    rows = _FEW_ROWS if sides.k >= _MANY_TERMS else 1
    if op.adjoint_y and not op.adjoint_x and sides.m <= rows:  # transposing y would take longer
        after = epilogue_task(lowering, operations, Activation.NONE, None, sides.n)
        dots(lowering, at, x, y, (sides.m, sides.n, sides.k), after, sides.own, sides.batches)
        return
    depth, n, strided = sides.k, sides.n, op.adjoint_x
    isa = lanes_for(Shape(sides.m, n, depth), lowering.isa)
    kind, reads, extra = Terms.FLOAT, [x, y], tuple[Access, ...]()
    source, b, ldb = lowering.operand(x), lowering.operand(y), n
    if worth_pairs(lowering, op, sides.m, depth, n):
        made = paired(lowering, at, op, x, y)
        kind, reads, extra, depth = Terms.PAIRED, [], (made.left, made.right), depth // 2
        source, b, ldb, padded = made.left.pointer, made.right.pointer, made.ldb, True
    else:
        padded = op.adjoint_y or not (isa.masks or n % isa.f32 == 0)  # without masks, a row's tail cannot be loaded
        ldb = isa.whole(n) if padded else n
        turned = op.adjoint_x and hint(n) >= _MANY_COLUMNS
        strided = op.adjoint_x and not turned
        left = math.prod(lowering.shape(x)) * 4 if turned else 0
        rooms = lowering.scratch(left, row_major_bytes(lowering, at, ldb) if padded else 0)
        if turned:
            extra = (row_major_left(lowering, at, rooms[0]),)
            source = extra[0].pointer
        if padded:
            extra += (row_major_right(lowering, at, ldb, rooms[1]),)
            b = extra[-1].pointer
        reads = [*(() if turned else (x,)), *(() if padded else (y,))]
    shape = Shape(sides.m, n, depth)
    if sides.m == 1 and n >= _WIDE * isa.f32:  # the rows of y are read in long runs
        tile = Tile(1, columns(n, isa.registers // 2, isa))
    else:
        tile = evolve(product_tile(sides.m, n, depth, isa), ahead=0, stream=0)
    work, slots = partition(lowering, shape, tile, depth * 4, b, 0, sides.count, isa)
    after = epilogue_task(lowering, operations, Activation.NONE, None, n)
    slots |= {
        **after.slots,
        "a": source,
        "c": after.place,
        "offsets": sides.offsets(lowering, sides.m * depth, depth * ldb),
        "per_batch": work.tiles,
        "k": depth,
        "a_row": 1 if strided else depth,
        **({"a_step": sides.m} if strided else {}),
        "ldb": ldb,
    }
    algorithm = BatchedContraction(tile, FloatTerms(masked=not padded, kind=kind), after.epilogue, strided=strided)
    read = (*reads, *after.reads)
    lowering.emit(at, algorithm, slots, sides.count * work.tiles, read, after.writes, sides.flops, extra, isa=isa)
