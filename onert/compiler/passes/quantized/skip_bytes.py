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
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary

from .scales import BYTES, Stored, dequantized, number, whole_in

_ELEMENTWISE = Unary, LeakyRelu, Binary, Comparison, Select, Cast
_MOST = 4
"""Tensors of bytes that one element of floats may be made of directly."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def skip_bytes(subgraph: Subgraph) -> Subgraph:
    """Read the whole numbers that become bytes where all that reads these bytes makes floats of them again.

    The results are the same to the bit but for not-a-number, which stays one and is no byte. What computes the numbers
    and what reads them can then be one loop. Not where a layer multiplies the floats, maybe moved: it may be found to
    multiply the bytes once shapes are known. Nor where each byte becomes another byte, as in quantised
    `y * sigmoid(y)`: a backend can look up the result in a table of 256.

        q = Cast(f) as u8; a = Binary.SUB(Cast(q), zero); y = Binary.MUL(Cast(a), scale)
            -->   a = Binary.SUB(f, zero); y = Binary.MUL(a, scale)
    """
    edit = Edit(subgraph)
    readers = _readers(subgraph)
    mapped = _mapped(subgraph) if readers else set()
    for operation in subgraph.operations:
        if not isinstance(operation.op, Cast) or operation.op.to not in BYTES:
            continue
        stored, source = operation.outputs[0], operation.used[0]
        found = readers.get(stored, [])
        if stored in subgraph.kept or stored in mapped or not whole_in(subgraph, source, operation.op.to):
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


def _mapped(subgraph: Subgraph) -> set[int]:
    """The tensors of bytes from which only bytes are made, element by element and with single constants, and these."""
    roots: dict[int, int] = {}
    near: dict[int, frozenset[int]] = {}
    """Of floats: the bytes that they are a function of, and those that they are made of directly."""
    left: set[int] = set()
    for operation in subgraph.operations:
        given = [i for i in operation.used if subgraph.operands[i].data is None or number(subgraph, i) is None]
        for i in given:
            if subgraph.type(i).dtype in BYTES:
                roots.setdefault(i, i)
                near[i] = frozenset((i,))
        made_of = frozenset[int]().union(*(near[i] for i in given if i in near))
        is_function = isinstance(operation.op, _ELEMENTWISE) and len({roots.get(i) for i in given} - {None}) == 1
        if is_function and all(i in roots for i in given) and len(made_of) <= _MOST:
            (result,) = operation.outputs
            roots[result] = roots[given[0]]
            near[result] = made_of
            if result in subgraph.kept and subgraph.type(result).dtype not in BYTES:
                left |= made_of
        else:
            left.update(*(near[i] for i in given if i in near and subgraph.type(i).dtype not in BYTES))
    return {i for i, root in roots.items() if subgraph.type(i).dtype in BYTES and root not in left}


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
