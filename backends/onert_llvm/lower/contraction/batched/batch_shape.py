"""The two sides of batched matrix products, for any element type."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import evolve, frozen

from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.shape import broadcast, static
from onert_llvm.command.command import Access, Pointer
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import offsets_of
from onert_llvm.lower.strided_copy import move, operand, side


@frozen(eq=False)
class BatchShape:
    """The sizes of a product, and the batches of both sides: their own, and as they broadcast."""

    m: int
    k: int
    n: int
    own: tuple[Sequence[int], Sequence[int]]
    batches: Sequence[int]

    @property
    def count(self) -> int:
        """The number of products."""
        return math.prod(self.batches)

    @property
    def flops(self) -> int:
        return 2 * self.count * self.m * self.n * self.k

    def offsets(self, lowering: Lowering, left: int, right: int) -> Pointer:
        """The element offsets of each batch's matrices in both operands, [batches, 2]; `left` and `right` are the sizes
        of their matrices.
        """
        return offsets_of(lowering, self.own, self.batches, (left, right))


def batch_shape(lowering: Lowering, at: int) -> BatchShape:
    """The sides of a product as in the model."""
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, BatchMatMul)
    left, right = (lowering.shape(i) for i in operation.used)
    depth, m = left[-2:] if op.adjoint_x else left[-2:][::-1]
    n = right[-2] if op.adjoint_y else right[-1]
    return BatchShape(m, depth, n, (left[:-2], right[:-2]), static(broadcast((left[:-2], right[:-2]))))


def row_major_bytes(lowering: Lowering, at: int, step: int) -> int:
    """The bytes that the right side needs with rows `step` elements apart."""
    y = lowering.operation(at).used[1]
    matrices = math.prod(lowering.shape(y)[:-2])
    return matrices * batch_shape(lowering, at).k * step * lowering.type(y).dtype.itemsize


def row_major_left(lowering: Lowering, at: int, room: Access) -> Access:
    """The transposed left side copied to scratch memory with contiguous rows."""
    x = lowering.operation(at).used[0]
    own = operand(lowering, x)
    flat = own.view.reshape(math.prod(own.view.shape[:-2]), *own.view.shape[-2:]).swapaxes(1, 2)
    move(lowering, at, own.at(flat), side(room.pointer, flat.shape, own.view.itemsize), (x,))
    return evolve(room, write=False)


def row_major_right(lowering: Lowering, at: int, step: int, room: Access) -> Access:
    """The right side copied to scratch memory with contiguous columns and rows `step` elements apart."""
    operation, sides = lowering.operation(at), batch_shape(lowering, at)
    op, y = operation.op, operation.used[1]
    own = operand(lowering, y)
    flat = own.view.reshape(math.prod(own.view.shape[:-2]), *own.view.shape[-2:])
    there = side(room.pointer, (flat.shape[0], sides.k, step), own.view.itemsize)
    source = own.at(flat.swapaxes(1, 2) if isinstance(op, BatchMatMul) and op.adjoint_y else flat)
    move(lowering, at, source, there.at(there.view[:, :, : sides.n]), (y,))
    return evolve(room, write=False)
