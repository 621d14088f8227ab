"""ONNX models for mutation, and mutations that know the messages."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fuzz.batch import bytes_changed
from onnx import AttributeProto, ModelProto

NUMBERS = (-(2**63), -(2**31), -129, -2, -1, 0, 1, 2, 3, 7, 64, 255, 1 << 16, 2**31 - 1, 2**62)
FLOATS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"))
OPERATORS = ("Reshape", "Conv", "Add", "Gather", "Slice", "Concat", "Loop", "If", "Resize", "LSTM", "Pad", "Transpose")


def mutant(seed: int, model: bytes) -> bytes:
    """A model with one to three things changed; the same for the same seed."""
    rng = random.Random(seed)
    if rng.random() < 0.25:
        return bytes_changed(rng, model, 6)
    found = ModelProto.FromString(model)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(CHANGES)(rng, found)
    out: bytes = found.SerializeToString()
    return out


def _node(rng: random.Random, model: Any) -> Any:
    nodes = list(model.graph.node)
    for node in list(nodes):
        nodes += [inner for a in node.attribute if a.type == AttributeProto.GRAPH for inner in a.g.node]
    return rng.choice(nodes) if nodes else model.graph.node.add(op_type="Relu")


def _attribute(rng: random.Random, model: Any) -> None:
    node = _node(rng, model)
    if not node.attribute:
        node.attribute.add(
            name=rng.choice(("axis", "axes", "to", "pads")), type=AttributeProto.INT, i=rng.choice(NUMBERS)
        )
        return
    found = rng.choice(node.attribute)
    match found.type:
        case AttributeProto.INT:
            found.i = rng.choice(NUMBERS)
        case AttributeProto.FLOAT:
            found.f = rng.choice(FLOATS)
        case AttributeProto.STRING:
            found.s = rng.choice((b"", b"SAME_LOWER", b"reflect", b"\xff", b"cubic"))
        case AttributeProto.INTS if found.ints and rng.random() < 0.7:
            found.ints[rng.randrange(len(found.ints))] = rng.choice(NUMBERS)
        case AttributeProto.INTS:
            found.ints.append(rng.choice(NUMBERS))
        case _:
            found.type = rng.choice(AttributeProto.AttributeType.values())


def _input(rng: random.Random, model: Any) -> None:
    node = _node(rng, model)
    names = [i.name for i in model.graph.initializer] + [o for n in model.graph.node for o in n.output] + [""]
    if node.input and rng.random() < 0.8:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)
    elif node.input and rng.random() < 0.5:
        node.input.pop()
    else:
        node.input.append(rng.choice(names))


def _operator(rng: random.Random, model: Any) -> None:
    _node(rng, model).op_type = rng.choice(OPERATORS)


def _tensor(rng: random.Random, model: Any) -> None:
    tensors = list(model.graph.initializer) + [a.t for n in model.graph.node for a in n.attribute if a.HasField("t")]
    if not tensors:
        return
    found = rng.choice(tensors)
    match rng.randrange(4):
        case 0 if found.dims:
            found.dims[rng.randrange(len(found.dims))] = rng.choice(NUMBERS)
        case 1:
            found.data_type = rng.randrange(28)
        case 2 if found.raw_data:
            found.raw_data = found.raw_data[: rng.randrange(len(found.raw_data))]
        case _:
            found.data_location = 1
            found.external_data.add(key="location", value=rng.choice(("", "../x", "/etc/passwd", "weights.bin")))


def _shape(rng: random.Random, model: Any) -> None:
    for given in model.graph.input:
        dims = given.type.tensor_type.shape.dim
        if dims and rng.random() < 0.7:
            dims[rng.randrange(len(dims))].dim_value = rng.choice(NUMBERS)
        else:
            given.type.tensor_type.elem_type = rng.randrange(28)


def _opset(rng: random.Random, model: Any) -> None:
    for opset in model.opset_import:
        opset.version = rng.choice((*range(1, 30), *NUMBERS))


def _order(rng: random.Random, model: Any) -> None:
    nodes = list(model.graph.node)
    rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


CHANGES: tuple[Callable[[random.Random, Any], None], ...] = (
    _attribute,
    _attribute,
    _input,
    _operator,
    _tensor,
    _tensor,
    _shape,
    _opset,
    _order,
)
