"""Assignments without a copy: results that may share the memory of the variable that they are assigned to."""

from __future__ import annotations

from collections.abc import Sequence

from onert.backend import HOST, Program, Routine
from onert.ir import Subgraph
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.element_indices import ScatterSlices
from onert.ir.ops.elementwise.binary import AddN, Binary
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary

_BY_ELEMENT = (AddN, Binary, Cast, Comparison, Copy, LeakyRelu, Select, Unary)
"""Operations that compute each element of the result from the elements at its position, or from broadcast ones."""


def in_place(program: Program, assigned: Sequence[str]) -> frozenset[int]:
    """The subset of a program's last outputs, given by the variables they are assigned to, that may overwrite these.

    An output may if nothing reads the variable, or if all its readers lead elementwise to the result: each element is
    then read before it is overwritten, in any order and with any number of threads. So may a variable into which slices
    are scattered, if all other readers are done before that begins.
    """
    routine, graph = program.main, program.main.subgraph
    inputs = {described.name: at for at, described in zip(graph.inputs, program.inputs, strict=True)}
    results = graph.outputs[len(graph.outputs) - len(assigned) :]
    return frozenset(
        result
        for name, result in zip(assigned, results, strict=True)
        if graph.outputs.count(result) == 1 and _may_overwrite(routine, inputs.get(name), result)
    )


def _may_overwrite(routine: Routine, variable: int | None, result: int) -> bool:
    graph = routine.subgraph
    memory = routine.memories.get(result, HOST)
    if result not in graph.definitions or result in routine.roots or memory.name != HOST.name:
        return False
    if variable is None or not graph.uses.get(variable):
        return True
    if isinstance(graph.operations[graph.definitions[result]].op, ScatterSlices):
        return _is_put_into(routine, variable, graph.definitions[result])
    leading = _leading(graph, result)
    made = {graph.operations[at].outputs[0] for at in leading}
    given = {operand for at in leading for operand in graph.operations[at].used} - made
    return (
        graph.type(variable).shape == graph.type(result).shape
        and leading.issuperset(graph.uses[variable])
        and all(_is_stored(routine, operand) for operand in given)
    )


def _is_put_into(routine: Routine, variable: int, scatter: int) -> bool:
    """Whether slices are scattered into a variable whose only other readers compute the slices and their indices.

    These are stored, so those readers have finished by then; a view of the variable would not have.
    """
    graph = routine.subgraph
    x, *rest = graph.operations[scatter].used
    if x != variable or variable in rest or not all(_is_stored(routine, operand) for operand in rest):
        return False
    before: set[int] = set()
    waiting = [graph.definitions[operand] for operand in rest if operand in graph.definitions]
    while waiting:
        at = waiting.pop()
        if at not in before:
            before.add(at)
            waiting += [graph.definitions[i] for i in graph.operations[at].used if i in graph.definitions]
    readers = [at for at in graph.uses[variable] if at != scatter]
    return all(at in before and not graph.operations[at].op.shares for at in readers)


def _leading(graph: Subgraph, result: int) -> frozenset[int]:
    """The elementwise operations of the result's shape whose results are used only to compute this result."""
    shape = graph.type(result).shape
    found: set[int] = set()
    for at in range(graph.definitions[result], -1, -1):
        operation = graph.operations[at]
        if not isinstance(operation.op, _BY_ELEMENT) or graph.type(operation.outputs[0]).shape != shape:
            continue
        (made,) = operation.outputs
        readers = graph.uses.get(made, ())
        if made == result or (readers and made not in graph.kept and found.issuperset(readers)):
            found.add(at)
    return frozenset(found)


def _is_stored(routine: Routine, operand: int) -> bool:
    """Whether an operand is stored, so that no kernel fuses its computation with that of its users."""
    graph = routine.subgraph
    if operand not in graph.definitions or operand in graph.outputs:
        return True
    if graph.operations[graph.definitions[operand]].op.outlasts:
        return True
    return any(operand in plan.placements for plan in routine.arenas.values())
