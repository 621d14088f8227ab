"""The cost of an operation, derived from its types: arithmetic and memory traffic, for profiles and for ranking."""

from __future__ import annotations

from attrs import frozen

from onert.ir.op import Op
from onert.ir.types import CallTypes
from onert.ir.value import Value


@frozen
class Cost(Value):
    """`flops`: multiplications and additions. `nbytes`: bytes of operands and results, each counted once. `rounds`:
    Python loop iterations, if the operation is evaluated in NumPy.
    """

    flops: int
    nbytes: int
    rounds: int = 0


def cost(op: Op, types: CallTypes) -> Cost:
    """The cost of one run. Tensors with unknown dimensions are not counted; moving elements is no arithmetic."""
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    known = [t for t in present if t.is_static]
    nbytes = sum(t.nbytes for t in known)
    if len(known) < len(present) or not types.outputs:
        return Cost(0, nbytes)
    return Cost(0 if op.stored else op.flops(types), nbytes, op.rounds(types))
