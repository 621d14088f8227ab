"""Rewrite a choice among several graphs as choices between two, which can be enclosed.

    y = Case(i, x) {branches=(1, 2, 3)}   -->   j = Select(0 <= i < 3, i, 2)
                                                y = If(j < 1, j, x) {then=4, otherwise=5}

Graph 4 calls graph 1, and graph 5 chooses between graphs that call 2 and 3.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.ir import DType, Op, Operand, Operation, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call, Case, If
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select

from .edit import Edit

MOST_PORTS = 1 << 12
"""A choice whose branches have more inputs and outputs in total is left as it is."""


def with_binary_choices(model: Subgraphs) -> Subgraphs:
    """The model with only choices between two graphs; the same object if there are no others."""
    graphs = list(model.subgraphs)
    for at, graph in enumerate(model.subgraphs):
        edit = Edit(graph)
        for number, operation in enumerate(graph.operations):
            op = operation.op
            ports = len(operation.inputs) + len(operation.outputs)
            if isinstance(op, Case) and len(op.branches) * ports <= MOST_PORTS:
                edit.replace(number, *_binary_choice(edit, operation, op, graphs))
        graphs[at] = edit.done()
    changed = any(each is not graph for each, graph in zip(graphs, model.subgraphs, strict=False))
    return evolve(model, subgraphs=tuple(graphs)) if changed else model


def _binary_choice(edit: Edit, operation: Operation, op: Case, graphs: list[Subgraph]) -> list[Operation]:
    """The operations that replace a choice; the graphs that they run are appended to `graphs`."""
    index, *xs = operation.used
    if len(op.branches) == 1:
        return [evolve(operation, op=Call(op.branches[0], op.results), inputs=tuple(xs))]
    shape, operations = edit.subgraph.type(index).shape, list[Operation]()

    def add(op: Op, *inputs: int, dtype: DType = DType.BOOL) -> int:
        out = edit.operand(Operand(TensorType(dtype, shape)))
        operations.append(Operation(op, inputs, (out,), operation.location))
        return out

    first, count, last, middle = (
        edit.constant(np.array(n, np.int32)) for n in (0, len(op.branches), len(op.branches) - 1, len(op.branches) // 2)
    )
    in_range = [
        add(Comparison(kind), index, bound)
        for kind, bound in ((ComparisonKind.GREATER_EQUAL, first), (ComparisonKind.LESS, count))
    ]
    valid_index = add(Select(), add(Binary(BinaryKind.LOGICAL_AND), *in_range), index, last, dtype=DType.INT32)
    below = add(Comparison(ComparisonKind.LESS), valid_index, middle)
    halves = _halves(op, TensorType(DType.INT32, shape), 0, len(op.branches), graphs)
    return [*operations, evolve(operation, op=If(*halves, op.results), inputs=(below, valid_index, *xs))]


def _halves(op: Case, number: TensorType, first: int, end: int, graphs: list[Subgraph]) -> tuple[int, int]:
    """Two graphs that run one of the branches `first` .. `end`: one for the first half, one for the second."""
    middle = first + (end - first) // 2
    return _choice_graph(op, number, first, middle, graphs), _choice_graph(op, number, middle, end, graphs)


def _choice_graph(op: Case, number: TensorType, first: int, end: int, graphs: list[Subgraph]) -> int:
    """A graph that runs one of the branches `first` .. `end`; its inputs are the branch number and the operands."""
    branch, b = graphs[op.branches[first]], Builder()
    index = b.input(number)
    xs = [b.input(evolve(branch.type(i), data=None)) for i in branch.inputs]
    if end - first == 1:
        results = b.add_many(Call(op.branches[first], op.results), *xs)
    else:
        half = b.constant(np.array(first + (end - first) // 2, np.int32))
        below = b.add(Comparison(ComparisonKind.LESS), index, half)
        results = b.add_many(If(*_halves(op, number, first, end, graphs), op.results), below, index, *xs)
    graphs.append(b.subgraph(results))
    return len(graphs) - 1
