"""The memory that networks need on a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from attrs import frozen

from onert.backend import HOST, Program
from onert.ir import Subgraph, TensorType
from onert.ir.value import Value

_ALIGNMENT = HOST.alignment


@frozen
class GraphMemInfo(Value):
    """Bytes that a set of operations needs on a device.

    `inputs` are produced outside the set and read inside, `outputs` vice versa. `activations` is the peak of tensors
    that are only used inside. Inputs and outputs exist once for each of the `contexts`, the number of concurrent runs.
    """

    inputs: int = 0
    outputs: int = 0
    constants: int = 0
    activations: int = 0
    contexts: int = 1

    @property
    def total(self) -> int:
        return (self.inputs + self.outputs) * self.contexts + self.constants + self.activations


def type_bytes(type_: TensorType) -> int:
    """The bytes of a tensor; dynamic dimensions count as 1."""
    return type_.dtype.itemsize * prod(d or 1 for d in type_.shape)


def rounded(nbytes: int) -> int:
    """The bytes of a tensor in an arena, including alignment."""
    return nbytes + -nbytes % _ALIGNMENT


def borders(graph: Subgraph, operations: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tensors that a set of operations reads from others (except constants and variables), and those others read.

    Both are in the order of the operations, which are in the graph's order.
    """
    inside = dict.fromkeys(operations)
    made = dict.fromkeys(o for at in inside for o in graph.operations[at].outputs)
    read = dict.fromkeys(i for at in inside for i in graph.operations[at].used if i not in made)
    inputs = tuple(i for i in read if not (graph.operands[i].is_constant or graph.operands[i].variable))
    kept = frozenset(graph.outputs)
    outputs = tuple(o for o in made if o in kept or any(user not in inside for user in graph.uses.get(o, ())))
    return inputs, outputs


def graph_memory(graph: Subgraph, operations: Sequence[int], contexts: int = 1) -> GraphMemInfo:
    """The memory that some operations of a graph need, given in the order in which they run."""
    inputs, outputs = borders(graph, operations)
    constants = {
        id(graph.operands[i].data): type_bytes(graph.type(i))
        for at in operations
        for i in graph.operations[at].used
        if graph.operands[i].is_constant
    }
    return GraphMemInfo(
        inputs=sum(type_bytes(graph.type(i)) for i in inputs),
        outputs=sum(type_bytes(graph.type(o)) for o in outputs),
        constants=sum(constants.values()),
        activations=_peak(graph, operations, frozenset(outputs)),
        contexts=contexts,
    )


def _peak(graph: Subgraph, operations: Sequence[int], leaving: frozenset[int]) -> int:
    """The peak bytes of tensors that the operations pass among themselves."""
    last = {i: step for step, at in enumerate(operations) for i in graph.operations[at].used}
    alive = most = 0
    ending: dict[int, int] = {}
    for step, at in enumerate(operations):
        for o in graph.operations[at].outputs:
            if o not in leaving:
                nbytes = rounded(type_bytes(graph.type(o)))
                alive += nbytes
                end = last.get(o, step)
                ending[end] = ending.get(end, 0) + nbytes
        most = max(most, alive)
        alive -= ending.pop(step, 0)
    return most


def program_memory(program: Program, contexts: int = 1) -> GraphMemInfo:
    """The memory that a compiled network needs, with its arenas as planned."""
    graphs = [routine.subgraph for routine in program.routines]
    constants = {id(o.data): type_bytes(o.type) for g in graphs for o in g.operands if o.data is not None}
    arenas = sum(plan.size for routine in program.routines for plan in routine.arenas.values())
    variables = sum(type_bytes(o.type) for g in graphs for o in g.operands if o.variable)
    return GraphMemInfo(
        inputs=sum(type_bytes(info.type) for info in program.inputs),
        outputs=sum(type_bytes(info.type) for info in program.outputs),
        constants=sum(constants.values()),
        activations=arenas + variables,
        contexts=contexts,
    )
