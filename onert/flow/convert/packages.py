"""Convert packages to flows: each signature of a model, or its primary subgraph, becomes a function."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from onert.flow.builder import Builder
from onert.flow.flow import Flow
from onert.flow.graph import Variable
from onert.ir import CompileError, Constant, ModelError, Operation, Package, RuleError, Signature, Subgraph
from onert.ir.analysis.inference import infer_subgraph

from .repeats import RULES as REPEATS
from .translations import RULES, Given, name_of, sizes_of


def from_package(package: Package) -> Flow:
    """The flow of a package's first model: a function for each signature, or one for its primary subgraph.

    Sizes of inputs that the model leaves open are -1 if flows can express everything that depends on them, else the
    model's default sizes. Raises CompileError, which lists all operations that flows do not have.
    """
    model = package.model
    signatures = model.signatures or (_unsigned(model.primary, package.name),)
    graphs = [model[signature.subgraph] for signature in signatures]
    opened = list(map(_opened, graphs))
    if opened != graphs:
        flow, missing = _converted(signatures, opened)
        if not missing:
            return flow
    flow, missing = _converted(signatures, graphs)
    if missing:
        raise CompileError(f"flows have no operations for {', '.join(dict.fromkeys(missing))}")
    return flow


def _converted(signatures: Sequence[Signature], graphs: Sequence[Subgraph]) -> tuple[Flow, list[str]]:
    """A flow with a function for each graph, and what could not be converted."""
    flow, missing = Flow(), []
    for signature, graph in zip(signatures, graphs, strict=True):
        function = _Function(flow, signature, graph)
        missing += function.missing if not function.build() else []
    return flow, missing


def _opened(graph: Subgraph) -> Subgraph:
    """The subgraph with open sizes where the model leaves them open, and inferred from there; itself if that fails."""
    inputs = {i for i in graph.inputs if graph.operands[i].signature_shape is not None}
    if not inputs:
        return graph
    operands = []
    for at, operand in enumerate(graph.operands):
        if at in inputs:
            operand = evolve(operand, type=operand.type.with_shape(operand.open_shape), signature_shape=None)
        elif at in graph.definitions and operand.type.ranked:
            operand = evolve(operand, type=operand.type.with_shape((None,) * operand.type.rank))
        operands.append(operand)
    try:
        return infer_subgraph(evolve(graph, operands=tuple(operands)))
    except (ModelError, RuleError):
        return graph


def _unsigned(subgraph: Subgraph, name: str) -> Signature:
    """A signature for a subgraph that has none, under the tensors' own names."""
    return Signature(subgraph.name or name or "main", 0, (), ())


class _Function:
    """A function under conversion from a subgraph; `missing` are operations that could not be converted."""

    def __init__(self, flow: Flow, signature: Signature, subgraph: Subgraph) -> None:
        self.missing: list[str] = []
        self._subgraph = subgraph
        self._builder = Builder(flow, signature.key)
        self._names = {t.operand: t.name for t in (*signature.outputs, *signature.inputs)}
        self._variables: dict[int, Variable] = {}

    def build(self) -> bool:
        """Convert the subgraph; returns whether every operation could be converted."""
        graph, f = self._subgraph, self._builder
        if graph.state or any(o.variable for o in graph.operands):
            self.missing.append("tensors that keep their values between runs")
        for operand in graph.inputs:
            try:
                variable = f.var(self._free(self._name(operand)), *self._format(operand))
            except RuleError as error:
                self.missing.append(f"input '{self._name(operand)}' ({error})")
                continue
            variable.input = True
            self._variables[operand] = variable
        for operation in graph.operations:
            self._add(operation)
        if not self.missing:
            self._name_outputs()
        return not self.missing

    def _name(self, operand: int) -> str:
        return self._names.get(operand) or self._subgraph.operands[operand].name or f"tensor{operand}"

    def _free(self, name: str) -> str:
        """An unused name for a variable of the function."""
        return self._builder.varname(name).removeprefix(f"{self._builder.func}/")

    def _format(self, operand: int) -> tuple[str, Sequence[int]]:
        """Element type and shape in flows. Raises RuleError if flows have no such type."""
        type_ = self._subgraph.type(operand)
        if type_.quantization is not None:
            raise RuleError("quantised tensors")
        return name_of(type_.dtype), sizes_of(type_.shape)

    def _variable(self, operand: int) -> Variable:
        found = self._variables.get(operand)
        if found is None:
            described = self._subgraph.operands[operand]
            dtype, shape = self._format(operand)
            found = self._builder.var(self._free(self._name(operand)), dtype, shape)
            if isinstance(described.data, Constant):
                found.data = described.data.array
            self._variables[operand] = found
        return found

    def _add(self, operation: Operation) -> None:
        """Convert an operation, or record that it is missing."""
        kind = type(operation.op)
        rule = RULES.get(kind) or REPEATS.get(kind)
        try:
            if rule is None:
                raise RuleError(operation.op.label)
            for operand in operation.outputs:
                self._format(operand)
            if self.missing:
                self._require_formats(operation)
                return  # go on only to find all that is missing
            given = Given(
                self._builder,
                tuple(None if i is None else self._variable(i) for i in operation.inputs),
                self._subgraph.types(operation),
            )
            for operand, variable in zip(operation.outputs, rule(given, operation.op), strict=True):
                self._variables[operand] = variable
        except (RuleError, ModelError) as error:
            where = str(operation)
            self.missing.append(where if operation.op.label in str(error) else f"{where} ({error})")

    def _require_formats(self, operation: Operation) -> None:
        for operand in operation.used:
            self._format(operand)

    def _name_outputs(self) -> None:
        """Give the function's results the names that callers know."""
        f, taken = self._builder, set()
        for operand in self._subgraph.outputs:
            variable = self._variable(operand)
            if variable.producer is None or variable in taken:
                variable = f.identity(variable)
            taken.add(variable)
            variable.output = True
            f.rename(variable, self._free(self._name(operand)))
