"""Turn lists of tensors that a loop builds into tensors, if each round adds one of a known shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import evolve, frozen

from onert.compiler.rewrite.called_graphs import with_constants
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import Constant, DType, ModelError, Operand, Operation, RuleError, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.sequences import SequenceInsert, SequenceJoin, SequenceOf
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.gather import PutRow
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.shape import normalize_axis
from onert.ir.value import Value

from .invariants import constant_state
from .trip_counts import exact_trips, growth

Simplify = Callable[[Subgraph], Subgraph]


def as_tensors(model: Subgraphs, graph: Subgraph, at: int, simplify: Simplify) -> tuple[Subgraphs, Subgraph] | None:
    """The model with two more subgraphs that have a tensor for each list, and the graph whose loop, operation `at`,
    runs them. None if there is no list, a list is used in another way, or a shape is unknown.

        items = SequenceOf(); While {items = SequenceInsert(items, x)}; y = SequenceJoin(items)   -->
        items = []; While {items = Concat(items, ExpandDims(x))}; y = items

    If the number of rounds is known, the tensor has all entries from the beginning, and round i sets entry i. So have
    then tensors to which each round appends an entry.
    """
    operation = graph.operations[at]
    op = operation.op
    if not isinstance(op, While) or None in operation.inputs:
        return None
    operands = operation.used
    positions = [k for k, i in enumerate(operands) if graph.type(i).dtype is DType.VARIANT]
    others = [i for i in operands if graph.type(i).dtype is not DType.VARIANT]
    condition, body = model[op.condition], model[op.body]
    appended = [k for k, i in enumerate(operands) if is_appended(graph.type(i), condition, body, k)]
    if not (positions or appended) or not all(graph.type(i).is_static for i in others):
        return None
    if not all(is_list(graph, condition, body, operation, k, lambda join: True) for k in positions):
        return None
    types = {
        i: graph.type(g).with_data(None)
        for k, (i, g) in enumerate(zip(body.inputs, operands, strict=True))
        if k not in positions and k not in appended
    }
    fixed = constant_state([graph.operands[i].data for i in operands], body)
    try:
        simplified = simplify(with_constants(body.with_types(types), fixed))
        items = [_item(simplified, k) for k in positions]
    except (ModelError, RuleError):
        return None
    if not all(each.is_static for each in items):
        return None
    starts = [graph.operands[i].known for i in operands]
    rounds = counted(condition, simplified, starts, fixed, simplify)
    length = None if rounds is None else rounds.rounds
    if not length and not all(_is_stacked(graph, operation.outputs[k]) for k in positions):
        return None
    lists = {k: TensorType(each.dtype, (length, *each.shape)) for k, each in zip(positions, items, strict=True)}
    if length is not None:
        begun = {k: graph.type(operands[k]).with_data(None) for k in appended}
        lists |= {k: type_.with_shape((length, *type_.shape[1:])) for k, type_ in begun.items()}
    elif not positions:
        return None
    first = len(model)
    adding = _appending if rounds is None else partial(_setting, counted=rounds)
    changed = (*model.subgraphs, _with_lists(condition, lists), adding(body, lists))
    results = tuple(lists.get(k, t) for k, t in enumerate(op.results))
    edit = Edit(graph)
    inputs = list(operands)
    for k, list_ in lists.items():
        edit.redefine(operation.outputs[k], Operand(list_))
        first_type = list_.with_shape((length or 0, *list_.shape[1:]))
        inputs[k] = edit.operand(Operand(first_type))
        dims = edit.constant(np.array(first_type.shape), DType.INT64)  # may contain symbolic numbers
        if rounds is None:
            nothing = edit.constant(np.zeros(0, list_.dtype.numpy), list_.dtype)
            made = Operation(Reshape(), (nothing, dims), (inputs[k],), operation.location)
        else:
            zero = edit.constant(np.zeros((), list_.dtype.numpy), list_.dtype)
            made = Operation(Fill(), (dims, zero), (inputs[k],), operation.location)
        edit.insert(at, made)
        for reader in graph.uses.get(operation.outputs[k], ()) if k in positions else ():
            edit.replace(reader, *_joined(edit, list_, graph.operations[reader]))
    edit.replace(at, evolve(operation, op=While(first, first + 1, results), inputs=tuple(inputs)))
    return evolve(model, subgraphs=changed), infer_alone(edit.done())


def is_list(
    graph: Subgraph,
    condition: Subgraph,
    body: Subgraph,
    operation: Operation,
    k: int,
    is_joined: Callable[[SequenceJoin], bool],
) -> bool:
    """Whether operand `k` of a loop is a list that starts empty, only grows in each round, and is then only joined as
    `is_joined` requires."""
    producer = definer(graph, operation.used[k])
    added = definer(body, body.outputs[k])
    result = operation.outputs[k]
    readers = [graph.operations[i].op for i in graph.uses.get(result, ())]
    readers_in_body = body.uses.get(body.inputs[k], ())
    return (
        producer is not None
        and isinstance(producer.op, SequenceOf)
        and not producer.used
        and added is not None
        and isinstance(added.op, SequenceInsert)
        and len(added.used) == 2
        and added.used[0] == body.inputs[k]
        and len(readers_in_body) == 1
        and body.outputs[k] not in body.uses
        and list(body.outputs).count(body.outputs[k]) == 1
        and condition.inputs[k] not in condition.uses
        and result not in graph.outputs
        and all(isinstance(r, SequenceJoin) and is_joined(r) for r in readers)
    )


def _is_stacked(graph: Subgraph, items: int) -> bool:
    """Whether a list is only joined along a new first axis, as its tensor is, however many items there are."""
    joins = [graph.operations[i].op for i in graph.uses.get(items, ())]
    return all(isinstance(join, SequenceJoin) and join.new and join.axis == 0 for join in joins)


def _joined(edit: Edit, list_: TensorType, join: Operation) -> list[Operation]:
    """The tensor of a list as it was joined: its first axis is moved, and merged with the next unless it is new."""
    op = join.op
    assert isinstance(op, SequenceJoin)
    order, x, moves = list(range(1, list_.rank)), join.used[0], list[Operation]()
    order.insert(place := normalize_axis(op.axis, list_.rank - 1 + op.new), 0)
    if not place and op.new:
        return [evolve(join, op=Copy())]
    if place:
        x = join.outputs[0] if op.new else edit.operand(Operand(list_.with_shape(tuple(list_.shape[i] for i in order))))
        axes = edit.constant(np.array(order), DType.INT32)
        moves.append(evolve(join, op=Transpose(), inputs=(join.used[0], axes), outputs=(x,)))
    if not op.new:
        dims = [list_.shape[i] or 0 for i in order]
        dims[place : place + 2] = [dims[place] * dims[place + 1]]
        shape = edit.constant(np.array(dims), DType.INT64)  # may contain symbolic numbers
        moves.append(evolve(join, op=Reshape(), inputs=(x, shape)))
    return moves


def is_appended(start: TensorType, condition: Subgraph, body: Subgraph, k: int) -> bool:
    """Whether operand `k` of a loop is a tensor without entries at first, to which each round appends one of known
    shape, and which nothing else reads in the loop."""
    added = definer(body, body.outputs[k])
    return (
        start.rank > 0
        and start.shape[0] == 0
        and None not in start.shape
        and start.quantization is None
        and added is not None
        and isinstance(added.op, Concat)
        and added.op == Concat(0)
        and len(added.used) == 2
        and added.used[0] == body.inputs[k]
        and body.type(added.used[1]).shape == (1, *start.shape[1:])
        and len(body.uses.get(body.inputs[k], ())) == 1
        and body.outputs[k] not in body.uses
        and list(body.outputs).count(body.outputs[k]) == 1
        and condition.inputs[k] not in condition.uses
    )


def _item(body: Subgraph, k: int) -> TensorType:
    """The type of what a round adds to list `k`."""
    added = definer(body, body.outputs[k])
    assert added is not None
    return body.type(added.used[1]).with_data(None)


def _with_lists(graph: Subgraph, lists: dict[int, TensorType]) -> Subgraph:
    operands = list(graph.operands)
    for k, list_ in lists.items():
        operands[graph.inputs[k]] = Operand(list_, operands[graph.inputs[k]].name)
    return evolve(graph, operands=tuple(operands))


@frozen
class Counted(Value):
    """A loop of a known number of rounds: the position of its counter, which begins at `first` and grows by 1."""

    rounds: int
    counter: int
    first: int


def counted(
    condition: Subgraph,
    body: Subgraph,
    starts: Sequence[TensorType],
    fixed: Mapping[int, Constant],
    simplify: Simplify,
) -> Counted | None:
    """How the rounds of a loop are counted, if their number is known; otherwise None."""
    types = {i: start.with_data(None) for i, start in zip(condition.inputs, starts, strict=True)}
    try:
        simplified = simplify(with_constants(condition.with_types(types), fixed))
    except (ModelError, RuleError):
        return None
    rounds = exact_trips(simplified, body, starts)
    comparison = definer(simplified, simplified.outputs[0])
    if rounds is None or comparison is None:
        return None
    counter = next(simplified.inputs.index(i) for i in comparison.used if i in simplified.inputs)
    first = starts[counter].value
    if growth(body, counter) != 1 or first is None:
        return None
    return Counted(rounds, counter, int(first.reshape(-1)[0]))


def _setting(body: Subgraph, lists: dict[int, TensorType], counted: Counted) -> Subgraph:
    """The body that sets an entry of a tensor to what a round adds."""
    counter = body.inputs[counted.counter]
    type_ = body.type(counter)
    edit = Edit(_with_lists(body, lists))
    for k, list_ in lists.items():
        at, added, row, operations = _row(body, k, list_, edit)
        index = counter
        if counted.first:
            index = edit.operand(Operand(type_.with_data(None)))
            before = edit.constant(np.array(-counted.first, type_.dtype.numpy), type_.dtype)
            operations.append(Operation(Binary(BinaryKind.ADD), (counter, before), (index,), added.location))
        edit.replace(at, *operations, Operation(PutRow(), (body.inputs[k], row, index), added.outputs, added.location))
    return edit.done()


def _row(body: Subgraph, k: int, list_: TensorType, edit: Edit) -> tuple[int, Operation, int, list[Operation]]:
    """The number of the operation that adds to list `k` and the operation, a row with what it adds, and the operations
    that make the row."""
    at = body.definitions[body.outputs[k]]
    added = body.operations[at]
    edit.redefine(body.outputs[k], Operand(list_))
    if isinstance(added.op, Concat):
        return at, added, added.used[1], []
    row = edit.operand(Operand(TensorType(list_.dtype, (1, *list_.shape[1:]))))
    axis = edit.constant(np.array(0, np.int32), DType.INT32)
    return at, added, row, [Operation(ExpandDims(), (added.used[1], axis), (row,), added.location)]


def _appending(body: Subgraph, lists: dict[int, TensorType]) -> Subgraph:
    """The body that appends what a round adds to the entries of a tensor."""
    edit = Edit(_with_lists(body, lists))
    for k, list_ in lists.items():
        at, added, row, operations = _row(body, k, list_, edit)
        edit.replace(at, *operations, Operation(Concat(0), (body.inputs[k], row), added.outputs, added.location))
    return edit.done()
