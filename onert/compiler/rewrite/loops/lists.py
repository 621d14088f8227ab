"""Turn lists of tensors that a loop builds into tensors, if each round adds one of a known shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.called_graphs import with_constants
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import Constant, DType, ModelError, Operand, Operation, RuleError, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.sequences import SequenceInsert, SequenceJoin, SequenceOf
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape

Simplify = Callable[[Subgraph], Subgraph]


def as_tensors(model: Subgraphs, graph: Subgraph, at: int, simplify: Simplify) -> tuple[Subgraphs, Subgraph] | None:
    """The model with two more subgraphs that have a tensor for each list, and the graph whose loop, operation `at`,
    runs them. None if there is no list, a list is used in another way, or a shape is unknown.

        items = SequenceOf(); While {items = SequenceInsert(items, x)}; y = SequenceJoin(items)   -->
        items = []; While {items = Concat(items, ExpandDims(x))}; y = items
    """
    operation = graph.operations[at]
    op = operation.op
    if not isinstance(op, While) or None in operation.inputs:
        return None
    operands = operation.used
    positions = [k for k, i in enumerate(operands) if graph.type(i).dtype is DType.VARIANT]
    others = [i for i in operands if graph.type(i).dtype is not DType.VARIANT]
    if not positions or not all(graph.type(i).is_static for i in others):
        return None
    condition, body = model[op.condition], model[op.body]
    if not all(_is_list(graph, condition, body, operation, k) for k in positions):
        return None
    types = {
        i: graph.type(g).with_data(None)
        for k, (i, g) in enumerate(zip(body.inputs, operands, strict=True))
        if k not in positions
    }
    fixed = {
        k: data
        for k, (i, o, g) in enumerate(zip(body.inputs, body.outputs, operands, strict=True))
        if i == o and (data := graph.operands[g].data) is not None
    }
    try:
        simplified = simplify(with_constants(body.with_types(types), fixed))
        items = [_item(simplified, k) for k in positions]
    except (ModelError, RuleError):
        return None
    if not all(each.is_static for each in items):
        return None
    lists = {k: TensorType(each.dtype, (None, *each.shape)) for k, each in zip(positions, items, strict=True)}
    first = len(model)
    changed = (*model.subgraphs, _with_lists(condition, lists), _appending(body, lists))
    results = tuple(lists.get(k, t) for k, t in enumerate(op.results))
    edit = Edit(graph)
    inputs = list(operands)
    for k, list_ in lists.items():
        edit.redefine(operation.outputs[k], Operand(list_))
        empty = list_.with_shape((0, *list_.shape[1:]))
        inputs[k] = edit.operand(Operand(empty))
        nothing = edit.constant(np.zeros(0, list_.dtype.numpy), list_.dtype)
        dims = edit.constant(np.array(empty.shape), DType.INT64)  # may contain symbolic numbers
        edit.insert(at, Operation(Reshape(), (nothing, dims), (inputs[k],), operation.location))
        for reader in graph.uses.get(operation.outputs[k], ()):
            join = graph.operations[reader]
            edit.replace(reader, evolve(join, op=Copy()))
    edit.replace(at, evolve(operation, op=While(first, first + 1, results), inputs=tuple(inputs)))
    return evolve(model, subgraphs=changed), infer_alone(edit.done())


def _is_list(graph: Subgraph, condition: Subgraph, body: Subgraph, operation: Operation, k: int) -> bool:
    """Whether operand `k` of a loop is a list that starts empty, only grows in each round, and is then only joined."""
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
        and all(isinstance(r, SequenceJoin) and r.new and r.axis == 0 for r in readers)
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


def _appending(body: Subgraph, lists: dict[int, TensorType]) -> Subgraph:
    """The body that appends what a round adds to the entries of a tensor."""
    edit = Edit(_with_lists(body, lists))
    for k, list_ in lists.items():
        (at,) = (i for i, o in enumerate(body.operations) if body.outputs[k] in o.outputs)
        added = body.operations[at]
        row = edit.operand(Operand(TensorType(list_.dtype, (1, *list_.shape[1:]))))
        axis = edit.operand(Operand(TensorType(DType.INT32, ()), data=Constant(np.array(0, np.int32))))
        edit.redefine(body.outputs[k], Operand(list_))
        expanded = Operation(ExpandDims(), (added.used[1], axis), (row,), added.location)
        edit.replace(at, expanded, Operation(Concat(0), (body.inputs[k], row), added.outputs, added.location))
    return edit.done()
