"""Groups of operations that run as one kernel: an anchor with element-wise operations, or a chain of such."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import define, field

from onert.backend import Group
from onert.ir import CallTypes, DType, Operation, Subgraph
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import Binary, PRelu
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.reduction.reduce import Reduce
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.process import imports
from onert.ir.shape import num_elements
from onert.ir.symbolic.sizes import are_broadcast
from onert_llvm.kernels.elementwise.elementwise import Reach
from onert_llvm.lower.dtype_sets import BYTES
from onert_llvm.lower.elementwise import op_to_expression

ROWS = "onert_llvm.lower.reduction.fused_row_reductions"
SUMS = "onert_llvm.lower.reduction.widened_sums"
ATTENTION = "onert_llvm.lower.contraction.attention.softmax_of_products"
MOST_FUSED = 32
MOST_MATRICES = 3
MOST_READ = 6
MOST_TERMS = 64
"""Limits of one kernel: operations; matrices that an epilogue reads besides the first, and tensors that a chain reads;
and operands of all its operations, which are more if a tensor is added many times; a kernel's tree is as deep."""


@define
class _OpenGroup:
    """A group that may still grow: its operations, the operand it ends in, the tensors it reads from outside, and
    the total number of operands of its operations.

    A group that begins with an anchor stays in float32, and reads tensors only in ways that epilogues support.
    """

    operations: list[int]
    result: int
    anchored: bool
    terms: int
    others: set[int] = field(factory=set)
    closed: bool = False

    def join(self, subgraph: Subgraph, operations: Iterable[int], result: int, others: set[int]) -> None:
        """Add operations that end in `result` and read `others` from outside the chain."""
        for at in operations:
            self.operations.append(at)
            self.terms += len(subgraph.operations[at].used)
        self.result = result
        self.others |= others


def groups(
    subgraph: Subgraph,
    operations: Sequence[int],
    anchors: Collection[int],
    chained: Collection[int],
    tabled: Collection[int] = (),
) -> tuple[Group, ...]:
    """The groups of a sequence, each at the position of its last operation.

    `anchors` may begin a group, `chained` are the element-wise operations that loops can chain. Such an operation joins
    the group that computes one of its inputs if nothing else reads that input and the shapes are equal; the input is
    then never stored. If several operations read it, all of them join if their results come together again in one, as
    in `x * sigmoid(x)`. Functions of one byte, which may follow `tabled` layers, and chains around row reductions are
    formed first.
    """
    rows = _row_chains(subgraph, operations, chained)
    reduced = {at for own in rows for at in own}
    rest = [at for at in operations if at not in reduced]
    sums = _byte_sums(subgraph, rest)
    rest = [at for at in rest if not any(at in own for own in sums)]
    tables = _byte_chains(subgraph, rest, tabled)
    chains = (*rows, *sums, *tables, *_attentions(subgraph, rest))
    found = [_OpenGroup(list(own), -1, anchored=False, terms=0, closed=True) for own in chains]
    taken = {at for group in found for at in group.operations}
    open_groups: dict[int, _OpenGroup] = {}
    position = {at: i for i, at in enumerate(operations)}
    for at in operations:
        if at in taken:
            continue
        operation = subgraph.operations[at]
        group = _join_group(subgraph, at, operation, open_groups) if at in chained else None
        if group is not None:
            merged = _merge_groups(subgraph, operation, group, open_groups, position)
            found = [each for each in found if not any(each is other for other in merged)]
        else:
            used = operation.used
            group = _OpenGroup(
                [at], operation.outputs[0] if operation.outputs else -1, at in anchors, len(used), set(used)
            )
            found.append(group)
            group.closed = len(operation.outputs) != 1 or not (group.anchored or at in chained)
        if not operation.outputs:
            continue
        if not group.closed and len(subgraph.uses.get(group.result, ())) > 1:
            taken.update(_join_readers(subgraph, group, position, {i for i in chained if i not in taken}))
        open_groups[group.result] = group
    found = _with_tables(subgraph, found, tabled, {at: own for own in tables if own[0] not in tabled for at in own})
    order = {id(g): g.operations[-1] for g in found}
    found.sort(key=lambda g: position[order[id(g)]])
    return tuple(
        Group(
            tuple(g.operations),
            tuple(subgraph.operations[at].outputs[0] for at in g.operations[:-1]),
        )
        for g in found
    )


