"""Compile flows to networks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

from onert import runtime
from onert.backend import Program
from onert.compiler import Options
from onert.frontend.flow.emitter import Rule
from onert.frontend.flow.file import FlowFile, Operation, Variable, VariableFlag
from onert.frontend.flow.function import REFERENCE, Translation, location_of, translate
from onert.frontend.flow.model import signature
from onert.frontend.flow.resolve import Graph, resolve, task_of
from onert.frontend.flow.table.assignments import ASSIGNMENTS
from onert.ir import Array, CompileError, ModelError, Package, Subgraphs, TensorType
from onert.ir.ops.custom import Unsupported
from onert.ir.process.cpus import available_cpus

from .builder.initial import ATTRIBUTE
from .cell import Cell
from .compiled import Compiled, Shared, Step
from .cpu import target_of
from .files import add, flow_file
from .flow import Flow
from .gradients import gradient
from .in_place import in_place
from .keys import Parameters
from .layout import in_order, layout, turned
from .library import Library, standard_library
from .network import Network
from .report import Profile
from .tensor import memory_for


class Compiler:
    """Compiles flows, with a library of transformations and kernels, and the options of `onert.compile`.

    `cpu` selects the features of x86 processors that code may use, like Myelin's flag of that name: `-avx512-fma3`
    removes some, `sse4.2` starts from none. With `profiling`, cells report the time of their steps (`Network.profile`).

    Operations whose attribute `task` is not 0 may run in parallel with others: a function that has some is compiled for
    the Parallel executor, which moves work to other threads if that pays.
    """

    def __init__(
        self,
        library: Library | None = None,
        options: Options | None = None,
        *,
        cpu: str | None = None,
        profiling: bool = False,
        **overrides: Any,
    ) -> None:
        self.library = standard_library() if library is None else library
        self.options = options
        self.profiling = profiling
        self.overrides = overrides if cpu is None else {**overrides, "target": target_of(cpu)}

    def compile(self, flow: Flow | str | os.PathLike[str]) -> Network:
        """The network of a flow, or of a flow file: a cell for each function.

        A size of -1 becomes 1. A function with the flag `backprop` also gets a cell for its gradient
        (`onert.flow.gradients`). Raises ModelError if an operation breaks a rule, and CompileError, which lists all
        unknown operations.
        """
        if not isinstance(flow, Flow):
            path, flow = Path(flow), Flow()
            flow.load(path)
        transformed = Flow()
        add(transformed, _sized(flow_file(flow)))
        for function in list(transformed.funcs.values()):
            if function.backprop and f"gradients/{function.name}" not in transformed.funcs:
                gradient(transformed, function, self.library.gradients)
        _keep_names(transformed)
        self.library.transform(transformed)
        graph = resolve(flow_file(transformed))
        shared = _shared(graph, _columns(graph))
        parameters = _parameters(graph)
        translations = [
            translate(graph, function, self._rule, shared.learnable, ASSIGNMENTS, shared.columns)
            for function in graph.flow.functions
        ]
        _require_meanings(translations)
        cells = {t.subgraph.name: self._cell(graph, t, parameters, shared) for t in translations}
        return Network(cells, parameters, shared)

    def _rule(self, operation: Operation) -> Rule | None:
        kernel = self.library.found(operation)
        return None if kernel is None else kernel.rule

    def _cell(self, graph: Graph, translation: Translation, parameters: Parameters, shared: Shared) -> Cell:
        subgraph = translation.subgraph
        model = Subgraphs((subgraph,), (signature(subgraph, 0),))
        overrides = self.overrides
        function = next(f for f in graph.flow.functions if f.name == subgraph.name)
        tasks = {task_of(graph.operations[name]) for name in function.operations} - {0}
        if tasks and self.options is None and not overrides.keys() & {"executor", "num_threads"}:
            overrides = {**overrides, "executor": "Parallel", "num_threads": min(available_cpus(), len(tasks) + 1)}
        program = runtime.compile(Package((model,), name=subgraph.name), self.options, **overrides)
        overwriting = in_place(program, translation.assigned)
        plan = layout(program, shared.learnable, overwriting, shared.columns)
        subgraph_inputs = {subgraph.operands[i].name for i in subgraph.inputs}
        referred, assigned = translation.referred, translation.assigned
        references = {
            name: (name in subgraph_inputs, name in assigned or (name in graph.producers and name not in referred))
            for name in plan.fields
            if name in referred or (name in graph.variables and graph.variables[name].is_reference)
        }
        steps = tuple(self._steps(graph, subgraph.name, program))
        links, profile = _links(graph), Profile() if self.profiling else None
        compiled = Compiled(
            subgraph.name,
            program,
            plan,
            parameters,
            shared,
            assigned,
            overwriting,
            references,
            referred,
            links,
            steps,
        )
        return Cell(compiled, profile)

    def _steps(self, graph: Graph, name: str, program: Program) -> Iterator[Step]:
        """The operations of a function that are not optimised away in its program."""
        backends: dict[str, dict[str, None]] = {}
        for step in program.main.steps:
            for each in step.sequence.body:
                backends.setdefault(each.location, {})[step.backend] = None
        function = next(f for f in graph.flow.functions if f.name == name)
        for operation in graph.ordered(function):
            found = tuple(backends.get(location_of(operation), ()))
            kernel = self.library.found(operation)
            if found or operation.type in ASSIGNMENTS:
                inputs, outputs = graph.inputs(operation), graph.outputs(operation)
                yield Step(
                    operation.name,
                    location_of(operation),
                    operation.type if kernel is None else kernel.name,
                    tuple(v.name for v in inputs),
                    tuple(v.name for v in outputs),
                    tuple(v.element_type for v in (*inputs, *outputs)),
                    found,
                    operation.attribute("expr") or "",
                    task_of(operation),
                )


def _links(graph: Graph) -> dict[str, tuple[str, ...]]:
    """For each variable, the variables that connectors link to it."""
    found: dict[str, dict[str, None]] = {}
    for connector in graph.flow.connectors:
        linked = [graph.variables[name].name for name in connector.links]
        for name in linked:
            found.setdefault(name, {}).update(dict.fromkeys(other for other in linked if other != name))
    return {name: tuple(others) for name, others in found.items()}


def _keep_names(flow: Flow) -> None:
    """Mark what transformations must preserve: an operation's name, as an alias of its first result, and references.

    Computed references are stored elsewhere, so their elements must be stored whether they are read or not; the same
    applies to variables with a requested memory order.
    """
    for operation in flow.ops.values():
        if operation.outputs and operation.name not in operation.outputs[0].aliases:
            operation.outputs[0].aliases.append(operation.name)
        for variable in operation.outputs:
            variable.output |= (variable.ref and operation.type != REFERENCE) or variable.col


def _sized(flow: FlowFile) -> FlowFile:
    """The flow with unknown sizes replaced by 1."""

    def sized(variable: Variable) -> Variable:
        return evolve(variable, shape=tuple(1 if size == -1 else size for size in variable.shape))

    return evolve(flow, variables=tuple(map(sized, flow.variables)))


def _columns(graph: Graph) -> frozenset[str]:
    """The variables that must be column-major. Raises ModelError for a reference, or if row-major is requested too.

    A tensor with at most one dimension that is not 1 is the same in both orders.
    """
    found = set()
    for variable in graph.flow.variables:
        if not variable.flags & VariableFlag.COL or sum(size != 1 for size in variable.shape) < 2:
            continue
        if variable.flags & VariableFlag.ROW:
            raise ModelError(f"variable '{variable.name}' is requested to be both row-major and column-major")
        if variable.is_reference:
            raise ModelError(f"variable '{variable.name}' is a reference and cannot be column-major")
        found.add(variable.name)
    return frozenset(found)


def _shared(graph: Graph, columns: frozenset[str]) -> Shared:
    """The tensors that cells share: constants, and learnable variables in writable memory."""
    arrays: dict[str, Array] = {}
    types: dict[str, TensorType] = {}
    learnable = set()
    beginning = {}
    for variable in graph.flow.variables:
        learned = bool(variable.flags & VariableFlag.LEARNABLE)
        if variable.name in graph.producers or not (learned or len(variable.data)):
            continue
        type_, data, _ = graph.elements(variable)
        types[variable.name] = type_
        if learned:
            learnable.add(variable.name)
            column_major = variable.name in columns
            arrays[variable.name] = in_order(memory_for(turned(type_, column_major)), column_major)
            if data is not None:
                arrays[variable.name][...] = data.array
            distribution = variable.attribute(ATTRIBUTE)
            if distribution is not None:
                beginning[variable.name] = distribution
        elif data is not None:
            arrays[variable.name] = data.array
            if variable.name in columns:
                arrays[variable.name] = np.asfortranarray(data.array)
                arrays[variable.name].flags.writeable = False
    return Shared(arrays, types, frozenset(learnable), beginning, columns)


def _parameters(graph: Graph) -> Parameters:
    """The variables by number, in the order of the flow."""
    number = {variable.name: at for at, variable in enumerate(graph.flow.variables)}
    return Parameters(tuple(number), {name: number[v.name] for name, v in graph.variables.items()})


def _require_meanings(translations: Sequence[Translation]) -> None:
    """Raises CompileError, which lists all unknown operations."""
    missing = [
        str(operation)
        for translation in translations
        for operation in translation.subgraph.operations
        if isinstance(operation.op, Unsupported)
    ]
    if missing:
        raise CompileError(f"there is no kernel for {', '.join(missing)}")
