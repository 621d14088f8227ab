"""The state of an entry point in C: initial values of variables, and the undoing of failed calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from onert.backend import Backend, Beginning, Sequence, Settings
from onert.compiler.routine import Plan
from onert.compiler.state.in_place import saved_parts
from onert.ir import CompileError, DType, Operand, Operation, Resource, Subgraph, TensorType
from onert.ir.ops.data_movement.part_update import Update


def with_beginnings(graph: Subgraph) -> tuple[Subgraph, tuple[Beginning, ...]]:
    """The subgraph with operands for the initial values of resource variables, if these differ from cleared state, and
    for whether each variable has been initialised."""
    operands = list(graph.operands)
    found = []
    for index, operand in enumerate(graph.operands):
        held = operand.resource
        if held is None or held.initial is None or (held.initial.array == operand.type.cleared).all():
            continue
        name = f"{held.name}/started"
        started = Operand(TensorType(DType.BOOL, ()), name, variable=True, resource=Resource(held.container, name))
        found.append(Beginning(index, len(operands), len(operands) + 1))
        operands += (Operand(operand.type, "", held.initial), started)
    return (evolve(graph, operands=tuple(operands)), tuple(found)) if found else (graph, ())


def require_begun(graphs: Mapping[str, Subgraph]) -> None:
    """Raises CompileError if an entry point, given by its symbol, reads a variable that has no initial value and that
    no other entry point assigns."""
    for symbol, graph in graphs.items():
        others = {key for other, own in graphs.items() if other != symbol for key in _assigned(own)}
        for index, operand in enumerate(graph.operands):
            held = operand.resource
            if held is None or held.initial is not None or held.key in others or index not in graph.uses:
                continue
            if held.drawn:
                reason = f"random numbers {held.name!r} have no seed, and C has nothing to draw one from"
            else:
                reason = f"variable {held.name!r} is read before anything was assigned to it"
            raise CompileError(f"{symbol} cannot be bundled: {reason}")


def _assigned(graph: Subgraph) -> Iterator[tuple[str, str, str]]:
    """The keys of the resource variables that a subgraph assigns."""
    for update in graph.state:
        held = graph.operands[update.variable].resource
        if held is not None:
            yield held.key


def undoing(
    planned: Plan, backend: Backend, settings: Settings
) -> tuple[Subgraph, tuple[Sequence, ...], Mapping[int, int]]:
    """The planned subgraph with additional operations that undo each in-place update, the sequence of these operations,
    and a map from operands to the operand whose memory they share.

    An update is undone by writing back the overwritten elements, the last update first.
    """
    graph, roots = planned.lowered.subgraph, dict(planned.updates.roots)
    operands, operations = list(graph.operands), list(graph.operations)
    for update, record in sorted(saved_parts(graph).items(), reverse=True):
        operation = graph.operations[update]
        (made,) = operation.outputs
        if update not in planned.updates.updates:
            continue
        part, *places, _ = graph.operations[record].outputs
        roots[len(operands)] = roots.get(made, made)
        op = operation.op
        assert isinstance(op, Update)
        given = [
            part if i == op.update_index else operand
            for i, operand in enumerate(op.with_places(operation.used, places))
        ]
        operations.append(Operation(op.undo, (made, *given[1:]), (len(operands),), f"undoing {operation}"))
        operands.append(Operand(graph.type(made)))
    added = tuple(range(len(graph.operations), len(operations)))
    if not added:
        return graph, (), roots
    graph = evolve(graph, operands=tuple(operands), operations=tuple(operations))
    undo = Sequence(graph, added, (), (), "undo")
    return graph, (evolve(undo, groups=backend.fuse(undo, settings)),), roots
