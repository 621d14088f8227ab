"""Format-aware mutations of valid models: what a careless converter, a bad disk or an attacker might write."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from fuzz.batch import bytes_changed

Change = Callable[[random.Random, Any], None]

NUMBERS = (-(2**31), -129, -2, -1, 0, 1, 2, 3, 7, 64, 255, 1 << 16, 2**31 - 1)
FLOATS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"))


def mutant(seed: int, model: bytes) -> bytes:
    """A model with one to three changes, determined by the seed."""
    rng = random.Random(seed)
    if rng.random() < 0.15:
        return bytes_changed(rng, model, 6)
    found = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(model, 0))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(CHANGES)(rng, found)
    builder = flatbuffers.Builder(len(model))
    builder.Finish(found.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _graph(rng: random.Random, model: Any) -> Any:
    return rng.choice(model.subgraphs)


def _tensor(rng: random.Random, model: Any) -> Any:
    graph = _graph(rng, model)
    return rng.choice(graph.tensors) if graph.tensors else schema.TensorT()


def _operator(rng: random.Random, model: Any) -> Any:
    graph = _graph(rng, model)
    return rng.choice(graph.operators) if graph.operators else schema.OperatorT()


def _one_replaced(rng: random.Random, values: Any, by: int) -> list[int]:
    listed = [int(v) for v in values] if values is not None else []
    if not listed:
        return [by]
    listed[rng.randrange(len(listed))] = by
    return listed


def change_dimension(rng: random.Random, model: Any) -> None:
    tensor = _tensor(rng, model)
    tensor.shape = _one_replaced(rng, tensor.shape, rng.choice(NUMBERS))


def change_rank(rng: random.Random, model: Any) -> None:
    tensor = _tensor(rng, model)
    shape = [int(d) for d in tensor.shape] if tensor.shape is not None else []
    tensor.shape = shape[:-1] if shape and rng.random() < 0.5 else [*shape, rng.choice((1, 2, 3))]


def open_dimension(rng: random.Random, model: Any) -> None:
    tensor = _tensor(rng, model)
    shape = [int(d) for d in tensor.shape] if tensor.shape is not None else []
    tensor.shapeSignature = [-1 if rng.random() < 0.5 else d for d in shape]


def change_type(rng: random.Random, model: Any) -> None:
    _tensor(rng, model).type = rng.choice((*range(23), 127, -1))


def change_buffer(rng: random.Random, model: Any) -> None:
    _tensor(rng, model).buffer = rng.choice((0, len(model.buffers), rng.randrange(len(model.buffers)), 1 << 31))


def change_elements(rng: random.Random, model: Any) -> None:
    """Other elements, fewer, or none: indices, shapes and axes are stored there too."""
    buffer = rng.choice(model.buffers)
    if buffer.data is None or len(buffer.data) == 0:
        return
    raw = np.array(buffer.data, np.uint8)
    if rng.random() < 0.3:
        buffer.data = raw[: rng.randrange(len(raw))]
        return
    at = rng.randrange(0, max(1, len(raw) - 3), 4) if len(raw) >= 4 else 0
    value = np.array([rng.choice(NUMBERS)], np.int32).view(np.uint8)
    raw[at : at + 4] = value[: len(raw[at : at + 4])]
    buffer.data = raw


def change_quantization(rng: random.Random, model: Any) -> None:
    tensor = _tensor(rng, model)
    kind = rng.randrange(5)
    if kind == 0:
        tensor.quantization = None
        return
    q = tensor.quantization or schema.QuantizationParametersT()
    if kind == 1:
        q.scale = [rng.choice(FLOATS) for _ in range(rng.choice((1, 2, 5)))]
    elif kind == 2:
        q.zeroPoint = [rng.choice(NUMBERS)]
    elif kind == 3:
        q.quantizedDimension = rng.choice(NUMBERS)
    else:
        q.scale, q.zeroPoint = [0.5], [rng.choice((0, 3, -128, 255))]
    tensor.quantization = q


def make_variable(rng: random.Random, model: Any) -> None:
    tensor = _tensor(rng, model)
    tensor.isVariable = not tensor.isVariable


def change_operand(rng: random.Random, model: Any) -> None:
    graph = _graph(rng, model)
    if graph.operators:
        operator = rng.choice(graph.operators)
        side = rng.choice(("inputs", "outputs"))
        by = rng.choice((-1, -2, len(graph.tensors), rng.randrange(max(1, len(graph.tensors)))))
        setattr(operator, side, _one_replaced(rng, getattr(operator, side), by))


def change_arity(rng: random.Random, model: Any) -> None:
    operator = _operator(rng, model)
    side = rng.choice(("inputs", "outputs"))
    listed = [int(v) for v in getattr(operator, side)] if getattr(operator, side) is not None else []
    setattr(operator, side, listed[:-1] if rng.random() < 0.6 else [*listed, *listed[:1]])


def change_options(rng: random.Random, model: Any) -> None:
    operator = _operator(rng, model)
    options = operator.builtinOptions or operator.builtinOptions2
    if options is None or rng.random() < 0.15:
        operator.builtinOptions, operator.builtinOptionsType = None, rng.choice((0, operator.builtinOptionsType))
        return
    names = [n for n, v in vars(options).items() if isinstance(v, bool | int | float)]
    if names:
        name = rng.choice(names)
        old = getattr(options, name)
        new = (
            not old
            if isinstance(old, bool)
            else rng.choice(FLOATS if isinstance(old, float) else (-1, 0, 1, 2, 5, 127))
        )
        setattr(options, name, new)


def change_code(rng: random.Random, model: Any) -> None:
    code = rng.choice(model.operatorCodes)
    code.builtinCode = rng.choice((rng.randrange(212), 1 << 20))
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)


def change_ends(rng: random.Random, model: Any) -> None:
    graph = _graph(rng, model)
    side = rng.choice(("inputs", "outputs"))
    by = rng.choice((-1, len(graph.tensors), rng.randrange(max(1, len(graph.tensors)))))
    setattr(graph, side, _one_replaced(rng, getattr(graph, side), by))


def shuffle_operators(rng: random.Random, model: Any) -> None:
    rng.shuffle(_graph(rng, model).operators)


def double_operator(rng: random.Random, model: Any) -> None:
    graph = _graph(rng, model)
    if graph.operators:
        graph.operators.append(rng.choice(graph.operators))


CHANGES: tuple[Change, ...] = (
    change_dimension,
    change_rank,
    open_dimension,
    change_type,
    change_buffer,
    change_elements,
    change_quantization,
    make_variable,
    change_operand,
    change_arity,
    change_options,
    change_code,
    change_ends,
    shuffle_operators,
    double_operator,
)
