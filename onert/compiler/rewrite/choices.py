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

MOST_ENDS = 1 << 12
"""A choice whose branches have more inputs and outputs in total is left as it is."""


def in_pairs(model: Subgraphs) -> Subgraphs:
    """The model with only choices between two graphs; the same object if there are no others."""
    graphs = list(model.subgraphs)
    for at, graph in enumerate(model.subgraphs):
        edit = Edit(graph)
        for number, operation in enumerate(graph.operations):
            op = operation.op
            ends = len(operation.inputs) + len(operation.outputs)
            if isinstance(op, Case) and len(op.branches) * ends <= MOST_ENDS:
                edit.replace(number, *_chosen(edit, operation, op, graphs))
        graphs[at] = edit.done()
    changed = any(each is not graph for each, graph in zip(graphs, model.subgraphs, strict=False))
    return evolve(model, subgraphs=tuple(graphs)) if changed else model


def _chosen(edit: Edit, operation: Operation, op: Case, graphs: list[Subgraph]) -> list[Operation]:
    """The operations that replace a choice; the graphs that they run are appended to `graphs`."""
    index, *xs = operation.used
    if len(op.branches) == 1:
        return [evolve(operation, op=Call(op.branches[0], op.results), inputs=tuple(xs))]
    shape, made = edit.subgraph.type(index).shape, list[Operation]()

    def add(op: Op, *inputs: int, dtype: DType = DType.BOOL) -> int:
        out = edit.operand(Operand(TensorType(dtype, shape)))
        made.append(Operation(op, inputs, (out,), operation.location))
        return out

    first, count, last, middle = (
        edit.constant(np.array(n, np.int32)) for n in (0, len(op.branches), len(op.branches) - 1, len(op.branches) // 2)
    )
    there = [
        add(Comparison(kind), index, end)
        for kind, end in ((ComparisonKind.GREATER_EQUAL, first), (ComparisonKind.LESS, count))
    ]
    settled = add(Select(), add(Binary(BinaryKind.LOGICAL_AND), *there), index, last, dtype=DType.INT32)
    below = add(Comparison(ComparisonKind.LESS), settled, middle)
    sides = _sides(op, TensorType(DType.INT32, shape), 0, len(op.branches), graphs)
    return [*made, evolve(operation, op=If(*sides, op.results), inputs=(below, settled, *xs))]


def _sides(op: Case, number: TensorType, first: int, end: int, graphs: list[Subgraph]) -> tuple[int, int]:
    """Two graphs that run one of the branches `first` .. `end`: one for the first half, one for the second."""
    middle = first + (end - first) // 2
    return _among(op, number, first, middle, graphs), _among(op, number, middle, end, graphs)


def _among(op: Case, number: TensorType, first: int, end: int, graphs: list[Subgraph]) -> int:
    """A graph that runs one of the branches `first` .. `end`; its inputs are the branch number and the operands."""
    branch, b = graphs[op.branches[first]], Builder()
    index = b.input(number)
    xs = [b.input(evolve(branch.type(i), data=None)) for i in branch.inputs]
    if end - first == 1:
        results = b.add_many(Call(op.branches[first], op.results), *xs)
    else:
        half = b.constant(np.array(first + (end - first) // 2, np.int32))
        below = b.add(Comparison(ComparisonKind.LESS), index, half)
        results = b.add_many(If(*_sides(op, number, first, end, graphs), op.results), below, index, *xs)
    graphs.append(b.subgraph(results))
    return len(graphs) - 1
