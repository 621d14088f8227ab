"""The two sides of products of matrices in batches, whatever their elements."""

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
class Sides:
    """The sizes of a product, the batches of both sides as they are, and as they broadcast."""

    m: int
    k: int
    n: int
    own: tuple[Sequence[int], Sequence[int]]
    batches: Sequence[int]

    @property
    def count(self) -> int:
        """How many products there are."""
        return math.prod(self.batches)

    @property
    def flops(self) -> int:
        return 2 * self.count * self.m * self.n * self.k

    def offsets(self, lowering: Lowering, left: int, right: int) -> Pointer:
        """Where the matrices of each batch begin in both operands, whose matrices have so many elements [batches, 2]:
        in elements.
        """
        return offsets_of(lowering, self.own, self.batches, (left, right))


def sides_of(lowering: Lowering, at: int) -> Sides:
    """The sides of a product as the model has them."""
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, BatchMatMul)
    left, right = (lowering.shape(i) for i in operation.used)
    depth, m = left[-2:] if op.adjoint_x else left[-2:][::-1]
    n = right[-2] if op.adjoint_y else right[-1]
    return Sides(m, depth, n, (left[:-2], right[:-2]), static(broadcast((left[:-2], right[:-2]))))


def room_of(lowering: Lowering, at: int, step: int) -> int:
    """Bytes that the right side takes if its rows are `step` elements apart."""
    y = lowering.operation(at).used[1]
    matrices = math.prod(lowering.shape(y)[:-2])
    return matrices * sides_of(lowering, at).k * step * lowering.type(y).dtype.itemsize


def turned(lowering: Lowering, at: int, step: int, room: Access) -> Access:
    """The right side copied to scratch memory with its columns as neighbours, its rows `step` elements apart."""
    operation, sides = lowering.operation(at), sides_of(lowering, at)
    op, y = operation.op, operation.used[1]
    own = operand(lowering, y)
    flat = own.view.reshape(math.prod(own.view.shape[:-2]), *own.view.shape[-2:])
    there = side(room.pointer, (flat.shape[0], sides.k, step), own.view.itemsize)
    source = own.at(flat.swapaxes(1, 2) if isinstance(op, BatchMatMul) and op.adjoint_y else flat)
    move(lowering, at, source, there.at(there.view[:, :, : sides.n]), (y,))
    return evolve(room, write=False)
