"""Products of two computed float matrices in bfloat16: both are first converted to pairs."""

from __future__ import annotations

import math

from attrs import evolve, frozen

from onert.ir.ops.contraction.matmul import BatchMatMul
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.bfloat.pair_rows import PairRows
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, side

from .layers import rounded_rows

_LEAST = 32
"""The fewest rows, columns and terms for which rounding pays: each element is used that often at least."""


@frozen(eq=False)
class Pairs:
    """Both sides as pairs of terms: the left rows dense, the right rows (one per two terms) `ldb` pairs apart."""

    left: Access
    right: Access
    ldb: int


def worth_pairs(lowering: Lowering, op: BatchMatMul, m: int, depth: int, n: int) -> bool:
    """Whether this product of `m` rows, `depth` terms and `n` columns is faster in bfloat16, if that is allowed."""
    if lowering.settings.precision != "bf16" or not lowering.isa.bfloat or op.adjoint_x:
        return False
    return bool(depth % 2 == 0 and m >= _LEAST and n >= _LEAST and depth >= _LEAST)


def paired(lowering: Lowering, at: int, op: BatchMatMul, x: int, y: int) -> Pairs:
    """Emit the commands that round both sides, in scratch memory that nothing else in the operation uses."""
    left, right = lowering.shape(x), lowering.shape(y)
    rows, depth, count = math.prod(left[:-1]), left[-1], math.prod(right[:-2])
    n, steps = right[-2] if op.adjoint_y else right[-1], depth // 2
    ldb = lowering.isa.whole(n)
    turned = count * n * steps * 4 if op.adjoint_y else 0
    own, other, room = lowering.scratch(rows * steps * 4, count * steps * ldb * 4, turned)
    own = rounded_rows(lowering, at, lowering.operand(x), (rows, depth, depth), (x,), own)
    if op.adjoint_y:
        room = rounded_rows(lowering, at, lowering.operand(y), (count * n, depth, depth), (y,), room)
        given = side(room.pointer, (count, n, steps), 4)
        target = side(other.pointer, (count, steps, ldb), 4)
        move(lowering, at, given.at(given.view.swapaxes(1, 2)), target.at(target.view[:, :, :n]), ())
    else:
        slots: dict[str, Slot] = {"x": lowering.operand(y), "out": other.pointer, "n": n, "pitch": ldb}
        lowering.emit(at, PairRows(), slots, count * steps, (y,), (), 0, (other,))
    return Pairs(own, evolve(other, write=False), ldb)
