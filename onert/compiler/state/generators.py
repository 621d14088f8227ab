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

MOST_HANDED = 1 << 16
"""The most generator states that subgraphs draw from, times operations that run subgraphs."""
_HANDING = (Call, Case, If, While)


class _Role(Enum):
    """What a graph does with states: keep them in variables, receive and return them, only receive them, nothing."""

    KEEPS = auto()
    GIVES = auto()
    TAKES = auto()
    APART = auto()


def with_generators(model: Subgraphs, entry: int) -> Subgraphs:
    """The model with generators replaced by variables of the entry; the same object if there are no generators.

    A generator stays if a subgraph that cannot return a state, such as a loop's condition, draws from it.
    """
    drawn = [_drawn(graph) for graph in model.subgraphs]
    if not any(drawn):
        return model
    roles, calls = _roles(model, entry)
    of = {role: {n: r for at, own in roles.items() if role in own for n, r in drawn[at].items()} for role in _Role}
    stuck = of[_Role.TAKES] | of[_Role.APART]
    if any(len(own) > 1 for own in roles.values()) or calls * len(of[_Role.GIVES]) > MOST_HANDED:
        stuck |= of[_Role.GIVES]
    handed = {name: held for name, held in of[_Role.GIVES].items() if name not in stuck}
    kept = {name: held for name, held in of[_Role.KEEPS].items() if name not in stuck} | handed
    graphs = list(model.subgraphs)
    for at, own in roles.items() if handed else [(entry, {_Role.KEEPS})]:
        for role in own - {_Role.APART}:
            graphs[at] = _rewritten(graphs[at], role, kept if role is _Role.KEEPS else handed, tuple(handed))
    return evolve(model, subgraphs=tuple(graphs)) if kept else model


def _drawn(graph: Subgraph) -> dict[str, Resource]:
    """The generators that operations of a graph draw from, by name."""
    held = (o.op.resource for o in graph.operations if isinstance(o.op, Random | Multinomial))
    return {each.name: each for each in held}


def _roles(model: Subgraphs, entry: int) -> tuple[dict[int, set[_Role]], int]:
    """The roles of each graph that the entry reaches, and how many operations run graphs."""
    found, calls, waiting = dict[int, set[_Role]](), 0, [(entry, _Role.KEEPS)]
    while waiting:
        at, role = waiting.pop()
        if role in found.setdefault(at, set()):
            continue
        found[at].add(role)
        hands = role in (_Role.KEEPS, _Role.GIVES)
        for operation in model[at].operations:
            calls += bool(operation.op.subgraphs)
            waiting += _called(operation.op) if hands else ((i, _Role.APART) for i in operation.op.subgraphs)
    return found, calls


def _called(op: Op) -> Iterator[tuple[int, _Role]]:
    """The graphs that an operation runs, and their roles."""
    if isinstance(op, While):
        yield from ((op.condition, _Role.TAKES), (op.body, _Role.GIVES))
    else:
        yield from ((i, _Role.GIVES if isinstance(op, _HANDING) else _Role.APART) for i in op.subgraphs)


def _rewritten(graph: Subgraph, role: _Role, names: dict[str, Resource], handed: Sequence[str]) -> Subgraph:
    """A graph with the states of the generators in `names`, which passes the `handed` ones to the graphs it runs."""
    operands, operations = list(graph.operands), []

    def new(operand: Operand) -> int:
        operands.append(operand)
        return len(operands) - 1

    keeps = role is _Role.KEEPS
    first = {
        name: new(Operand(STATE, name, variable=True, resource=held) if keeps else Operand(STATE, name))
        for name, held in names.items()
    }
    now = dict(first)
    for operation in graph.operations:
        op = operation.op
        if isinstance(op, Random | Multinomial) and op.resource.name in now:
            name = op.resource.name
            inputs, outputs = (now[name], *operation.inputs), (new(Operand(STATE)), *operation.outputs)
            operation, now[name] = evolve(operation, op=op.drawn, inputs=inputs, outputs=outputs), outputs[0]
        elif isinstance(op, _HANDING) and role is not _Role.TAKES and handed:
            given, following = [now[name] for name in handed], [new(Operand(STATE)) for _ in handed]
            operation = evolve(
                operation,
                op=evolve(op, results=(*op.results, *(STATE for _ in handed))),
                inputs=(*operation.inputs, *given),
                outputs=(*operation.outputs, *following),
            )
            now.update(zip(handed, following, strict=True))
        operations.append(operation)
    changed = evolve(graph, operands=tuple(operands), operations=tuple(operations))
    if keeps:
        updates = (StateUpdate(variable, now[name]) for name, variable in first.items() if now[name] != variable)
        return evolve(changed, state=(*graph.state, *updates))
    outputs = graph.outputs if role is _Role.TAKES else (*graph.outputs, *now.values())
    return evolve(changed, inputs=(*graph.inputs, *first.values()), outputs=outputs)
