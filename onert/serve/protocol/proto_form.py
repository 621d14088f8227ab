"""Inferences as gRPC messages.

Source: Open Inference Protocol, "GRPC". Tensors are either all bytes in `raw_input_contents`, or values in their own
`contents`. Answers have the same form as their request.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from onert.ir import Array, DType
from onert.serve.datatypes import TYPES, from_bytes, from_list, to_bytes
from onert.serve.errors import bad
from onert.serve.inference import InferenceRequest, InferenceResponse, Parameter

from .json_form import checked_shape, refuse_classification
from .messages import message

_RESPONSE = message("ModelInferResponse")
_STREAMED = message("ModelStreamInferResponse")
_FIELDS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""The field of `contents` for each datatype. 16-bit floats have none, and are sent as bytes."""


def read(request: Any) -> tuple[InferenceRequest, bool]:
    """Parse an inference request. Also returns whether its tensors are bytes. Raises ServeError if it is invalid."""
    raw = request.raw_input_contents
    if not request.inputs:
        raise bad("the request has no inputs")
    if raw and len(raw) != len(request.inputs):
        raise bad(f"the request has {len(request.inputs)} inputs but raw contents for {len(raw)}")
    inputs: dict[str, Array] = {}
    for at, each in enumerate(request.inputs):
        if not each.name or each.name in inputs:
            raise bad(f"input {at} is called {each.name[:200]!r}, expected a unique name")
        inputs[each.name] = _input(each, raw[at] if raw else None)
    for output in request.outputs:
        refuse_classification(parameters(output.parameters), f"output {output.name[:200]!r}")
    asked = InferenceRequest(request.id, inputs, parameters(request.parameters), tuple(o.name for o in request.outputs))
    return asked, bool(raw)


def _input(given: Any, raw: bytes | None) -> Array:
    place = f"input {given.name[:200]!r}"
    if given.datatype not in TYPES:
        raise bad(f"{place}: 'datatype' is {given.datatype[:100]!r}, expected one of {', '.join(sorted(TYPES))}")
    shape = checked_shape(list(given.shape), place)
    refuse_classification(parameters(given.parameters), place)
    if raw is not None:
        if given.HasField("contents"):
            raise bad(f"{place} has both contents and raw contents")
        return from_bytes(place, given.datatype, shape, raw)
    field = _FIELDS.get(given.datatype)
    if field is None:
        raise bad(f"{place}: elements of {given.datatype} must be sent as raw contents")
    filled = [f.name for f, _ in given.contents.ListFields() if f.name != field]
    if filled:
        raise bad(f"{place}: elements of {given.datatype} are in {filled[0]}, expected in {field}")
    elements = getattr(given.contents, field)
    if given.datatype == "BYTES":
        found = np.empty(len(elements), object)
        found[:] = list(elements)
        if len(elements) != np.prod(shape, dtype=np.int64):
            raise bad(f"{place}: contents have {len(elements)} elements, which does not match shape {shape}")
        return found.reshape(shape)
    return from_list(place, given.datatype, shape, list(elements))


def parameters(given: Any) -> Mapping[str, Parameter]:
    """Parameters by name."""
    found: dict[str, Parameter] = {}
    for name, value in given.items():
        which = value.WhichOneof("parameter_choice")
        if which is None:
            raise bad(f"parameter {name[:200]!r} has no value")
        found[name] = getattr(value, which)
    return found


def sequence_of(request: Any) -> Hashable:
    """The model and sequence that a request belongs to; None if it belongs to no sequence."""
    if "sequence_id" not in request.parameters:
        return None
    value = request.parameters["sequence_id"]
    which = value.WhichOneof("parameter_choice")
    sequence = None if which is None else getattr(value, which)
    return (request.model_name, sequence) if sequence else None


def failed(request: Any, told: str) -> Any:
    """The message of a stream for a failed request."""
    return _STREAMED(error_message=told, infer_response=_RESPONSE(id=request.id, model_name=request.model_name))


def streamed(response: Any) -> Any:
    """The message of a stream for an answer."""
    return _STREAMED(infer_response=response)


def written(answer: InferenceResponse, *, raw: bool) -> Any:
    """The message for an answer, with bytes (`raw`) or with values."""
    made = _RESPONSE(model_name=answer.model, model_version=answer.version, id=answer.id)
    raw = raw or any(datatype not in _FIELDS for _, datatype, _ in answer.outputs)
    for name, datatype, array in answer.outputs:
        output = made.outputs.add(name=name, datatype=datatype, shape=array.shape)
        if raw:
            made.raw_output_contents.append(to_bytes(array))
        else:
            field = getattr(output.contents, _FIELDS[datatype])
            dtype = TYPES[datatype]
            field.extend(array.ravel().tolist() if dtype is not DType.STRING else list(array.ravel()))
    return made
