"""The layers of a bundle, as reports and headers describe them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onert.backend import Layer
from onert.ir import Subgraph

from .plan import Plan
from .request_types import LayerFacts

_PRODUCTS = ("contraction", "recurrent")
"""Families of operations that multiply and accumulate."""


def facts(plan: Plan, layers: Iterable[Layer]) -> Iterator[LayerFacts]:
    """The facts about each layer."""
    graphs = {entry.symbol: entry.subgraph for entry in plan.entries}
    for layer in layers:
        graph = graphs[layer.entry]
        operation = graph.operations[layer.operation]
        yield LayerFacts(
            layer.entry,
            operation.op.label,
            _name(graph, layer.operation),
            _multiply_adds(graph, layer.operation),
            layer.constants,
            sum(graph.type(operand).nbytes for operand in operation.outputs),
            layer.kernels,
        )


def _name(graph: Subgraph, at: int) -> str:
    outputs = graph.operations[at].outputs
    return next((graph.operands[o].name for o in outputs if graph.operands[o].name), f"operation {at}")


def _multiply_adds(graph: Subgraph, at: int) -> int:
    operation = graph.operations[at]
    family = type(operation.op).__module__.removeprefix("onert.ir.ops.").partition(".")[0]
    return operation.op.flops(graph.types(operation)) // 2 if family in _PRODUCTS else 0
