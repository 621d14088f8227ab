"""Chains of element-wise operations that are a function of one byte, as a lookup table.

Examples are `x * sigmoid(x)` on bytes, `quantize(f(dequantize(x)))`, clamps and changes of scale. Nothing between the
byte and the result is stored or computed per element. If the byte is a layer's result (`Rule.tabled`), the layer looks
it up before storing if the target has an instruction for that; otherwise the lookup follows in place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from onert.ir import Array, Op, RuleError, Subgraph, TensorType
from onert.ir.ops.elementwise.binary import AddN, Binary, PRelu
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES

from .float_elementwise import matrix
from .int8_lookup_tables import WHOLE_BYTES, all_bytes, map_rows, one_scale, results
from .op_to_expression import rule_of

_KINDS: tuple[type[Op], ...] = (
    Unary,
    LeakyRelu,
    Binary,
    AddN,
    PRelu,
    Comparison,
    Select,
    Quantize,
    Dequantize,
    Cast,
)
_MOST = 24
"""The most operations of a chain."""


def chains(subgraph: Subgraph, operations: Sequence[int], layers: Collection[int]) -> Iterator[tuple[int, ...]]:
    """The operations of each chain, in order; the first is one of `layers` if its results have no other use.

    A chain that does not begin with a layer has at least two operations.
    """
    position = {at: i for i, at in enumerate(operations)}
    free = {at for at in operations if _maps(subgraph, at)}
    for last in reversed(operations):
        if last not in free or subgraph.type(subgraph.operations[last].outputs[0]).dtype not in WHOLE_BYTES:
            continue
        found = _grown(subgraph, last, free, position)
        if found is None:
            continue
        root = _root(subgraph, found)
        made_by = subgraph.definitions.get(root)
        private = root not in subgraph.kept and set(subgraph.uses[root]) <= set(found)
        follows = made_by is not None and made_by in layers and made_by in position and private
        if (follows or len(found) > 1) and _is_defined(subgraph, found):
            free -= set(found)
            yield (made_by, *found) if follows and made_by is not None else found


def _maps(subgraph: Subgraph, at: int) -> bool:
    """Whether an operation is a function of elements at one position, and of single constants."""
    operation = subgraph.operations[at]
    if not isinstance(operation.op, _KINDS) or len(operation.outputs) != 1:
        return False
    types = subgraph.types(operation)
    given = [t for t in types.inputs if t is not None and not _is_number(t)]
    same = all(t.shape == types.output.shape for t in given)
    return bool(given) and same and 0 not in types.output.shape and all(map(one_scale, (*given, types.output)))


def _is_number(type_: TensorType) -> bool:
    return type_.value is not None and type_.value.size == 1


def _reads(subgraph: Subgraph, members: Collection[int]) -> set[int]:
    """The tensors that operations read and do not compute, except single constants."""
    made = {o for at in members for o in subgraph.operations[at].outputs}
    used = {i for at in members for i in subgraph.operations[at].used}
    return {i for i in used - made if not _is_number(subgraph.operands[i].known)}


def _grown(subgraph: Subgraph, last: int, free: Collection[int], position: Mapping[int, int]) -> tuple[int, ...] | None:
    """The longest chain that ends in `last` and is a function of one byte; None if there is none."""
    members, found = {last}, None
    while True:
        reads = _reads(subgraph, members)
        if len(reads) == 1 and subgraph.type(min(reads)).dtype in BYTES:
            found = tuple(sorted(members, key=position.__getitem__))
        own = [i for i in reads if i not in subgraph.kept and members.issuperset(subgraph.uses[i])]
        more = [subgraph.definitions[i] for i in own if subgraph.definitions.get(i) in free]
        if not more or len(members) == _MOST:
            break
        members.add(max(more, key=position.__getitem__))
    return found


def _is_defined(subgraph: Subgraph, chain: Sequence[int]) -> bool:
    """Whether the chain has a result for every byte; otherwise bad elements must be reported where they occur."""
    if not any(_refuses(subgraph, at) for at in chain):
        return True
    try:
        table(subgraph, chain)
    except RuleError:
        return False
    return True


def _refuses(subgraph: Subgraph, at: int) -> bool:
    """Whether an operation may reject elements."""
    operation = subgraph.operations[at]
    op, types = operation.op, subgraph.types(operation)
    return rule_of(op, types) is not None or (isinstance(op, Quantize) and types.output.quantization is None)


def _root(subgraph: Subgraph, chain: Sequence[int]) -> int:
    (root,) = _reads(subgraph, chain)
    return root


def table(subgraph: Subgraph, chain: Sequence[int]) -> Array:
    """The results of a chain for every byte, in unsigned order. Raises RuleError if one breaks a rule."""
    root = _root(subgraph, chain)
    values = {root: all_bytes(subgraph.type(root))}
    for at in chain:
        operation = subgraph.operations[at]
        types = subgraph.types(operation)
        given = [_given(i, t, values) for i, t in zip(operation.inputs, types.inputs, strict=True)]
        values[operation.outputs[0]] = results(operation.op, types, given)
    return values[subgraph.operations[chain[-1]].outputs[0]]


def _given(operand: int | None, type_: TensorType | None, values: Mapping[int, Array]) -> Array | None:
    if operand is None or type_ is None:
        return None
    if operand in values:
        return values[operand]
    assert type_.value is not None
    return type_.value.reshape(1)


def tabulates(subgraph: Subgraph, operations: Sequence[int]) -> bool:
    """Whether a group of operations is a chain that does not begin with a layer."""
    if len(operations) < 2 or not all(_maps(subgraph, at) for at in operations):
        return False
    reads = _reads(subgraph, operations)
    result = subgraph.operations[operations[-1]].outputs[0]
    return len(reads) == 1 and subgraph.type(min(reads)).dtype in BYTES and subgraph.type(result).dtype in WHOLE_BYTES


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A chain that does not begin with a layer."""
    _map(lowering, operations, _root(lowering.subgraph, operations))


def follow(lowering: Lowering, chain: Sequence[int]) -> None:
    """A chain after a layer whose bytes were stored in place of the chain's results."""
    _map(lowering, chain, lowering.operation(chain[-1]).outputs[0])


def _map(lowering: Lowering, chain: Sequence[int], source: int) -> None:
    target = lowering.operation(chain[-1]).outputs[0]
    rows, width = matrix(lowering.shape(target), flat=True)
    map_rows(
        lowering,
        chain[-1],
        table(lowering.subgraph, chain),
        (source, lowering.operand(source), width),
        (target, lowering.operand(target), width),
        (rows, width),
    )
