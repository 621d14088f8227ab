"""The building blocks of transformations: fuse, remove and replace operations."""

from __future__ import annotations

from collections.abc import Iterable

from onert.flow.graph import Graph, Operation, Variable
from onert.frontend.flow.resolve import ASSIGNING


def is_internal(variable: Variable, consumer: Operation) -> bool:
    """Whether an operation is the only reader of a variable, which is then not needed outside."""
    return variable.consumers == [consumer] and not variable.output


def is_assigned_between(first: Operation, second: Operation) -> bool:
    """Whether a variable that the first reads is assigned between the two operations, so that the first cannot be moved
    to the second's place.
    """
    assigning = [o for v in first.inputs for o in v.consumers if o.type in ASSIGNING and o.inputs[0] is v]
    if not assigning or first.func is None:
        return False
    places = {operation: at for at, operation in enumerate(first.func.ops)}
    low, high = sorted((places[first], places[second]))
    return any(low < places.get(o, -1) < high for o in assigning)


def detach(operation: Operation) -> None:
    """Remove all operands and results of an operation."""
    for variable in operation.inputs:
        variable.consumers.remove(operation)
    for variable in operation.outputs:
        variable.producer = None
    operation.inputs, operation.outputs = [], []


def remove(flow: Graph, operation: Operation) -> None:
    """Remove an operation from a flow."""
    detach(operation)
    if operation.func is not None:
        operation.func.ops.remove(operation)
    if flow.ops.get(operation.name) is operation:
        del flow.ops[operation.name]


def forget(flow: Graph, variables: Iterable[Variable]) -> None:
    """Remove variables that are not outputs and that no operation reads or computes any more."""
    for variable in variables:
        if variable.producer is None and not variable.consumers and not variable.output and variable.data is None:
            if flow.vars.get(variable.name) is variable:
                del flow.vars[variable.name]
            for connector in flow.cnxs.values():
                if variable in connector.links:
                    connector.links.remove(variable)


def rewire(operation: Operation, optype: str, inputs: Iterable[Variable], outputs: Iterable[Variable]) -> None:
    """Change an operation's type, operands and results."""
    detach(operation)
    operation.type = optype
    for variable in inputs:
        operation.add_input(variable)
    for variable in outputs:
        operation.add_output(variable)


def fuse(flow: Graph, first: Operation, second: Operation, optype: str) -> Operation:
    """Replace two operations by one; the second must be the only reader of the first's only result.

    The second is kept, with the first's operands followed by its own. The first's attributes override the second's.

        t = First(a, b); y = Second(t, c)  -->  y = Optype(a, b, c)
    """
    (between,) = first.outputs
    inputs = [*first.inputs, *(v for v in second.inputs if v is not between)]
    outputs = list(second.outputs)
    attributes = dict(first.attrs)
    remove(flow, first)
    rewire(second, optype, inputs, outputs)
    second.attrs = {**second.attrs, **attributes}
    forget(flow, [between])
    return second


def replace(flow: Graph, variable: Variable, other: Variable) -> None:
    """Make all readers of a variable read another one."""
    for consumer in list(dict.fromkeys(variable.consumers)):
        inputs = [other if v is variable else v for v in consumer.inputs]
        rewire(consumer, consumer.type, inputs, list(consumer.outputs))
