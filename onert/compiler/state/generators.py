"""Random numbers as functions of a generator's state, which becomes a variable of the entry and lasts from run to run.

%y = Random(UNIFORM, 1, 2) %shape   -->   %s = variable "1 2 0", initially [1, 0, 2]
                                          %n, %y = RandomFrom(UNIFORM) %s, %shape
                                          after the run: %s := %n

Subgraphs receive the states that any of them draws from as additional inputs, and return the next states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto

from attrs import evolve

from onert.ir import Op, Operand, Resource, StateUpdate, Subgraph, Subgraphs
from onert.ir.ops.control_flow.control import Call, Case, If, While
from onert.ir.ops.data_movement.random_numbers import STATE, Multinomial, Random

MOST_PASSED = 1 << 16
"""The most generator states that subgraphs draw from, times operations that run subgraphs."""
_CALLING = (Call, Case, If, While)


class _Role(Enum):
    """What a graph does with states: keep them in variables, receive and return them, only receive them, nothing."""

    OWNS = auto()
    RETURNS = auto()
    RECEIVES = auto()
    NONE = auto()


def with_generators(model: Subgraphs, entry: int) -> Subgraphs:
    """The model with generators replaced by variables of the entry; the same object if there are no generators.

    A generator stays if a subgraph that cannot return a state, such as a loop's condition, draws from it.
    """
    drawn = [_drawn(graph) for graph in model.subgraphs]
    if not any(drawn):
        return model
    roles, calls = _roles(model, entry)
    by_role = {
        role: {n: r for at, graph_roles in roles.items() if role in graph_roles for n, r in drawn[at].items()}
        for role in _Role
    }
    unresolved = by_role[_Role.RECEIVES] | by_role[_Role.NONE]
    if any(len(graph_roles) > 1 for graph_roles in roles.values()) or calls * len(by_role[_Role.RETURNS]) > MOST_PASSED:
        unresolved |= by_role[_Role.RETURNS]
    passed = {name: resource for name, resource in by_role[_Role.RETURNS].items() if name not in unresolved}
    variables = {name: resource for name, resource in by_role[_Role.OWNS].items() if name not in unresolved} | passed
    graphs = list(model.subgraphs)
    for at, graph_roles in roles.items() if passed else [(entry, {_Role.OWNS})]:
        for role in graph_roles - {_Role.NONE}:
            graphs[at] = _rewritten(graphs[at], role, variables if role is _Role.OWNS else passed, tuple(passed))
    return evolve(model, subgraphs=tuple(graphs)) if variables else model


def _drawn(graph: Subgraph) -> dict[str, Resource]:
    """The generators that operations of a graph draw from, by name."""
    resources = (o.op.resource for o in graph.operations if isinstance(o.op, Random | Multinomial))
    return {each.name: each for each in resources}


def _roles(model: Subgraphs, entry: int) -> tuple[dict[int, set[_Role]], int]:
    """The roles of each graph that the entry reaches, and how many operations run graphs."""
    found, calls, pending = dict[int, set[_Role]](), 0, [(entry, _Role.OWNS)]
    while pending:
        at, role = pending.pop()
        if role in found.setdefault(at, set()):
            continue
        found[at].add(role)
        passes_states = role in (_Role.OWNS, _Role.RETURNS)
        for operation in model[at].operations:
            calls += bool(operation.op.subgraphs)
            pending += _called(operation.op) if passes_states else ((i, _Role.NONE) for i in operation.op.subgraphs)
    return found, calls


def _called(op: Op) -> Iterator[tuple[int, _Role]]:
    """The graphs that an operation runs, and their roles."""
    if isinstance(op, While):
        yield from ((op.condition, _Role.RECEIVES), (op.body, _Role.RETURNS))
    else:
        yield from ((i, _Role.RETURNS if isinstance(op, _CALLING) else _Role.NONE) for i in op.subgraphs)


def _rewritten(graph: Subgraph, role: _Role, names: dict[str, Resource], passed: Sequence[str]) -> Subgraph:
    """A graph with the states of the generators in `names`, which passes the `passed` ones to the graphs it runs."""
    operands, operations = list(graph.operands), []

    def new(operand: Operand) -> int:
        operands.append(operand)
        return len(operands) - 1

    owns = role is _Role.OWNS
    first = {
        name: new(Operand(STATE, name, variable=True, resource=resource) if owns else Operand(STATE, name))
        for name, resource in names.items()
    }
    current = dict(first)
    for operation in graph.operations:
        op = operation.op
        if isinstance(op, Random | Multinomial) and op.resource.name in current:
            name = op.resource.name
            inputs, outputs = (current[name], *operation.inputs), (new(Operand(STATE)), *operation.outputs)
            operation, current[name] = evolve(operation, op=op.pure, inputs=inputs, outputs=outputs), outputs[0]
        elif isinstance(op, _CALLING) and role is not _Role.RECEIVES and passed:
            states, next_states = [current[name] for name in passed], [new(Operand(STATE)) for _ in passed]
            operation = evolve(
                operation,
                op=evolve(op, results=(*op.results, *(STATE for _ in passed))),
                inputs=(*operation.inputs, *states),
                outputs=(*operation.outputs, *next_states),
            )
            current.update(zip(passed, next_states, strict=True))
        operations.append(operation)
    changed = evolve(graph, operands=tuple(operands), operations=tuple(operations))
    if owns:
        updates = (
            StateUpdate(variable, current[name]) for name, variable in first.items() if current[name] != variable
        )
        return evolve(changed, state=(*graph.state, *updates))
    outputs = graph.outputs if role is _Role.RECEIVES else (*graph.outputs, *current.values())
    return evolve(changed, inputs=(*graph.inputs, *first.values()), outputs=outputs)
