"""Mutations of ONNX models that know the message types."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from fuzz.batch import bytes_changed
from onnx import AttributeProto, ModelProto, numpy_helper

NUMBERS = (-(2**63), -(2**31), -129, -2, -1, 0, 1, 2, 3, 7, 64, 255, 1 << 16, 2**31 - 1, 2**62)
FLOATS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"))
OPERATORS = ("Reshape", "Conv", "Add", "Gather", "Slice", "Concat", "Loop", "If", "Resize", "LSTM", "Pad", "Transpose")


def mutant(seed: int, model: bytes) -> bytes:
    """A model with one to three changes, determined by the seed."""
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


def _graphs(model: Any) -> list[Any]:
    """The main graph and the graphs nested in its nodes."""
    found = [model.graph]
    for graph in found:
        found += [a.g for n in graph.node for a in n.attribute if a.type == AttributeProto.GRAPH]
    return found


def _legal(rng: random.Random, model: Any) -> None:
    """Give an attribute the value of another one of its type, or remove it."""
    nodes = [node for graph in _graphs(model) for node in graph.node if node.attribute]
    if not nodes:
        return
    node = rng.choice(nodes)
    at = rng.randrange(len(node.attribute))
    found = node.attribute[at]
    others = [a for n in nodes for a in n.attribute if a.type == found.type and a.type != AttributeProto.GRAPH]
    if others and rng.random() < 0.8:
        name = found.name
        found.CopyFrom(rng.choice(others))
        found.name = name
    else:
        del node.attribute[at]


def _constant(rng: random.Random, model: Any) -> None:
    """Replace a constant by a well-formed one of another type, rank or length, with an ordinary or extreme value."""
    tensors = [t for graph in _graphs(model) for t in graph.initializer]
    tensors += [a.t for graph in _graphs(model) for n in graph.node for a in n.attribute if a.HasField("t")]
    if not tensors:
        return
    found = rng.choice(tensors)
    name, shape = found.name, tuple(d for d in found.dims if 0 <= d < 100)
    shape = rng.choice((shape, (), (0,), (1,), (2,), (*shape, 1), (1, *shape), shape[1:], shape[:-1]))
    if math.prod(shape) > 10_000:
        return
    dtype = rng.choice((np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_))
    if np.issubdtype(dtype, np.floating):
        value = np.full(shape, rng.choice(FLOATS), dtype)
    else:
        value = np.array(rng.choice((-(2**62), -2, -1, 0, 1, 2, 3, 2**62))).astype(dtype) + np.zeros(shape, dtype)
    found.CopyFrom(numpy_helper.from_array(value, name))


def _names(rng: random.Random, model: Any) -> None:
    """Make two nodes write one value, a node read its own result, or a value pass for another."""
    graph = rng.choice(_graphs(model))
    nodes = [n for n in graph.node if n.output]
    if not nodes:
        return
    one, other = rng.choice(nodes), rng.choice(nodes)
    match rng.randrange(4):
        case 0:
            one.output[0] = other.output[0]
        case 1 if one.input:
            one.input[rng.randrange(len(one.input))] = other.output[0]
        case 2 if graph.input:
            one.output[0] = rng.choice(graph.input).name
        case _ if graph.output:
            rng.choice(graph.output).name = rng.choice((one.output[0], "nothing"))


def _copies(rng: random.Random, model: Any) -> None:
    """Duplicate or remove a node, an input, an output or an initializer of a graph."""
    graph = rng.choice(_graphs(model))
    held = rng.choice((graph.node, graph.node, graph.input, graph.output, graph.initializer))
    if not held:
        return
    at = rng.randrange(len(held))
    if rng.random() < 0.5:
        held.add().CopyFrom(held[at])
    else:
        del held[at]


def _type(rng: random.Random, model: Any) -> None:
    """Make an input a sequence or an optional, or change its shape to none, named, empty or arbitrary dimensions."""
    given = list(model.graph.input)
    if not given:
        return
    type_ = rng.choice(given).type
    shape = type_.tensor_type.shape
    match rng.randrange(5):
        case 0:
            type_.sequence_type.elem_type.tensor_type.elem_type = rng.randrange(20)
        case 1:
            type_.optional_type.elem_type.tensor_type.elem_type = rng.randrange(20)
        case 2:
            type_.tensor_type.ClearField("shape")
        case 3:
            for dim in shape.dim:
                dim.dim_param = rng.choice(("n", "m"))
        case _:
            del shape.dim[:]
            for _ in range(rng.randrange(7)):
                shape.dim.add(dim_value=rng.choice((0, 1, 2, 3, 1 << 20, 2**31 - 1)))


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
    _legal,
    _legal,
    _constant,
    _constant,
    _names,
    _copies,
    _type,
)
