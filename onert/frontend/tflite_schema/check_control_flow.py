"""Checks of the calls between subgraphs."""

from __future__ import annotations

import graphlib

from onert.ir import ModelError, Subgraphs


def check_control_flow(model: Subgraphs) -> None:
    """Raise ModelError if an operation calls a subgraph that does not exist, or calls form a cycle.

    What an operation requires of the subgraphs it calls (matching inputs and outputs, a condition with one boolean
    result) is checked by its own `Op.check_subgraphs`.
    """
    calls: dict[int, set[int]] = {}
    for index, graph in enumerate(model.subgraphs):
        calls[index] = set()
        for operation in graph.operations:
            place = f"subgraph {index} '{graph.name}', {operation}"
            for called in operation.op.subgraphs:
                if not 0 <= called < len(model):
                    raise ModelError(f"{place}: runs subgraph {called}, expected 0 to {len(model) - 1}")
                calls[index].add(called)
            if operation.op.subgraphs:
                graphs = [model[called] for called in operation.op.subgraphs]
                problem = operation.op.check_subgraphs(graph, operation.inputs, operation.outputs, graphs)
                if problem is not None:
                    raise ModelError(f"{place}: {problem}")
    try:
        tuple(graphlib.TopologicalSorter(calls).static_order())
    except graphlib.CycleError as error:
        cycle = " -> ".join(str(i) for i in error.args[1])
        raise ModelError(f"subgraphs call one another in a cycle: {cycle}") from error
