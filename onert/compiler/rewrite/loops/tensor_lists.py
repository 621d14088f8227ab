"""Turn TensorFlow's lists of tensors, which loops read and set by position, into tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import DType, ModelError, Operand, Operation, RuleError, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.tensor_lists import ListFrom, ListGet, ListReserve, ListSet, ListStack
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.gather import Gather, PutRow
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape

Simplify = Callable[[Subgraph], Subgraph]


def with_tables(model: Subgraphs, graph: Subgraph, at: int, simplify: Simplify) -> tuple[Subgraphs, Subgraph] | None:
    """The model with two more subgraphs that have a tensor for each list, and the graph whose loop, operation `at`,
    runs them. None if there is no list, a list is used in another way, or a shape is unknown.

        items = ListReserve(); While {items = ListSet(items, i, x)}; y = ListStack(items)   -->
        items = Fill(0);       While {items = PutRow(items, ExpandDims(x), i)}; y = items
    """
    operation = graph.operations[at]
    op = operation.op
    if not isinstance(op, While) or None in operation.inputs:
        return None
    operands = operation.used
    lists = [k for k, i in enumerate(operands) if graph.type(i).dtype is DType.VARIANT]
    condition, body = model[op.condition], model[op.body]
    if not lists or not all(_is_read_by_position(graph, condition, body, operation, k) for k in lists):
        return None
    types = {i: graph.type(g).with_data(None) for i, g in zip(body.inputs, operands, strict=True)}
    try:
        simplified = simplify(body.with_types(types))
    except (ModelError, RuleError):
        return None
    tables: dict[int, TensorType] = {}
    for k in lists:
        table = _table(graph, simplified, operands[k], k)
        if table is None:
            return None
        tables[k] = table
    results = tuple(tables.get(k, t) for k, t in enumerate(op.results))
    edit = Edit(graph)
    inputs = list(operands)
    for k, table in tables.items():
        edit.redefine(operation.outputs[k], Operand(table))
        inputs[k] = edit.operand(Operand(table))
        edit.insert(at, _start(edit, graph, operands[k], table, inputs[k], operation))
        for reader in graph.uses.get(operation.outputs[k], ()):
            stack = graph.operations[reader]
            edit.replace(reader, evolve(stack, op=Copy(), inputs=stack.used[:1]))
    first = len(model)
    edit.replace(at, evolve(operation, op=While(first, first + 1, results), inputs=tuple(inputs)))
    changed = (*model.subgraphs, _with_types(condition, tables), _by_position(body, tables))
    return evolve(model, subgraphs=changed), infer_alone(edit.done())


def _is_read_by_position(graph: Subgraph, condition: Subgraph, body: Subgraph, loop: Operation, k: int) -> bool:
    """Whether operand `k` of a loop is a new list whose items the body only gets and sets, and which is then only
    stacked."""
    producer = definer(graph, loop.used[k])
    result = loop.outputs[k]
    if producer is None or not isinstance(producer.op, ListReserve | ListFrom):
        return False
    if condition.inputs[k] in condition.uses or condition.inputs[k] in condition.outputs or result in graph.outputs:
        return False
    if not all(isinstance(graph.operations[i].op, ListStack) for i in graph.uses.get(result, ())):
        return False
    return body.outputs[k] in set(_versions(body, k)) and all(
        isinstance(o.op, ListSet | ListGet) and o.used[0] == version
        for version in _versions(body, k)
        for o in map(body.operations.__getitem__, body.uses.get(version, ()))
    )


def _versions(body: Subgraph, k: int) -> Iterator[int]:
    """List `k` as the body receives it, and with each item that the body sets."""
    found = [body.inputs[k]]
    for version in found:
        yield version
        users = (body.operations[i] for i in body.uses.get(version, ()))
        found += [o.outputs[0] for o in users if isinstance(o.op, ListSet)]


def _table(graph: Subgraph, body: Subgraph, start: int, k: int) -> TensorType | None:
    """The type of a tensor with all items of list `k`; None if it is unknown."""
    producer = definer(graph, start)
    assert producer is not None
    added = definer(body, body.outputs[k])
    item = body.type(added.used[2]) if added is not None and isinstance(added.op, ListSet) else None
    if isinstance(producer.op, ListFrom):
        table = graph.type(producer.used[0]).with_data(None)
        fits = item is None or (item.dtype is table.dtype and item.shape == table.shape[1:])
        return table if fits and table.is_static and table.quantization is None else None
    count = graph.operands[producer.used[1]].known.value
    if count is None or item is None or not item.is_static or item.quantization is not None:
        return None
    return TensorType(item.dtype, (int(count.reshape(-1)[0]), *item.shape))


def _start(edit: Edit, graph: Subgraph, start: int, table: TensorType, to: int, loop: Operation) -> Operation:
    """The operation that makes the tensor with which a loop begins."""
    producer = definer(graph, start)
    assert producer is not None
    if isinstance(producer.op, ListFrom):
        return Operation(Copy(), producer.used[:1], (to,), producer.location)
    dims = edit.constant(np.array(table.shape), DType.INT64)  # may contain symbolic numbers
    zero = edit.constant(np.zeros((), table.dtype.numpy), table.dtype)
    return Operation(Fill(), (dims, zero), (to,), loop.location)


def _with_types(graph: Subgraph, tables: dict[int, TensorType]) -> Subgraph:
    operands = list(graph.operands)
    for k, table in tables.items():
        operands[graph.inputs[k]] = Operand(table, operands[graph.inputs[k]].name)
    return evolve(graph, operands=tuple(operands))


def _by_position(body: Subgraph, tables: dict[int, TensorType]) -> Subgraph:
    """The body that gets and sets entries of tensors instead of items of lists."""
    edit = Edit(_with_types(body, tables))
    for k, table in tables.items():
        for version in dict.fromkeys(_versions(body, k)):
            if version != body.inputs[k]:
                edit.redefine(version, Operand(table))
            for at in body.uses.get(version, ()):
                edit.replace(at, *_replaced(edit, body, at, table))
    return edit.done()


def _replaced(edit: Edit, body: Subgraph, operation_at: int, table: TensorType) -> list[Operation]:
    """The operations on a tensor that correspond to one on a list."""
    operation = body.operations[operation_at]
    items, at, last = operation.used
    if isinstance(operation.op, ListSet):
        row = edit.operand(Operand(TensorType(table.dtype, (1, *table.shape[1:]))))
        axis = edit.constant(np.array(0, np.int32), DType.INT32)
        return [
            Operation(ExpandDims(), (last, axis), (row,), operation.location),
            evolve(operation, op=PutRow(), inputs=(items, row, at)),
        ]
    scalar = edit.operand(Operand(TensorType(body.type(at).dtype, ())))
    none = edit.constant(np.zeros(0, np.int32), DType.INT32)
    return [
        Operation(Reshape(), (at, none), (scalar,), operation.location),
        evolve(operation, op=Gather(), inputs=(items, scalar)),
    ]
