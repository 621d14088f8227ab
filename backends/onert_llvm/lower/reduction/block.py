"""Reductions of one run of axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.symbolic.trace import hint, is_symbolic
from onert.ir.value import Value
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.reduction.elements import Elements, Plain
from onert_llvm.kernels.reduction.fold import Fold
from onert_llvm.kernels.reduction.reduce import ReduceColumns, ReduceRows
from onert_llvm.lower.command_builder import Lowering

FOLDS = {Reduction.MEAN: Fold.SUM, Reduction.SUM: Fold.SUM, Reduction.MAX: Fold.MAX, Reduction.MIN: Fold.MIN}
"""The folds of numbers of every type; a mean is scaled afterwards."""

_MANY_ROWS = 64
"""The number of rows from which code specialised for their width pays."""
_MOST_VECTORS = 4
"""The most registers of columns that a work tile reduces."""


@frozen
class Block(Value):
    """Elements as `[outer, count, inner]`, reduced along the middle."""

    outer: int
    count: int
    inner: int


def reduction(
    lowering: Lowering,
    at: int,
    block: Block,
    elements: Elements,
    own: Mapping[str, Slot],
    source: Slot | None = None,
    target: Slot | None = None,
    accesses: Sequence[Access] = (),
    read: int | None = None,
) -> None:
    """Emit the reduction of an operation's first operand, or of operand `read`, to its result, or of memory that stands
    for either.

    `own` has the slots for storing results, among them `divisor` for a mean; `accesses` touch what is not an operand.
    """
    operation = lowering.operation(at)
    x, result = operation.used[0] if read is None else read, operation.outputs[0]
    slots: dict[str, Slot] = {
        "in": lowering.operand(x) if source is None else source,
        "out": lowering.operand(result) if target is None else target,
        "width": block.inner,
        **own,
    }
    algorithm: ReduceRows | ReduceColumns = ReduceRows(elements)
    tiles = block.outer
    if block.inner == 1:
        slots["width"] = block.count
        short = isinstance(elements, Plain) and not is_symbolic(block.count) and block.count <= 2 * lowering.isa.f32
        algorithm = ReduceRows(elements, block.count if short and hint(block.outer) >= _MANY_ROWS else 0)
    else:
        # Code is generated for this many registers: a symbolic number becomes a plain one, and a condition.
        vectors = int(min(_MOST_VECTORS, -(-block.inner // lowering.isa.f32)))
        chunks = -(-block.inner // (vectors * lowering.isa.f32))
        algorithm, tiles = ReduceColumns(elements, vectors), block.outer * chunks
        slots |= {"rows": block.count, "chunks": chunks}
    reads, writes = () if source is not None else (x,), () if target is not None else (result,)
    flops = block.outer * block.count * block.inner
    lowering.emit(at, algorithm, slots, tiles, reads, writes, flops, accesses)
