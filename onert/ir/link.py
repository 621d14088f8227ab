"""Linking: joins the connected models of a package into one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from onert.ir.analysis.wiring import Wiring, wire
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.process.budget import Budget

from . import shape as shapes
from .errors import ModelError
from .op import Op
from .operand import Operand
from .operation import Operation
from .package import Package, Port
from .subgraph import StateUpdate, Subgraph, Subgraphs
from .types import TensorType

_COPIED = 10
"""Budget steps charged for copying an operand or an operation."""


def link(package: Package, budget: Budget | None = None) -> Subgraphs:
    """The package as one model, whose primary subgraph contains the connected subgraphs in an executable order.

    All subgraphs of all models follow it, renumbered, so that operations and the first model's signatures can refer to
    them. Where a connection joins tensors of different element types or quantisations, a conversion is inserted:
    quantise, dequantise, requantise or cast. A package without inputs, outputs and connections is its first model.

    Raises ModelError for a port that does not exist, a cycle of connections, an input with no source or with two, and
    tensors that no conversion can join. A package may use a model any number of times; `budget` is charged per copy.
    """
    if not package.models:
        raise ModelError(f"package {package.name!r} has no model")
    if not (package.inputs or package.outputs or package.connections):
        return package.model
    numbers = _numbers(package.models)
    called = (
        renumber(subgraph, number)
        for model, number in zip(package.models, numbers, strict=True)
        for subgraph in model.subgraphs
    )
    signatures = tuple(evolve(s, subgraph=numbers[0][s.subgraph]) for s in package.model.signatures)
    primary = _Inliner(package, wire(package), numbers, budget).primary()
    return Subgraphs((primary, *called), signatures, package.model.description)


def renumber(subgraph: Subgraph, number: Mapping[int, int]) -> Subgraph:
    """The subgraph with every call of subgraph `i` replaced by a call of subgraph `number[i]`."""
    operations = tuple(_calling(operation, number) for operation in subgraph.operations)
    return subgraph if operations == subgraph.operations else evolve(subgraph, operations=operations)


def _calling(operation: Operation, number: Mapping[int, int]) -> Operation:
    return evolve(operation, op=operation.op.renumber(number)) if operation.op.subgraphs else operation


def _numbers(models: Sequence[Subgraphs]) -> tuple[Mapping[int, int], ...]:
    """For each model, the new numbers of its subgraphs in the linked model, where 0 is the primary subgraph."""
    numbers = []
    start = 1
    for model in models:
        numbers.append({index: start + index for index in range(len(model))})
        start += len(model)
    return tuple(numbers)


class _Inliner:
    """Copies the connected subgraphs into one, node by node."""

    def __init__(
        self, package: Package, wiring: Wiring, numbers: Sequence[Mapping[int, int]], budget: Budget | None
    ) -> None:
        self.budget = budget
        self.package = package
        self.wiring = wiring
        self.called = numbers
        self.operands: list[Operand] = []
        self.operations: list[Operation] = []
        self.state: list[StateUpdate] = []
        self.numbers: dict[tuple[int, int, int], int] = {}

    def primary(self) -> Subgraph:
        for model, subgraph in self.wiring.order:
            self.inline(model, subgraph)
        inputs = [self.numbers[p.model, p.subgraph, self.graph(p).inputs[p.position]] for p in self.wiring.inputs]
        outputs = [self.output(p) for p in self.wiring.outputs]
        self.tell_apart(self.wiring.inputs, inputs)
        self.tell_apart(self.wiring.outputs, outputs)
        return Subgraph(
            tuple(self.operands),
            tuple(self.operations),
            tuple(inputs),
            tuple(outputs),
            self.package.name,
            tuple(self.state),
        )

    def graph(self, port: Port) -> Subgraph:
        return self.package.models[port.model][port.subgraph]

    def output(self, port: Port) -> int:
        return self.numbers[port.model, port.subgraph, self.graph(port).outputs[port.position]]

    def inline(self, model: int, index: int) -> None:
        graph = self.package.models[model][index]
        if self.budget is not None:
            self.budget.spend(_COPIED * (1 + len(graph.operands) + len(graph.operations)), "joining its models")
        fed = {}
        for position, operand in enumerate(graph.inputs):
            port = Port(model, index, position)
            if port in self.wiring.sources:
                fed[operand] = self.joined(self.wiring.sources[port], port)
        number = {old: fed[old] if old in fed else self.add(operand) for old, operand in enumerate(graph.operands)}
        self.numbers.update({(model, index, old): new for old, new in number.items()})
        for operation in graph.operations:
            inlined = _calling(operation, self.called[model])
            where = f"{self.title(model)}: {operation}"
            self.operations.append(evolve(inlined.with_operands(number.__getitem__), location=where))
        self.state += [StateUpdate(number[u.variable], number[u.source]) for u in graph.state]

    def add(self, operand: Operand) -> int:
        self.operands.append(operand)
        return len(self.operands) - 1

    def joined(self, source: Port, target: Port) -> int:
        """The operand that feeds an input: the source's own, or the result of converting it."""
        given = self.output(source)
        have, want = self.operands[given].type, self.graph(target).type(self.graph(target).inputs[target.position])
        where = f"connection of {source} to {target}"
        if have.ranked and want.ranked and not shapes.compatible(have.shape, want.shape):
            raise ModelError(f"{where} joins {have} and {want}, expected the same shape")
        if have.dtype is want.dtype and have.quantization == want.quantization:
            return given
        made = self.add(Operand(evolve(have, dtype=want.dtype, quantization=want.quantization, data=None)))
        self.operations.append(Operation(conversion(have, want, where), (given,), (made,), where))
        return made

    def title(self, model: int) -> str:
        names = self.package.model_names
        return names[model] if model < len(names) else f"model {model}"

    def tell_apart(self, ports: Iterable[Port], operands: Sequence[int]) -> None:
        """Prefix the model's name to a tensor's name if inputs, or outputs, of several models share it."""
        count = Counter(self.operands[o].name for o in dict.fromkeys(operands))
        for port, operand in dict(zip(ports, operands, strict=True)).items():
            name = self.operands[operand].name
            if count[name] > 1:
                self.operands[operand] = evolve(self.operands[operand], name=f"{self.title(port.model)}/{name}")


def conversion(have: TensorType, want: TensorType, where: str) -> Op:
    """The operation that converts a tensor's type and preserves its real values. Raises ModelError if there is none."""
    if want.quantization is not None and want.dtype.is_integer:
        if have.dtype.is_float or have.quantization is not None:
            return Quantize(want.dtype)
    elif have.quantization is not None and have.dtype.is_integer:
        if want.dtype.is_float:
            return Dequantize(want.dtype)
    elif have.dtype.is_numeric and want.dtype.is_numeric and have.dtype is not want.dtype:
        return Cast(want.dtype)
    raise ModelError(f"{where} joins {have} and {want}, but there is no conversion between them")
