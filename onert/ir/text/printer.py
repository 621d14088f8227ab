"""The text form of models, which `parse` reads back as an equal value.

    model "description" {
      subgraph "main" {
        %0 "x" : f32[1, 4]
        %1 "w" : i8[2, 4] quantized scales=[0.5, 0.25] zeros=[0, 0] axis=0 = base64 "AQIDBAUGBwg="
        %2 "" : f32[1, 2]
        inputs (%0)
        outputs (%2)
        %2 = FullyConnected(%0, %1, -) {activation=Activation.RELU} @ "operation 0 FULLY_CONNECTED"
      }
      signature "serve" subgraph 0 inputs ("a"=%0) outputs ("b"=%2)
    }

`-` is an absent operand, `?` an unknown dimension, `[*]` an unknown rank.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np
from attrs import fields, has

from onert.ir.dtype import Array, DType
from onert.ir.errors import ModelError
from onert.ir.operand import Operand
from onert.ir.operation import Operation
from onert.ir.quant import Quantization
from onert.ir.shape import text as shape_text
from onert.ir.subgraph import Signature, Subgraph, Subgraphs
from onert.ir.types import Constant, TensorType

_LITERAL_ELEMENTS = 16
_SHOWN_SCALES = 4
_PLAIN = frozenset("fiub")


def text(model: Subgraphs | Subgraph, *, constants: bool = True) -> str:
    """The model, or one of its subgraphs, as text.

    Without `constants` the elements of large constants and long lists of scales are omitted, and the text cannot be
    parsed. Raises ModelError for an attribute that has no text form (a Python function).
    """
    lines = _model(model, constants) if isinstance(model, Subgraphs) else _subgraph(model, constants)
    return "\n".join(lines) + "\n"


def _model(model: Subgraphs, constants: bool) -> Iterator[str]:
    yield f"model {json.dumps(model.description)} {{"
    for subgraph in model.subgraphs:
        for line in _subgraph(subgraph, constants):
            yield "  " + line
    for signature in model.signatures:
        yield "  " + _signature(signature)
    yield "}"


def _signature(signature: Signature) -> str:
    sides = []
    for tensors in (signature.inputs, signature.outputs):
        sides.append("(" + ", ".join(f"{json.dumps(t.name)}=%{t.operand}" for t in tensors) + ")")
    key = json.dumps(signature.key)
    return f"signature {key} subgraph {signature.subgraph} inputs {sides[0]} outputs {sides[1]}"


def _subgraph(subgraph: Subgraph, constants: bool) -> Iterator[str]:
    yield f"subgraph {json.dumps(subgraph.name)} {{"
    for index, operand in enumerate(subgraph.operands):
        yield "  " + _operand(index, operand, constants)
    yield f"  inputs {_references(subgraph.inputs)}"
    yield f"  outputs {_references(subgraph.outputs)}"
    for operation in subgraph.operations:
        yield "  " + _operation(operation)
    for update in subgraph.state:
        yield f"  state %{update.variable} = %{update.source}"
    yield "}"


def _references(operands: Sequence[int | None]) -> str:
    return "(" + ", ".join("-" if i is None else f"%{i}" for i in operands) + ")"


def _operand(index: int, operand: Operand, constants: bool) -> str:
    parts = [f"%{index} {json.dumps(operand.name)} : {type_text(operand.type, constants)}"]
    if operand.signature_shape is not None:
        parts.append(f"signature{shape_text(operand.signature_shape)}")
    if operand.variable:
        parts.append("variable")
    if operand.resource is not None:
        held = operand.resource
        begins = " drawn" if held.drawn else ""
        if held.initial is not None:
            begins = " begins " + _elements(held.initial, operand.type, constants)
        parts.append(f"resource {json.dumps(held.container)} {json.dumps(held.name)}{begins}")
    if operand.from_sizes:
        parts.append("from_sizes")
    if operand.data is not None:
        parts.append("= " + _elements(operand.data, operand.type, constants))
    return " ".join(parts)


def type_text(type_: TensorType, whole: bool = True) -> str:
    """A type as text: `f32[1, ?]`, with its quantisation; long lists of scales are abbreviated unless `whole`."""
    plain = type_.dtype.text + (shape_text(type_.shape) if type_.ranked else "[*]")
    return plain if type_.quantization is None else f"{plain} {_quantization(type_.quantization, whole)}"


def _quantization(q: Quantization, whole: bool) -> str:
    if not whole and len(q.scales) > _SHOWN_SCALES:
        block = "" if q.block_size is None else f" block={q.block_size}"
        return f"quantized <{len(q.scales)} scales> axis={q.axis}{block}"
    scales, zeros = ", ".join(map(repr, q.scales)), ", ".join(map(str, q.zero_points))
    parts = [f"quantized scales=[{scales}] zeros=[{zeros}]"]
    if q.axis is not None:
        parts.append(f"axis={q.axis}")
    if q.block_size is not None:
        parts.append(f"block={q.block_size}")
    return " ".join(parts)


def _elements(data: Constant, type_: TensorType, constants: bool) -> str:
    array = data.array
    if array.dtype == object:
        return "strings [" + ", ".join(json.dumps(_base64(bytes(x))) for x in array.reshape(-1)) + "]"
    if array.size <= _LITERAL_ELEMENTS and array.dtype.kind in _PLAIN and not _has_payload(array):
        return "[" + ", ".join(_number(x) for x in array.reshape(-1).tolist()) + "]"
    if not constants:
        return f"<{array.nbytes} bytes>"
    return f'base64 "{_base64(np.ascontiguousarray(array).tobytes())}"'


def _has_payload(array: Array) -> bool:
    """Whether an element is NaN, whose payload a literal cannot express."""
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _number(x: Any) -> str:
    return str(x).lower() if isinstance(x, bool) else repr(x)


def _operation(operation: Operation) -> str:
    results = ", ".join(f"%{o}" for o in operation.outputs)
    name = type(operation.op).__name__
    attributes = ", ".join(f"{k}={value_text(v)}" for k, v in operation.op.attributes.items())
    head = f"{results} = {name}" if results else name
    location = f" @ {json.dumps(operation.location)}" if operation.location else ""
    return f"{head}{_references(operation.inputs)} {{{attributes}}}{location}"


def value_text(value: Any) -> str:
    """An attribute's value as text. Raises ModelError if its type has no text form."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bytes):
        return f'bytes "{_base64(value)}"'
    if isinstance(value, DType):
        return f"<{value.text}>"
    if isinstance(value, TensorType):
        return f"<{type_text(value)}>"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(value_text, value)) + ")"
    if isinstance(value, Subgraph):
        return "\n".join(_subgraph(value, constants=True))
    if has(type(value)):
        named = (f"{f.name}={value_text(getattr(value, f.name))}" for f in fields(type(value)))
        return f"{type(value).__name__} {{{', '.join(named)}}}"
    raise ModelError(f"an attribute is a {type(value).__name__}, which has no text form")
