"""Writes TFLite models by hand, so that LiteRT and onert read the same bytes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np
import pytest

from onert.ir import Array, DType, Quantization

schema = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="ai-edge-litert is not installed")
interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")


class _Circle:
    """circle's schema, which has one module per class, as if it were a single module."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(importlib.import_module(f"circle_schema.v0_10.circle.{name}"), name)
        except ModuleNotFoundError:
            return getattr(importlib.import_module(f"circle_schema.v0_10.circle.{name[:-1]}"), name)


CIRCLE = _Circle()

Options = tuple[str, Mapping[str, Any]]
"""The options table's name in the schema, and its fields as the object API spells them (`strideW`)."""


class Graph:
    """One subgraph: tensors by number, operators in order."""

    def __init__(self, model: Model, name: str) -> None:
        self.table = model.schema.SubGraphT()
        self.table.name = name.encode()
        self.table.tensors, self.table.operators = [], []
        self.table.inputs, self.table.outputs = [], []
        self._model = model

    def tensor(
        self,
        dtype: DType,
        shape: Sequence[int],
        data: Array | None = None,
        quantization: Quantization | None = None,
    ) -> int:
        """A tensor; it is constant if elements are given."""
        schema = self._model.schema
        tensor = schema.TensorT()
        tensor.name = f"{self.table.name.decode()}_{len(self.table.tensors)}".encode()
        tensor.shape = list(shape)
        tensor.type = getattr(schema.TensorType, dtype.name)
        tensor.buffer = 0 if data is None else self._model.buffer(data, dtype)
        if quantization is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = list(quantization.scales)
            tensor.quantization.zeroPoint = list(quantization.zero_points)
            tensor.quantization.quantizedDimension = quantization.axis or 0
        self.table.tensors.append(tensor)
        return len(self.table.tensors) - 1

    def constant(self, data: Array, dtype: DType | None = None) -> int:
        return self.tensor(dtype or DType.from_numpy(data.dtype), data.shape, data)

    def input(self, dtype: DType, shape: Sequence[int], quantization: Quantization | None = None) -> int:
        self.table.inputs.append(self.tensor(dtype, shape, None, quantization))
        found: int = self.table.inputs[-1]
        return found

    def outputs(self, *tensors: int) -> None:
        self.table.outputs.extend(tensors)

    def operator(
        self,
        code: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: Options | None = None,
        custom: bytes | None = None,
    ) -> None:
        """An operator; with `custom` options `code` is a custom code."""
        operator = self._model.schema.OperatorT()
        operator.opcodeIndex = self._model.code(code, custom is not None)
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        if custom:
            operator.customOptions = list(custom)
        if options is not None:
            give_options(self._model.schema, operator, *options)
        self.table.operators.append(operator)


class Model:
    """A model of one or more subgraphs, the first of which runs."""

    def __init__(self, tables: Any = schema) -> None:
        self.schema = tables
        self.table = tables.ModelT()
        self.table.version = 3
        self.table.buffers = [tables.BufferT()]
        self.table.operatorCodes, self.table.subgraphs = [], []

    def graph(self, name: str = "main") -> Graph:
        found = Graph(self, name)
        self.table.subgraphs.append(found.table)
        return found

    def code(self, name: str, custom: bool) -> int:
        schema = self.schema
        code = schema.OperatorCodeT()
        code.version = 2 if name == "BROADCAST_TO" else 1
        code.builtinCode = schema.BuiltinOperator.CUSTOM if custom else getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.customCode = name.encode() if custom else None
        self.table.operatorCodes.append(code)
        return len(self.table.operatorCodes) - 1

    def buffer(self, data: Array, dtype: DType) -> int:
        buffer = self.schema.BufferT()
        buffer.data = np.frombuffer(packed(data, dtype), np.uint8)
        self.table.buffers.append(buffer)
        return len(self.table.buffers) - 1

    def signature(self, key: str, graph: Graph, names: tuple[Sequence[str], Sequence[str]] | None = None) -> None:
        """Name a subgraph; its inputs and outputs are called `names`, or `t` and the tensor's number."""
        found = self.schema.SignatureDefT()
        found.signatureKey = key.encode()
        found.subgraphIndex = self.table.subgraphs.index(graph.table)
        sides = (graph.table.inputs, graph.table.outputs)
        called = names or [[f"t{tensor}" for tensor in side] for side in sides]
        found.inputs, found.outputs = (
            [self._named(name, tensor) for name, tensor in zip(own, side, strict=True)]
            for own, side in zip(called, sides, strict=True)
        )
        self.table.signatureDefs = [*(self.table.signatureDefs or []), found]

    def _named(self, name: str, tensor: int) -> Any:
        found = self.schema.TensorMapT()
        found.name, found.tensorIndex = name.encode(), tensor
        return found

    def done(self) -> bytes:
        identifier = b"TFL3" if self.schema is schema else b"CIR0"
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.table.Pack(builder), identifier)
        return bytes(builder.Output())


def give_options(schema: Any, operator: Any, table: str, fields: Mapping[str, Any]) -> None:
    """Set an operator's options; newer operators have their table in a second union."""
    written = getattr(schema, f"{table}T")()
    for field, value in fields.items():
        assert hasattr(written, field), f"{table} has no {field}"
        setattr(written, field, value)
    if hasattr(schema.BuiltinOptions, table):
        operator.builtinOptionsType, operator.builtinOptions = getattr(schema.BuiltinOptions, table), written
    else:
        operator.builtinOptions2Type, operator.builtinOptions2 = getattr(schema.BuiltinOptions2, table), written


def packed(data: Array, dtype: DType) -> bytes:
    """A tensor's bytes in a file: elements below a byte are packed, strings follow their offsets."""
    if dtype is DType.STRING:
        found = [bytes(x) for x in data.reshape(-1)]
        header = 4 * (len(found) + 2)
        ends = np.cumsum([header, *map(len, found)])
        return np.array([len(found), *ends], "<i4").tobytes() + b"".join(found)
    if dtype.bits >= 8:
        return np.ascontiguousarray(data).tobytes()
    each = 8 // dtype.bits
    fields = data.reshape(-1).astype(np.int64) & ((1 << dtype.bits) - 1)
    fields = np.append(fields, np.zeros(-len(fields) % each, np.int64)).reshape(-1, each)
    total: Array = (fields << (np.arange(each) * dtype.bits)).sum(axis=1)
    return total.astype(np.uint8).tobytes()


class LiteRt:
    """LiteRT on a model: each call returns the next run's outputs; RuntimeError or ValueError if LiteRT refuses it."""

    def __init__(self, model: bytes, resolver: str = "BUILTIN_WITHOUT_DEFAULT_DELEGATES") -> None:
        self._interpreter = interpreter.Interpreter(
            model_content=model,
            experimental_op_resolver_type=getattr(interpreter.OpResolverType, resolver),
            num_threads=1,
        )
        self._interpreter.allocate_tensors()

    def __call__(self, *inputs: Array) -> list[Array]:
        for detail, array in zip(self._interpreter.get_input_details(), inputs, strict=True):
            self._interpreter.set_tensor(detail["index"], array)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(d["index"]) for d in self._interpreter.get_output_details()]
