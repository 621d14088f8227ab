"""Build a DAG from a division, with each part as a package of its own."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, field, frozen

from onert.backend import Program
from onert.host.dag import DAG, BackendHints, DAGNode, Estimate
from onert.host.memory import borders, graph_memory
from onert.ir import Package, StateUpdate, Subgraph, Subgraphs
from onert.ir.link import renumber

from .units import UnitGraph


@frozen(eq=False)
class Part:
    """Operations that become a sub-network, and its placement. `seconds` is the expected time of a run."""

    name: str
    operations: tuple[int, ...]
    backend: str
    seconds: float
    logical_devices: tuple[int, ...] = (0,)
    replication_count: int = 1
    hints: BackendHints = field(factory=BackendHints)


def built(name: str, program: Program, graph: UnitGraph, parts: Sequence[Part], notes: Sequence[str] = ()) -> DAG:
    """The network as a DAG of these parts, which contain each operation once."""
    nodes = []
    for part in parts:
        package, inputs, outputs = sub_package(graph, part.operations, f"{name}/{part.name}")
        memory = graph_memory(graph.subgraph, part.operations)
        nodes.append(
            DAGNode(
                part.name,
                package,
                inputs,
                outputs,
                memory.total,
                part.backend,
                part.logical_devices,
                part.replication_count,
                part.hints,
                prepared=True,
                estimate=Estimate(len(part.operations), memory, part.seconds),
            )
        )
    subgraph = graph.subgraph
    fixed = tuple(evolve(info, signature_shape=None) for info in program.inputs)
    return DAG(
        name,
        tuple(nodes),
        tuple(zip(fixed, subgraph.inputs, strict=True)),
        tuple(zip(program.outputs, subgraph.outputs, strict=True)),
        tuple(notes),
    )


def sub_package(
    graph: UnitGraph, operations: Sequence[int], name: str
) -> tuple[Package, tuple[int, ...], tuple[int, ...]]:
    """Some operations as a network of their own, with the subgraphs that they call, and its inputs and outputs."""
    whole = graph.subgraph
    inputs, outputs = borders(whole, operations)
    used = (i for at in operations for i in whole.operations[at].used)
    made = (o for at in operations for o in whole.operations[at].outputs)
    number = {old: new for new, old in enumerate(dict.fromkeys((*inputs, *used, *made)))}
    entry = Subgraph(
        tuple(evolve(whole.operands[old], signature_shape=None) for old in number),
        tuple(whole.operations[at].with_operands(number.__getitem__) for at in operations),
        tuple(number[i] for i in inputs),
        tuple(number[o] for o in outputs),
        name,
        tuple(
            StateUpdate(number[u.variable], number[u.source])
            for u in whole.state
            if u.variable in number and u.source in number
        ),
    )
    called = _called(graph, entry)
    place = {old: new for new, old in enumerate(called, 1)}
    subgraphs = (renumber(entry, place), *(renumber(graph.others[old], place) for old in called))
    return Package((Subgraphs(subgraphs),), name), inputs, outputs


def _called(graph: UnitGraph, entry: Subgraph) -> list[int]:
    """The subgraphs that the entry calls, directly or indirectly."""
    found: dict[int, None] = {}
    waiting = [entry]
    while waiting:
        for operation in waiting.pop().operations:
            for called in operation.op.subgraphs:
                if called not in found:
                    found[called] = None
                    waiting.append(graph.others[called])
    return list(found)