def _with_tables(
    subgraph: Subgraph, found: list[_OpenGroup], tabled: Collection[int], tables: Mapping[int, tuple[int, ...]]
) -> list[_OpenGroup]:
    """The groups, with layers that end in bytes joined by the table functions that alone read these."""
    gone = set[int]()
    for group in found:
        uses = subgraph.uses.get(group.result, ())
        table = tables.get(uses[0]) if uses and group.operations[0] in tabled and group.closed else None
        if table is not None and group.result not in subgraph.kept and set(uses) <= set(table):
            group.operations += table
            gone.add(table[0])
    return [group for group in found if group.operations[0] not in gone]


def _row_chains(subgraph: Subgraph, operations: Sequence[int], chained: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """The chains around row reductions. The module that finds them is imported only if a chained operation or another
    reduction reads a reduction's result."""
    reductions = {at for at in operations if isinstance(subgraph.operations[at].op, Reduce)}
    sums = (result for at in reductions for result in subgraph.operations[at].outputs)
    if not any(user in chained or user in reductions for result in sums for user in subgraph.uses.get(result, ())):
        return ()
    return tuple(imports.module(ROWS).chains(subgraph, operations, chained))


def _byte_sums(subgraph: Subgraph, operations: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The sums of bytes as 32-bit integers. The module that finds them is imported only if there are such sums."""
    sums = (at for at in operations if isinstance(subgraph.operations[at].op, Reduce))
    if not any(subgraph.type(subgraph.operations[at].used[0]).dtype is DType.INT32 for at in sums):
        return ()
    return tuple(imports.module(SUMS).chains(subgraph, operations))


def _byte_chains(subgraph: Subgraph, operations: Sequence[int], tabled: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """The functions of one byte. The module that finds them is imported only if there are bytes."""
    read = {i for at in operations for i in subgraph.operations[at].used}
    if all(subgraph.type(i).dtype not in BYTES for i in read):
        return ()
    return tuple(imports.module("onert_llvm.lower.elementwise.byte_chains").chains(subgraph, operations, tabled))


def _attentions(subgraph: Subgraph, operations: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Softmax between products. The module that finds them is imported only if there are both."""
    kinds = {type(subgraph.operations[at].op) for at in operations}
    if not {BatchMatMul, Softmax} <= kinds:
        return ()
    return tuple(imports.module(ATTENTION).chains(subgraph, operations))


def _join_group(
    subgraph: Subgraph, at: int, operation: Operation, open_groups: dict[int, _OpenGroup]
) -> _OpenGroup | None:
    """The group that this element-wise operation joins, or None."""
    types = subgraph.types(operation)
    for source in operation.used:
        group = open_groups.get(source)
        if group is None or group.closed or group.result != source or len(group.operations) >= MOST_FUSED:
            continue
        if subgraph.uses.get(source, ()) != (at,) or source in subgraph.kept:
            continue
        others = _outside_reads(subgraph, group, operation, types, {source})
        if others is None:
            continue
        group.closed = group.anchored and types.output.dtype in BYTES
        group.join(subgraph, (at,), operation.outputs[0], others)
        return group
    return None


def _merge_groups(
    subgraph: Subgraph,
    operation: Operation,
    group: _OpenGroup,
    open_groups: Mapping[int, _OpenGroup],
    position: Mapping[int, int],
) -> list[_OpenGroup]:
    """The other chains whose results are read only by the last operation of a chain, and which are merged into it."""
    merged = list[_OpenGroup]()
    shape = subgraph.type(operation.outputs[0]).shape
    for source in dict.fromkeys(operation.used):
        other = open_groups.get(source)
        if (
            other is None
            or other is group
            or other.closed
            or other.result != source
            or other.anchored
            or group.anchored
        ):
            continue
        is_kept = len(subgraph.uses[source]) > 1 or source in subgraph.kept
        if is_kept or are_broadcast(subgraph.type(source).shape, shape):
            continue
        others, terms = (group.others | other.others) - {source}, group.terms + other.terms
        count = len(group.operations) + len(other.operations)
        if len(others) > MOST_READ or terms > MOST_TERMS or count > MOST_FUSED:
            continue
        group.operations = sorted((*group.operations, *other.operations), key=position.__getitem__)
        group.others, group.terms = others, terms
        merged.append(other)
    return merged


def _join_readers(
    subgraph: Subgraph, group: _OpenGroup, position: Mapping[int, int], chained: Collection[int]
) -> Sequence[int]:
    """The operations that join a group whose result has several readers: these, and all up to where they meet again."""
    inside, members, others = {group.result}, list[int](), set[int]()
    waiting = set(subgraph.uses[group.result])
    shape = subgraph.type(group.result).shape
    while waiting:
        if not inside.isdisjoint(subgraph.kept) or not all(at in chained and at in position for at in waiting):
            return ()
        at = min(waiting, key=position.__getitem__)
        operation = subgraph.operations[at]
        types = subgraph.types(operation)
        beside = _outside_reads(subgraph, group, operation, types, inside, others, members)
        if beside is None or types.output.shape != shape or len(group.operations) + len(members) >= MOST_FUSED:
            return ()
        waiting.remove(at)
        members.append(at)
        others |= beside
        result = operation.outputs[0]
        if not waiting:
            group.join(subgraph, members, result, others)
            return members
        inside.add(result)
        waiting |= set(subgraph.uses.get(result, ()))
    return ()


def _outside_reads(
    subgraph: Subgraph,
    group: _OpenGroup,
    operation: Operation,
    types: CallTypes,
    inside: Collection[int],
    more: Collection[int] = (),
    members: Collection[int] = (),
) -> set[int] | None:
    """What an operation that joins a group reads besides the group's results `inside`; None if it cannot join.

    `members` are about to join before it, and read `more`.
    """
    used = operation.used
    terms = group.terms + sum(len(subgraph.operations[at].used) for at in members) + len(used)
    own = [i for i in used if i in inside]
    others = {i for i in used if i not in inside}
    read = {i for i in others if not _is_number(subgraph, i)}
    if (
        any(are_broadcast(subgraph.type(i).shape, types.output.shape) for i in own)
        or len({*group.others, *more, *read}) > (MOST_MATRICES + 2 if group.anchored else MOST_READ)
        or terms > MOST_TERMS
        or (group.anchored and not _fits(subgraph, group, operation, sorted(others)))
        or (isinstance(operation.op, PRelu) and (operation.inputs[0] not in inside or operation.inputs[1] in inside))
        or (len(own) > 1 and not isinstance(operation.op, Binary))
    ):
        return None
    return read


def _is_number(subgraph: Subgraph, operand: int) -> bool:
    """Whether an operand is a single constant element, which becomes part of the code."""
    return subgraph.operands[operand].is_constant and num_elements(subgraph.type(operand).shape) == 1


def _fits(subgraph: Subgraph, group: _OpenGroup, operation: Operation, others: Sequence[int]) -> bool:
    """Whether an operation can be part of an epilogue; epilogues of byte layers may end in a cast to bytes."""
    types = subgraph.types(operation)
    if isinstance(operation.op, Cast) and types.output.dtype in BYTES:
        first = subgraph.operations[group.operations[0]]
        return types.input(0).dtype is DType.FLOAT32 and subgraph.type(first.used[0]).dtype in BYTES
    return op_to_expression.real(operation.op, types) and all(
        _broadcasts(subgraph, i, types.output.shape) for i in others
    )


def _broadcasts(subgraph: Subgraph, operand: int, shape: tuple[int | None, ...]) -> bool:
    """Whether an operand has the results' shape, is one row of their last dimension, or one constant element."""
    own = subgraph.type(operand).shape
    if not are_broadcast(own, shape):
        return True
    reach = op_to_expression.reach_of(own, shape)
    return reach is Reach.ROW or (reach is Reach.SCALAR and subgraph.operands[operand].is_constant)
