"""Skip the conversion to bytes that are only dequantised again."""

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
"""How many byte tensors an element-wise expression of floats may read directly."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def skip_bytes(subgraph: Subgraph) -> Subgraph:
    """Read the rounded floats directly if all readers of the bytes would convert them back to floats.

    Results are bit-identical except that NaN stays NaN. Producer and readers can then be fused into one loop. This is
    not done if a layer multiplies the floats, possibly moved: the layer may turn out to multiply bytes once shapes are
    known. Nor if each byte becomes another byte, as in quantised `y * sigmoid(y)`: a backend can look these up in a
    table of 256.

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
    """The dequantised forms of each byte tensor that results from a cast."""
    found: dict[int, list[Stored]] = {}
    for operation in subgraph.operations:
        if isinstance(operation.op, Binary) and operation.op.kind is BinaryKind.MUL:
            stored = dequantized(subgraph, operation.outputs[0])
            if stored is not None and isinstance(getattr(definer(subgraph, stored.operand), "op", None), Cast):
                found.setdefault(stored.operand, []).append(stored)
    return found


def _is_multiplied(subgraph: Subgraph, operand: int) -> bool:
    """Whether a layer that may multiply bytes reads the floats, directly or moved."""
    for at in subgraph.uses.get(operand, ()):
        user = subgraph.operations[at]
        if isinstance(user.op, Conv2D | FullyConnected | BatchMatMul):
            return True
        if user.op.stored and not isinstance(user.op, Cast) and len(user.outputs) == 1 and user.inputs[0] == operand:
            return _is_multiplied(subgraph, user.outputs[0])
    return False


def _mapped(subgraph: Subgraph) -> set[int]:
    """The byte tensors from which, element by element and with scalar constants, only bytes are computed, and these."""
    roots: dict[int, int] = {}
    sources_of: dict[int, frozenset[int]] = {}
    """`roots` has the byte tensor that each tensor is a function of, `sources_of` the byte tensors that it directly
    reads."""
    excluded: set[int] = set()
    for operation in subgraph.operations:
        operands = [i for i in operation.used if subgraph.operands[i].data is None or number(subgraph, i) is None]
        for i in operands:
            if subgraph.type(i).dtype in BYTES:
                roots.setdefault(i, i)
                sources_of[i] = frozenset((i,))
        sources = frozenset[int]().union(*(sources_of[i] for i in operands if i in sources_of))
        is_function = isinstance(operation.op, _ELEMENTWISE) and len({roots.get(i) for i in operands} - {None}) == 1
        if is_function and all(i in roots for i in operands) and len(sources) <= _MOST:
            (result,) = operation.outputs
            roots[result] = roots[operands[0]]
            sources_of[result] = sources
            if result in subgraph.kept and subgraph.type(result).dtype not in BYTES:
                excluded |= sources
        else:
            excluded.update(
                *(sources_of[i] for i in operands if i in sources_of and subgraph.type(i).dtype not in BYTES)
            )
    return {i for i, root in roots.items() if subgraph.type(i).dtype in BYTES and root not in excluded}


def _read_floats(edit: Edit, each: Stored, source: int) -> None:
    """Let the dequantising product read the rounded floats minus the zero point."""
    at = each.steps[0]
    product = edit.subgraph.operations[at]
    inner = edit.subgraph.operations[each.steps[1]].outputs[0]
    centred, subtraction = source, []
    if each.zero:
        centred = edit.operand(Operand(evolve(edit.subgraph.type(source), data=None)))
        zero = edit.constant(np.array(each.zero, np.float32))
        subtraction = [Operation(Binary(BinaryKind.SUB), (source, zero), (centred,), product.location)]
    changed = tuple(centred if i == inner else i for i in product.inputs)
    edit.replace(at, *subtraction, evolve(product, inputs=changed))
