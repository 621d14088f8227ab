"""Sums of bytes as 32-bit integers: a conversion and the reduction that alone reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onert.ir import DType, Subgraph
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.reduction.reduce import Reduce, Reduction, axes_of
from onert.ir.shape import static
from onert_llvm.kernels.reduction.fold import Fold
from onert_llvm.kernels.reduction.quantized_elements import Widened
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES, KINDS

from .block import reduction
from .runs import block_of, runs_of


def chains(subgraph: Subgraph, operations: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The conversion and the reduction of each sum."""
    present = set(operations)
    for at in operations:
        operation = subgraph.operations[at]
        if not isinstance(operation.op, Reduce) or operation.op.kind is not Reduction.SUM:
            continue
        source, axes = (subgraph.operands[i] for i in operation.used)
        made_by = subgraph.definitions.get(operation.used[0])
        if made_by not in present or source.type.dtype is not DType.INT32 or axes.data is None:
            continue
        if subgraph.uses.get(operation.used[0]) != (at,) or operation.used[0] in subgraph.kept:
            continue
        if not isinstance(subgraph.operations[made_by].op, Cast) or not source.type.is_static:
            continue
        given, shape = subgraph.type(subgraph.operations[made_by].used[0]), static(source.type.shape)
        if 0 in shape:
            continue
        one = sum(reduced for reduced, _ in runs_of(shape, axes_of(axes.data.array, len(shape)))) == 1
        if given.dtype in BYTES and given.quantization is None and one:
            yield made_by, at


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """One reduction that widens bytes as it reads them."""
    first, at = operations
    source, operation = lowering.operation(first).used[0], lowering.operation(at)
    shape = lowering.shape(source)
    block = block_of(runs_of(shape, axes_of(lowering.elements(operation.used[1]), len(shape))))
    elements = Widened(Fold.SUM, KINDS[lowering.type(source).dtype])
    reduction(lowering, at, block, elements, {}, read=source)
