"""Products of matrices whose right side lies the other way round."""

from __future__ import annotations

from attrs import evolve

from onert.compiler.passes.quantized.scales import dequantized
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import DType, Operation, Subgraph
from onert.ir.ops.contraction.matmul import BatchMatMul

from .merge_transposes import permutation


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def turn_products(subgraph: Subgraph) -> Subgraph:
    """Let a product of floats take its right side as it lies where that is turned for it alone.

    Backends then see which elements are neighbours: those that a sum multiplies. Bytes under the floats stay for other
    passes to find, and the transpose is left to `remove_dead`.

        b = Transpose(y, last two axes); z = BatchMatMul(x, b)   -->   z = BatchMatMul(x, y) {adjoint_y}
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        source = _turned(subgraph, operation)
        if source is not None:
            turned = evolve(operation, op=BatchMatMul(adjoint_y=True), inputs=(operation.used[0], source))
            edit.replace(at, turned)
    return edit.done()


def _turned(subgraph: Subgraph, operation: Operation) -> int | None:
    """What the right side of a product is where its last two axes change places; None where they do not."""
    if operation.op != BatchMatMul() or subgraph.type(operation.outputs[0]).dtype is not DType.FLOAT32:
        return None
    right = operation.used[1]
    made = definer(subgraph, right)
    order = None if made is None else permutation(subgraph, made)
    if made is None or order is None or len(subgraph.uses.get(right, ())) != 1 or right in subgraph.kept:
        return None
    rank, source = len(order), made.used[0]
    if tuple(order) != (*range(rank - 2), rank - 1, rank - 2) or dequantized(subgraph, source) is not None:
        return None
    return source
