"""State as operands: what passes and backends see of variables, random generators and choices."""

from __future__ import annotations

from attrs import evolve

from onert.ir import CompileError, DType, Effect, Subgraphs
from onert.ir.process import imports


def with_state(model: Subgraphs, entry: int) -> Subgraphs:
    """The model with multi-way choices rewritten as choices between two graphs, and with the entry's generators and
    resource variables as operands. If a variable cannot be resolved, all variables stay resources, which the reference
    backend reads and assigns."""
    if any(o.op.subgraphs for graph in model.subgraphs for o in graph.operations):
        model = imports.module("onert.compiler.rewrite.choices").with_binary_choices(model)
    if any(o.op.effect is Effect.WRITE for graph in model.subgraphs for o in graph.operations):
        model = imports.module("onert.compiler.state.generators").with_generators(model, entry)
    graph = model[entry]
    plain = all(o.op.effect is Effect.NONE and not o.op.subgraphs for o in graph.operations)
    if plain and all(operand.type.dtype is not DType.RESOURCE for operand in graph.operands):
        return model
    with_variables = imports.module("onert.compiler.state.resources").with_variables
    try:
        if any(o.op.subgraphs for o in graph.operations):
            model = imports.module("onert.compiler.state.called_variables").with_explicit_variables(model, entry)
            graph = model[entry]
        converted = with_variables(graph, model)
    except CompileError:
        return model
    graphs = tuple(converted if index == entry else graph for index, graph in enumerate(model.subgraphs))
    return model if converted is model[entry] else evolve(model, subgraphs=graphs)
