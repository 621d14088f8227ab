"""From a flow to a network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from onert import runtime
from onert.compiler import Options
from onert.frontend.flow.file import FlowFile, Variable, VariableFlag
from onert.frontend.flow.function import Translation, translate
from onert.frontend.flow.model import rule_of, signature
from onert.frontend.flow.resolve import Graph, resolve
from onert.frontend.flow.table.assignments import ASSIGNMENTS
from onert.ir import Array, CompileError, Package, Subgraphs, TensorType
from onert.ir.ops.custom import Unsupported

from .cell import Cell
from .compiled import Compiled, Shared
from .files import flow_file
from .flow import Flow
from .keys import Parameters
from .layout import layout
from .network import Network
from .tensor import memory_for


class Compiler:
    """Compiles flows, with the options of `onert.compile`."""

    def __init__(self, options: Options | None = None, **overrides: Any) -> None:
        self.options = options
        self.overrides = overrides

    def compile(self, flow: Flow | str | os.PathLike[str]) -> Network:
        """The network of a flow, or of a flow file: a cell for each function.

        A size of -1 is 1. ModelError where an operation breaks a rule, CompileError that lists all operations that have
        no meaning here.
        """
        if not isinstance(flow, Flow):
            path, flow = Path(flow), Flow()
            flow.load(path)
        graph = resolve(_sized(flow_file(flow)))
        shared = _shared(graph)
        parameters = _parameters(graph)
        translations = [
            translate(graph, function, rule_of, shared.learnable, ASSIGNMENTS) for function in graph.flow.functions
        ]
        _require_meanings(translations)
        cells = {t.subgraph.name: self._cell(graph, t, parameters, shared) for t in translations}
        return Network(cells, parameters, shared)

    def _cell(self, graph: Graph, translation: Translation, parameters: Parameters, shared: Shared) -> Cell:
        subgraph = translation.subgraph
        model = Subgraphs((subgraph,), (signature(subgraph, 0),))
        program = runtime.compile(Package((model,), name=subgraph.name), self.options, **self.overrides)
        plan = layout(program, shared.learnable)
        references = {
            name: (name not in graph.producers, name in graph.producers)
            for name in plan.fields
            if name in graph.variables and graph.variables[name].is_reference
        }
        return Cell(Compiled(subgraph.name, program, plan, parameters, shared, translation.assigned, references))


def _sized(flow: FlowFile) -> FlowFile:
    """The flow with 1 for sizes that are not known."""

    def sized(variable: Variable) -> Variable:
        return evolve(variable, shape=tuple(1 if size == -1 else size for size in variable.shape))

    return evolve(flow, variables=tuple(map(sized, flow.variables)))


def _shared(graph: Graph) -> Shared:
    """The tensors that cells share: constants, and what is learned, in memory that can be written to."""
    arrays: dict[str, Array] = {}
    types: dict[str, TensorType] = {}
    learnable = set()
    for variable in graph.flow.variables:
        learned = bool(variable.flags & VariableFlag.LEARNABLE)
        if variable.name in graph.producers or not (learned or len(variable.data)):
            continue
        type_, data, _ = graph.elements(variable)
        types[variable.name] = type_
        if learned:
            learnable.add(variable.name)
            arrays[variable.name] = memory_for(type_)
            if data is not None:
                arrays[variable.name][...] = data.array
        elif data is not None:
            arrays[variable.name] = data.array
    return Shared(arrays, types, frozenset(learnable))


def _parameters(graph: Graph) -> Parameters:
    """The variables by number in the order of the flow."""
    number = {variable.name: at for at, variable in enumerate(graph.flow.variables)}
    return Parameters(tuple(number), {name: number[v.name] for name, v in graph.variables.items()})


def _require_meanings(translations: Sequence[Translation]) -> None:
    """CompileError that lists every operation that has no meaning."""
    missing = [
        str(operation)
        for translation in translations
        for operation in translation.subgraph.operations
        if isinstance(operation.op, Unsupported)
    ]
    if missing:
        raise CompileError(f"no meaning is known of {', '.join(missing)}")
