"""Preparing a model: the entry subgraph, its input shapes and names, and dropping unreachable subgraphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from onert.backend import TensorInfo
from onert.backend.tensor_names import offered, other_names, position_named
from onert.ir import CompileError, RuleError, Shape, Signature, SignatureTensor, Subgraph, Subgraphs
from onert.ir.analysis.inference import shapes_ok
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import Value


@frozen
class Entry(Value):
    """The subgraph of a model that callers enter, and the names of its inputs and outputs."""

    model: Subgraphs
    index: int
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    other_input_names: tuple[tuple[str, ...], ...]
    other_output_names: tuple[tuple[str, ...], ...]

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs as callers see them."""
        return _infos(self.subgraph, self.subgraph.inputs, self.input_names, self.other_input_names)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs as callers see them."""
        return _infos(self.subgraph, self.subgraph.outputs, self.output_names, self.other_output_names)

    @property
    def subgraph(self) -> Subgraph:
        return self.model[self.index]

    def position(self, name: int | str) -> int:
        """The position of an input given by name or position. Raises CompileError if there is none."""
        count = len(self.input_names)
        if isinstance(name, str):
            found = position_named(name, self.inputs)
            if found is None:
                raise CompileError(f"there is no input {name!r}, expected one of {offered(self.inputs)}")
            return found
        if not 0 <= name < count:
            raise CompileError(f"there is no input {name}, expected 0 to {count - 1}")
        return name

    def by_position(self, shapes: Mapping[int | str, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        """Shapes by input position. Raises CompileError for an unknown input, or one that is given two shapes."""
        found: dict[int, tuple[int, ...]] = {}
        for name, shape in shapes.items():
            position = self.position(name)
            if position in found:
                raise CompileError(f"input_shapes gives input {self.input_names[position]!r} two shapes")
            found[position] = tuple(shape)
        return found

    @property
    def shapes(self) -> tuple[tuple[Shape, Shape], ...]:
        """For each input its shape, and which of its dimensions are still open."""
        operands = (self.subgraph.operands[i] for i in self.subgraph.inputs)
        return tuple((operand.type.shape, operand.open_shape) for operand in operands)

    def reshaped(self, shapes: Mapping[int, tuple[int, ...]]) -> Entry:
        """The entry with new shapes for inputs by position. Raises CompileError for a shape that no tensor may have.

        A dimension that the model leaves open may have any size. Fixed dimensions and the rank may be changed too, if
        the operations accept it. A given shape has no open dimensions.
        """
        changed = {}
        for position, shape in shapes.items():
            index = self.subgraph.inputs[position]
            operand = self.subgraph.operands[index]
            try:
                shapes_ok(operand.type.with_shape(shape))
            except RuleError as error:
                raise CompileError(f"input {self.input_names[position]!r}: {error}") from error
            opened = any(map(is_symbolic, shape)) or not operand.type.ranked  # comparing sizes would fix lengths
            if opened or operand.type.shape != shape or operand.open_shape != shape:
                changed[index] = evolve(operand, type=operand.type.with_shape(shape), signature_shape=None)
        if not changed:
            return self
        graphs = list(self.model.subgraphs)
        operands = tuple(changed.get(i, operand) for i, operand in enumerate(self.subgraph.operands))
        graphs[self.index] = evolve(self.subgraph, operands=operands)
        return evolve(self, model=evolve(self.model, subgraphs=tuple(graphs)))


def enter(model: Subgraphs, signature: str | None, index: int = 0) -> Entry:
    """The entry of a signature, or of subgraph `index`. Raises CompileError if there is no such signature.

    Unreachable subgraphs are emptied. Every operation gets a location, for messages.
    """
    chosen = None if signature is None else _signature(model, signature)
    index = index if chosen is None else chosen.subgraph
    model = emptied(model, index)
    model = evolve(model, subgraphs=tuple(_located(subgraph) for subgraph in model.subgraphs))
    graph = model[index]
    inputs, outputs = ((), ()) if chosen is None else (chosen.inputs, chosen.outputs)
    signatures = [s for s in model.signatures if s.subgraph == index] if chosen is None else [chosen]
    input_names = _names(graph, graph.inputs, inputs, "input")
    output_names = _names(graph, graph.outputs, outputs, "output")
    return Entry(
        model,
        index,
        input_names,
        output_names,
        other_names(input_names, _file_names(graph, graph.inputs, [s.inputs for s in signatures])),
        other_names(output_names, _file_names(graph, graph.outputs, [s.outputs for s in signatures])),
    )


def _file_names(
    graph: Subgraph, operands: Sequence[int], signatures: Sequence[Sequence[SignatureTensor]]
) -> Iterator[tuple[int, str]]:
    """Positions with their names in the file: those of the signatures, then the tensor names."""
    positions: dict[int, list[int]] = {}
    for position, operand in enumerate(operands):
        positions.setdefault(operand, []).append(position)
    for tensors in signatures:
        for tensor in tensors:
            if len(positions.get(tensor.operand, ())) == 1:
                yield positions[tensor.operand][0], tensor.name
    for position, operand in enumerate(operands):
        yield position, graph.operands[operand].name


def _names(
    graph: Subgraph, operands: Sequence[int], signature: Sequence[SignatureTensor], side: str
) -> tuple[str, ...]:
    """A unique name for each operand: from the signature, from the tensor, or made from its position."""
    names_of: dict[int, list[str]] = {}
    for tensor in reversed(signature):
        names_of.setdefault(tensor.operand, []).append(tensor.name)
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    for position, operand in enumerate(operands):
        remaining = names_of.get(operand)
        preferred = remaining.pop() if remaining else graph.operands[operand].name or f"{side}_{position}"
        name = preferred
        while name in found:
            count = counts[preferred] = counts.get(preferred, 0) + 1
            name = f"{preferred}_{count}"
        found[name] = position
    return tuple(found)


def _signature(model: Subgraphs, key: str) -> Signature:
    for signature in model.signatures:
        if signature.key == key:
            return signature
    keys = ", ".join(signature.key for signature in model.signatures)
    raise CompileError(
        f"there is no signature {key!r}, expected " + (f"one of {keys}" if keys else "none: the model has none")
    )


def emptied(model: Subgraphs, entry: int) -> Subgraphs:
    """The model with the subgraphs that are unreachable from `entry` emptied.

    All subgraphs keep their numbers, so that programs of several signatures, and messages, refer to the file's numbers.
    """
    found, pending = {entry}, [entry]
    while pending:
        for operation in model[pending.pop()].operations:
            new = set(operation.op.subgraphs) - found
            found |= new
            pending += new
    if len(found) == len(model):
        return model
    empty = Subgraph((), (), (), ())
    return evolve(model, subgraphs=tuple(g if i in found else empty for i, g in enumerate(model.subgraphs)))


def _located(subgraph: Subgraph) -> Subgraph:
    """The subgraph with a location for every operation: its index and kind if the frontend set none."""
    if all(operation.location for operation in subgraph.operations):
        return subgraph
    return evolve(
        subgraph,
        operations=tuple(
            operation if operation.location else evolve(operation, location=f"operation {at} {operation.op.label}")
            for at, operation in enumerate(subgraph.operations)
        ),
    )


def _infos(
    subgraph: Subgraph, operands: tuple[int, ...], names: tuple[str, ...], others: tuple[tuple[str, ...], ...]
) -> tuple[TensorInfo, ...]:
    found = []
    for name, other, index in zip(names, others, operands, strict=True):
        operand = subgraph.operands[index]
        type_, signature = operand.type, operand.signature_shape if index in subgraph.inputs else None
        found.append(TensorInfo(name, type_.dtype, type_.shape, type_.quantization, signature, other))
    return tuple(found)
