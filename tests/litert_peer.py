"""LiteRT as a peer: models of one operator, built here and run by its reference kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np
from model_writer import give_options, interpreter, schema

from onert.ir import Array, CallTypes, DType, TensorType

_TYPES = {
    DType.FLOAT32: "FLOAT32",
    DType.FLOAT16: "FLOAT16",
    DType.INT32: "INT32",
    DType.UINT8: "UINT8",
    DType.INT64: "INT64",
    DType.BOOL: "BOOL",
    DType.INT16: "INT16",
    DType.COMPLEX64: "COMPLEX64",
    DType.INT8: "INT8",
    DType.FLOAT64: "FLOAT64",
    DType.UINT32: "UINT32",
    DType.INT4: "INT4",
}

Options = tuple[str, Mapping[str, Any]]
"""The options table's name in the schema, and its fields as the object API spells them (`strideW`)."""


def one_operator(
    code: str,
    options: Options | bytes | None,
    types: CallTypes,
    constants: Mapping[int, Array],
    variables: Collection[int] = (),
    intermediates: Sequence[TensorType] = (),
) -> bytes:
    """A model of one operator. `constants` maps positions of inputs to elements stored in the file, `variables` are the
    positions of state tensors. An operator whose options are bytes is a custom one.
    """
    model = schema.ModelT()
    model.version = 3
    model.buffers = [schema.BufferT()]
    operator_code = schema.OperatorCodeT()
    custom = isinstance(options, bytes)
    operator_code.builtinCode = getattr(schema.BuiltinOperator, "CUSTOM" if custom else code)
    operator_code.customCode = code.encode() if custom else None
    operator_code.deprecatedBuiltinCode = min(operator_code.builtinCode, 127)
    operator_code.version = 1
    model.operatorCodes = [operator_code]
    graph = schema.SubGraphT()
    graph.tensors, graph.inputs, graph.outputs = [], [], []
    operator = schema.OperatorT()
    operator.inputs, operator.outputs = [], []
    for at, type_ in enumerate(types.inputs):
        operator.inputs.append(-1 if type_ is None else _tensor(model, graph, type_, constants.get(at)))
        if type_ is not None and at in variables:
            graph.tensors[-1].isVariable = True
        elif type_ is not None and at not in constants:
            graph.inputs.append(operator.inputs[-1])
    operator.intermediates = [_tensor(model, graph, type_, None) for type_ in intermediates]
    for type_ in types.outputs:
        operator.outputs.append(_tensor(model, graph, type_, None))
    graph.outputs = list(operator.outputs)
    if isinstance(options, bytes):
        operator.customOptions = np.frombuffer(options, np.uint8)
    elif options is not None:
        give_options(schema, operator, *options)
    graph.operators = [operator]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(model: bytes, inputs: Sequence[Array], resolver: str = "BUILTIN_REF") -> list[Array]:
    """The outputs of LiteRT's kernels of a resolver; RuntimeError or ValueError if LiteRT refuses the model."""
    return run_again(model, [inputs], resolver)[0]


def run_again(model: bytes, rounds: Sequence[Sequence[Array]], resolver: str = "BUILTIN_REF") -> list[list[Array]]:
    """The same for several runs of one interpreter, which keeps its state in between."""
    found = interpreter.Interpreter(
        model_content=model,
        experimental_op_resolver_type=getattr(interpreter.OpResolverType, resolver),
        num_threads=1,
    )
    found.allocate_tensors()
    results = []
    for inputs in rounds:
        for detail, array in zip(found.get_input_details(), inputs, strict=True):
            found.set_tensor(detail["index"], array)
        found.invoke()
        results.append([found.get_tensor(detail["index"]) for detail in found.get_output_details()])
    return results


def _tensor(model: Any, graph: Any, type_: TensorType, elements: Array | None) -> int:
    tensor = schema.TensorT()
    tensor.name = f"tensor{len(graph.tensors)}".encode()
    tensor.shape = [1 if d is None else d for d in type_.shape]
    tensor.type = getattr(schema.TensorType, _TYPES[type_.dtype])
    tensor.buffer = 0
    if elements is not None:
        buffer = schema.BufferT()
        buffer.data = _packed(elements, type_.dtype)
        model.buffers.append(buffer)
        tensor.buffer = len(model.buffers) - 1
    if type_.quantization is not None:
        given = type_.quantization
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale = list(given.scales)
        tensor.quantization.zeroPoint = list(given.zero_points)
        tensor.quantization.quantizedDimension = given.axis or 0
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _packed(elements: Array, dtype: DType) -> Array:
    """A tensor's bytes: two int4 per byte, the first in the low half."""
    if dtype is not DType.INT4:
        return np.frombuffer(np.ascontiguousarray(elements).tobytes(), np.uint8)
    halves = elements.reshape(-1).astype(np.uint8) & 15
    halves = np.append(halves, np.zeros(len(halves) % 2, np.uint8))
    return halves[0::2] | (halves[1::2] << 4)
