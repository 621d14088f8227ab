"""What an operation costs, counted from its types: arithmetic and memory traffic, for profiles and for ranks."""

from __future__ import annotations

from attrs import frozen

from onert.ir.op import Op
from onert.ir.types import CallTypes
from onert.ir.value import Value


@frozen
class Cost(Value):
    """`flops`: multiplications and additions. `nbytes`: bytes of operands and results, each counted once. `rounds`:
    those of Python's loops, where the operation is evaluated.
    """

    flops: int
    nbytes: int
    rounds: int = 0


def cost(op: Op, types: CallTypes) -> Cost:
    """The cost of one run. Results with unknown dimensions count nothing; movement does no arithmetic."""
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    known = [t for t in present if t.is_static]
    nbytes = sum(t.nbytes for t in known)
    if len(known) < len(present) or not types.outputs:
        return Cost(0, nbytes)
    return Cost(0 if op.stored else op.flops(types), nbytes, op.rounds(types))
