"""Preparing a model: which subgraph is entered, with which shapes, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from onert.backend import TensorInfo
from onert.ir import CompileError, RuleError, Shape, Signature, SignatureTensor, Subgraph, Subgraphs
from onert.ir import shape as shape_rules
from onert.ir.inference import shapes_ok
from onert.ir.value import Value


@frozen
class Entry(Value):
    """A subgraph of a model that callers enter, and the names by which they know its inputs and outputs."""

    model: Subgraphs
    index: int
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    @property
    def subgraph(self) -> Subgraph:
        return self.model[self.index]

    def position(self, name: int | str) -> int:
        """The position of an input given by name or position; CompileError where there is none."""
        count = len(self.input_names)
        if isinstance(name, str):
            if name not in self.input_names:
                raise CompileError(f"there is no input {name!r}, expected one of {', '.join(self.input_names)}")
            return self.input_names.index(name)
        if not 0 <= name < count:
            raise CompileError(f"there is no input {name}, expected 0 to {count - 1}")
        return name

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(self.subgraph.type(i).shape for i in self.subgraph.inputs)

    def reshaped(self, shapes: Mapping[int, tuple[int, ...]]) -> Entry:
        """The entry with other shapes for inputs given by position; CompileError for one that no tensor may have.

        A dimension that the model leaves open may be anything; another may be changed too, and the operations say
        whether they bear it. The number of dimensions stays.
        """
        changed = {}
        for position, shape in shapes.items():
            operand = self.subgraph.inputs[position]
            type_ = self.subgraph.type(operand)
            name = self.input_names[position]
            if type_.ranked and len(shape) != type_.rank:
                raise CompileError(
                    f"input {name!r} is given shape {shape_rules.text(shape)}, expected {type_.rank} dimensions"
                )
            try:
                shapes_ok(type_.with_shape(shape))
            except RuleError as error:
                raise CompileError(f"input {name!r}: {error}") from error
            if not type_.ranked or shape != type_.shape:
                changed[operand] = type_.with_shape(shape)
        if not changed:
            return self
        graphs = list(self.model.subgraphs)
        graphs[self.index] = self.subgraph.with_types(changed)
        return evolve(self, model=evolve(self.model, subgraphs=tuple(graphs)))


def enter(model: Subgraphs, signature: str | None) -> Entry:
    """The entry that a signature names, or the primary subgraph; CompileError where there is no such signature.

    Subgraphs that no run may reach are emptied. Every operation gets a location, for messages.
    """
    chosen = None if signature is None else _signature(model, signature)
    index = 0 if chosen is None else chosen.subgraph
    model = _emptied(model, index)
    model = evolve(model, subgraphs=tuple(_located(subgraph) for subgraph in model.subgraphs))
    graph = model[index]
    inputs, outputs = ((), ()) if chosen is None else (chosen.inputs, chosen.outputs)
    return Entry(
        model, index, _names(graph, graph.inputs, inputs, "input"), _names(graph, graph.outputs, outputs, "output")
    )


def _names(graph: Subgraph, operands: Sequence[int], given: Sequence[SignatureTensor], side: str) -> tuple[str, ...]:
    """A name of its own for each of the operands: the signature's, the tensor's, or one made of its position."""
    called: dict[int, list[str]] = {}
    for tensor in reversed(given):
        called.setdefault(tensor.operand, []).append(tensor.name)
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    for position, operand in enumerate(operands):
        waiting = called.get(operand)
        wanted = waiting.pop() if waiting else graph.operands[operand].name or f"{side}_{position}"
        name = wanted
        while name in found:
            count = counts[wanted] = counts.get(wanted, 0) + 1
            name = f"{wanted}_{count}"
        found[name] = position
    return tuple(found)


def _signature(model: Subgraphs, key: str) -> Signature:
    for signature in model.signatures:
        if signature.key == key:
            return signature
    keys = ", ".join(signature.key for signature in model.signatures)
    raise CompileError(
        f"there is no signature {key!r}, expected " + (f"one of {keys}" if keys else "none: it has none")
    )


def _emptied(model: Subgraphs, entry: int) -> Subgraphs:
    """The model with nothing in the subgraphs that a run from `entry` never comes to.

    They keep their numbers, so that programs of several signatures agree on them, and messages on what is in the file.
    """
    found, waiting = {entry}, [entry]
    while waiting:
        for operation in model[waiting.pop()].operations:
            new = set(operation.op.subgraphs) - found
            found |= new
            waiting += new
    if len(found) == len(model):
        return model
    empty = Subgraph((), (), (), ())
    return evolve(model, subgraphs=tuple(g if i in found else empty for i, g in enumerate(model.subgraphs)))


def _located(subgraph: Subgraph) -> Subgraph:
    """The subgraph, every operation with a location: its index and kind where the frontend gave none."""
    if all(operation.location for operation in subgraph.operations):
        return subgraph
    return evolve(
        subgraph,
        operations=tuple(
            operation if operation.location else evolve(operation, location=f"operation {at} {operation.op.label}")
            for at, operation in enumerate(subgraph.operations)
        ),
    )


def infos(subgraph: Subgraph, operands: tuple[int, ...], names: tuple[str, ...]) -> tuple[TensorInfo, ...]:
    """Inputs or outputs as callers see them."""
    types = [subgraph.type(operand) for operand in operands]
    return tuple(TensorInfo(name, t.dtype, t.shape, t.quantization) for name, t in zip(names, types, strict=True))
