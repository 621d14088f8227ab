"""Letting the first dimension of a model free, where only the shapes of reshapes say what it is."""

from __future__ import annotations

from math import prod

from attrs import evolve

from onert.ir import Operation, Package, Subgraph, Subgraphs
from onert.ir import shape as shapes
from onert.ir.ops.data_movement.reshape import Reshape


def with_open_batch(package: Package) -> Package:
    """The package, its reshapes to a shape that is known: to as many rows as there are elements for.

    Reshape(x: [1,4,4,6], [1,96]) --> Reshape(x, [-1,96])

    Where the file's own shapes are kept this changes nothing. Where a model is given several pictures for one, their
    rows follow one another: whether the whole model is right then is for a trial to find out.
    """
    return evolve(package, models=tuple(_opened(model) for model in package.models))


def _opened(model: Subgraphs) -> Subgraphs:
    return evolve(model, subgraphs=tuple(_open_subgraph(graph) for graph in model.subgraphs))


def _open_subgraph(graph: Subgraph) -> Subgraph:
    return evolve(graph, operations=tuple(_open_operation(graph, operation) for operation in graph.operations))


def _open_operation(graph: Subgraph, operation: Operation) -> Operation:
    if not isinstance(operation.op, Reshape):
        return operation
    made = graph.type(operation.outputs[0])
    if not made.is_static or not made.shape or prod(shapes.static(made.shape)) == 0:
        return operation
    return evolve(operation, op=Reshape((-1, *shapes.static(made.shape)[1:])))
