"""Bytes that nothing but arithmetic reads are not made."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import Operand, Operation, Subgraph
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast

from .scales import BYTES, Stored, dequantized, whole_in


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def skip_bytes(subgraph: Subgraph) -> Subgraph:
    """Read the whole numbers that become bytes where all that reads these bytes makes floats of them again.

    The results are the same to the bit but for not-a-number, which stays one and is no byte. What computes the numbers
    and what reads them can then be one loop. Not where a layer multiplies the floats, maybe moved: it may be found to
    multiply the bytes once shapes are known.

        q = Cast(f) as u8; a = Binary.SUB(Cast(q), zero); y = Binary.MUL(Cast(a), scale)
            -->   a = Binary.SUB(f, zero); y = Binary.MUL(a, scale)
    """
    edit = Edit(subgraph)
    readers = _readers(subgraph)
    for operation in subgraph.operations:
        if not isinstance(operation.op, Cast) or operation.op.to not in BYTES:
            continue
        stored, source = operation.outputs[0], operation.used[0]
        found = readers.get(stored, [])
        if stored in subgraph.kept or not whole_in(subgraph, source, operation.op.to):
            continue
        if {step for each in found for step in each.steps[-1:]} != set(subgraph.uses.get(stored, ())):
            continue
        if any(_is_multiplied(subgraph, subgraph.operations[each.steps[0]].outputs[0]) for each in found):
            continue
        for each in found:
            _read_floats(edit, each, source)
    return edit.done()


def _readers(subgraph: Subgraph) -> dict[int, list[Stored]]:
    """The dequantised forms of all bytes."""
    found: dict[int, list[Stored]] = {}
    for operation in subgraph.operations:
        if isinstance(operation.op, Binary) and operation.op.kind is BinaryKind.MUL:
            stored = dequantized(subgraph, operation.outputs[0])
            if stored is not None and isinstance(getattr(definer(subgraph, stored.operand), "op", None), Cast):
                found.setdefault(stored.operand, []).append(stored)
    return found


def _is_multiplied(subgraph: Subgraph, operand: int) -> bool:
    """Whether layers that may multiply bytes read floats, as they are or moved."""
    for at in subgraph.uses.get(operand, ()):
        user = subgraph.operations[at]
        if isinstance(user.op, Conv2D | FullyConnected | BatchMatMul):
            return True
        if user.op.stored and not isinstance(user.op, Cast) and len(user.outputs) == 1 and user.inputs[0] == operand:
            return _is_multiplied(subgraph, user.outputs[0])
    return False


def _read_floats(edit: Edit, each: Stored, source: int) -> None:
    """The product that makes floats reads the numbers, less the zero point."""
    at = each.steps[0]
    product = edit.subgraph.operations[at]
    inner = edit.subgraph.operations[each.steps[1]].outputs[0]
    centred, written = source, []
    if each.zero:
        centred = edit.operand(Operand(evolve(edit.subgraph.type(source), data=None)))
        zero = edit.constant(np.array(each.zero, np.float32))
        written = [Operation(Binary(BinaryKind.SUB), (source, zero), (centred,), product.location)]
    changed = tuple(centred if i == inner else i for i in product.inputs)
    edit.replace(at, *written, evolve(product, inputs=changed))
