"""Fold the transpose of a matrix product's right-hand side into the product."""

from __future__ import annotations

from attrs import evolve

from onert.compiler.passes.quantized.scales import dequantized
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import DType, Operation, Subgraph
from onert.ir.ops.contraction.matmul import BatchMatMul

from .merge_transposes import permutation


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def fuse_transposes(subgraph: Subgraph) -> Subgraph:
    """Let a float product read its right-hand side untransposed if it is the only reader of the transpose.

    Backends then see that the elements along the summed axis are contiguous. Dequantised bytes are left for other
    passes, and the transpose is left to `remove_dead`.

        b = Transpose(y, last two axes); z = BatchMatMul(x, b)   -->   z = BatchMatMul(x, y) {adjoint_y}
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        source = _untransposed(subgraph, operation)
        if source is not None:
            product = evolve(operation, op=BatchMatMul(adjoint_y=True), inputs=(operation.used[0], source))
            edit.replace(at, product)
    return edit.done()


def _untransposed(subgraph: Subgraph, operation: Operation) -> int | None:
    """The operand that the right-hand side is a transpose (of the last two axes) of; None if it is not one."""
    if operation.op != BatchMatMul() or subgraph.type(operation.outputs[0]).dtype is not DType.FLOAT32:
        return None
    right = operation.used[1]
    producer = definer(subgraph, right)
    order = None if producer is None else permutation(subgraph, producer)
    if producer is None or order is None or len(subgraph.uses.get(right, ())) != 1 or right in subgraph.kept:
        return None
    rank, source = len(order), producer.used[0]
    if tuple(order) != (*range(rank - 2), rank - 1, rank - 2) or dequantized(subgraph, source) is not None:
        return None
    return source
