"""Steps of which transformations consist: operations fused, removed and replaced."""

from __future__ import annotations

from collections.abc import Iterable

from onert.flow.graph import Graph, Operation, Variable
from onert.frontend.flow.resolve import ASSIGNING


def is_internal(variable: Variable, consumer: Operation) -> bool:
    """Whether an operation alone reads a variable, so that nobody misses it when it is gone."""
    return variable.consumers == [consumer] and not variable.output


def is_assigned_between(first: Operation, second: Operation) -> bool:
    """Whether a variable that the first reads gets another value between the two, so that the first cannot be computed
    in the second's place.
    """
    assigning = [o for v in first.inputs for o in v.consumers if o.type in ASSIGNING and o.inputs[0] is v]
    if not assigning or first.func is None:
        return False
    places = {operation: at for at, operation in enumerate(first.func.ops)}
    low, high = sorted((places[first], places[second]))
    return any(low < places.get(o, -1) < high for o in assigning)


def detach(operation: Operation) -> None:
    """Let an operation read and compute nothing."""
    for variable in operation.inputs:
        variable.consumers.remove(operation)
    for variable in operation.outputs:
        variable.producer = None
    operation.inputs, operation.outputs = [], []


def remove(flow: Graph, operation: Operation) -> None:
    """Take an operation out of a flow."""
    detach(operation)
    if operation.func is not None:
        operation.func.ops.remove(operation)
    if flow.ops.get(operation.name) is operation:
        del flow.ops[operation.name]


def forget(flow: Graph, variables: Iterable[Variable]) -> None:
    """Take out variables that no operation reads or computes any more, and that are no outputs."""
    for variable in variables:
        if variable.producer is None and not variable.consumers and not variable.output and variable.data is None:
            if flow.vars.get(variable.name) is variable:
                del flow.vars[variable.name]
            for connector in flow.cnxs.values():
                if variable in connector.links:
                    connector.links.remove(variable)


def rewire(operation: Operation, optype: str, inputs: Iterable[Variable], outputs: Iterable[Variable]) -> None:
    """Make an operation another one, with other operands and results."""
    detach(operation)
    operation.type = optype
    for variable in inputs:
        operation.add_input(variable)
    for variable in outputs:
        operation.add_output(variable)


def fuse(flow: Graph, first: Operation, second: Operation, optype: str) -> Operation:
    """One operation in the place of two, of which the second reads the first's only result, which nobody else does.

    It is the second one; its operands are those of the first and then the second's own. Attributes of the first go
    before the second's.

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
    """Let all that reads a variable read another one."""
    for consumer in list(dict.fromkeys(variable.consumers)):
        inputs = [other if v is variable else v for v in consumer.inputs]
        rewire(consumer, consumer.type, inputs, list(consumer.outputs))
