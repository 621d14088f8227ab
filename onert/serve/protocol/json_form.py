"""Inferences as JSON, with tensors inside it or as binary data after it.

Source: Open Inference Protocol, "Inference Request JSON Object" and "Inference Response JSON Object", with the
extension for binary data: `Inference-Header-Content-Length` is the length of the JSON, `binary_data_size` of an input
the number of its bytes after it, and `binary_data` of an output requests binary data for it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.serve.datatypes import TYPES, from_bytes, from_list, to_bytes
from onert.serve.errors import bad
from onert.serve.inference import InferenceRequest, InferenceResponse, Parameter

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_SHORT = 2048
_KEPT = 128
_MOST_TENSORS = 1000
_MOST_DIMENSIONS = 32
_MOST_ELEMENTS = 1 << 40


@frozen(eq=False)
class Form:
    """Which outputs are wanted as binary data: `by_name` for some, `others` for the rest."""

    by_name: Mapping[str, bool]
    others: bool

    def is_binary(self, name: str) -> bool:
        """Whether an output is wanted as binary data."""
        return self.by_name.get(name, self.others)


@frozen(eq=False)
class Layout:
    """The parsed JSON of a request whose tensors are all binary: `tensors` are (name, datatype, shape, bytes)."""

    parameters: dict[str, Parameter]
    outputs: tuple[str, ...]
    form: Form
    tensors: list[tuple[str, str, list[int], int]]


class Reader:
    """Parses requests. It caches parsed JSON, because a client usually sends the same JSON before each binary tensor.

    The cache holds the 128 most recently used ones of up to 2 KiB.
    """

    def __init__(self) -> None:
        self._layouts: OrderedDict[bytes, Layout] = OrderedDict()

    def read(self, body: bytes | bytearray, json_length: int) -> tuple[InferenceRequest, Form]:
        """Parse an inference request. Raises ServeError if it violates the protocol."""
        if json_length > _SHORT:
            return read(body, json_length)
        head = bytes(memoryview(body)[:json_length])
        layout = self._layouts.get(head)
        if layout is not None and sum(size for *_, size in layout.tensors) == len(body) - json_length:
            self._layouts.move_to_end(head)
            return _laid_out(layout, memoryview(body)[json_length:])
        asked, form = read(body, json_length)
        if not asked.id:
            self._keep(head, asked, form)
        return asked, form

    def _keep(self, head: bytes, asked: InferenceRequest, form: Form) -> None:
        tensors = []
        for each in json.loads(head)["inputs"]:
            size = each.get("parameters", {}).get("binary_data_size")
            if size is None:
                return
            tensors.append((each["name"], each["datatype"], each["shape"], size))
        self._layouts[head] = Layout(dict(asked.parameters), asked.outputs, form, tensors)
        while len(self._layouts) > _KEPT:
            self._layouts.popitem(last=False)


def _laid_out(layout: Layout, rest: memoryview) -> tuple[InferenceRequest, Form]:
    inputs: dict[str, Array] = {}
    start = 0
    for name, datatype, shape, size in layout.tensors:
        inputs[name] = from_bytes(f"input {name[:200]!r}", datatype, shape, rest[start : start + size])
        start += size
    return InferenceRequest("", inputs, layout.parameters, layout.outputs), layout.form


def read(body: bytes | bytearray, json_length: int) -> tuple[InferenceRequest, Form]:
    """Parse an inference request. Raises ServeError if it violates the protocol."""
    document = parsed(memoryview(body)[:json_length])
    rest = memoryview(body)[json_length:]
    _known(document, "the request", {"id", "parameters", "inputs", "outputs"})
    id_ = document.get("id", "")
    if not isinstance(id_, str):
        raise bad("'id' is not a string")
    parameters = _parameters(document, "the request")
    inputs: dict[str, Array] = {}
    given = _list_of_objects(document, "inputs")
    if not given:
        raise bad("the request has no 'inputs'")
    for at, each in enumerate(given):
        name, array, taken = _input(each, f"input {at}", rest)
        if name in inputs:
            raise bad(f"input {name[:200]!r} is given twice")
        inputs[name] = array
        rest = rest[taken:]
    if len(rest):
        raise bad(f"{len(rest)} bytes are left after those of the inputs")
    outputs, by_name = _outputs(document)
    others = parameters.get("binary_data_output", False)
    if not isinstance(others, bool):
        raise bad("parameter 'binary_data_output' is neither true nor false")
    return InferenceRequest(id_, inputs, parameters, outputs), Form(by_name, others)


def parsed(data: memoryview | bytearray | bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises ServeError if it is not one."""
    try:
        found = json.loads(bytes(data))
    except RecursionError as error:
        raise bad("the request is not valid JSON: it is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise bad(f"the request is not valid JSON: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise bad(f"the request is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except ValueError as error:
        raise bad("the request has a number with too many digits") from error
    if not isinstance(found, dict):
        raise bad("the request is not a JSON object")
    return found


def _known(document: Mapping[str, Any], place: str, fields: set[str]) -> None:
    unknown = document.keys() - fields
    if unknown:
        raise bad(f"{place} has an unknown field {min(unknown)[:200]!r}, expected {', '.join(sorted(fields))}")


def _parameters(document: Mapping[str, Any], place: str) -> dict[str, Parameter]:
    found = document.get("parameters", {})
    if not isinstance(found, dict):
        raise bad(f"{place}: 'parameters' is not an object")
    for name, value in found.items():
        if not isinstance(value, bool | int | float | str):
            raise bad(f"{place}: parameter {name[:200]!r} is not a number, string or boolean")
    return found


def _list_of_objects(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = document.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise bad(f"{name!r} is not a list of objects")
    if len(found) > _MOST_TENSORS:
        raise bad(f"{name!r} has {len(found)} entries, expected at most {_MOST_TENSORS}")
    return found


def _input(document: dict[str, Any], place: str, rest: memoryview) -> tuple[str, Array, int]:
    """An input's name and elements, and the number of its bytes after the JSON."""
    _known(document, place, {"name", "shape", "datatype", "parameters", "data"})
    name = _name(document, place)
    place = f"input {name[:200]!r}"
    datatype = document.get("datatype")
    if not isinstance(datatype, str) or datatype not in TYPES:
        raise bad(f"{place}: 'datatype' is {datatype!r:.100}, expected one of {', '.join(sorted(TYPES))}")
    shape = checked_shape(document.get("shape"), place)
    size = _parameters(document, place).get("binary_data_size")
    if size is None:
        if "data" not in document:
            raise bad(f"{place} has neither 'data' nor a parameter 'binary_data_size'")
        return name, from_list(place, datatype, shape, document["data"]), 0
    if "data" in document:
        raise bad(f"{place} has both 'data' and a parameter 'binary_data_size'")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(rest):
        raise bad(f"{place}: parameter 'binary_data_size' is {size!r:.100}, but {len(rest)} bytes are left")
    return name, from_bytes(place, datatype, shape, rest[:size]), size


def checked_shape(shape: Any, place: str) -> list[int]:
    """The shape itself. Raises ServeError unless it is a list of non-negative integers of reasonable size."""
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise bad(f"{place}: 'shape' is not a list of at most {_MOST_DIMENSIONS} numbers")
    elements = 1
    for each in shape:
        if isinstance(each, bool) or not isinstance(each, int) or each < 0:
            raise bad(f"{place}: a dimension is {each!r:.100}, expected a whole number of at least 0")
        elements *= each or 1
        if elements > _MOST_ELEMENTS:
            raise bad(f"{place}: shape {shape!r:.200} has too many elements")
    return shape


def _name(document: dict[str, Any], place: str) -> str:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise bad(f"{place}: 'name' is not a non-empty string")
    return name


def _outputs(document: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, bool]]:
    names: list[str] = []
    by_name: dict[str, bool] = {}
    for at, each in enumerate(_list_of_objects(document, "outputs")):
        place = f"output {at}"
        _known(each, place, {"name", "parameters"})
        name = _name(each, place)
        names.append(name)
        parameters = _parameters(each, place)
        refuse_classification(parameters, f"output {name[:200]!r}")
        wanted = parameters.get("binary_data")
        if wanted is None:
            continue
        if not isinstance(wanted, bool):
            raise bad(f"output {name[:200]!r}: parameter 'binary_data' is neither true nor false")
        by_name[name] = wanted
    return tuple(names), by_name


def refuse_classification(parameters: Mapping[str, Any], place: str) -> None:
    """Raises ServeError for parameters of extensions that this server does not support."""
    for name in ("classification", "shared_memory_region"):
        if parameters.get(name):
            raise bad(f"{place}: parameter {name!r} belongs to an extension that this server does not support")


def written(answer: InferenceResponse, form: Form) -> tuple[list[bytes], int | None]:
    """The body of an answer in pieces, and the length of its JSON if binary data follows it.

    Infinities and NaN, which JSON cannot represent, become null.
    """
    if not answer.id and all(form.is_binary(name) for name, _, _ in answer.outputs):
        pieces = [to_bytes(array) for _, _, array in answer.outputs]
        tensors = zip(answer.outputs, pieces, strict=True)
        told = tuple((name, datatype, array.shape, len(piece)) for (name, datatype, array), piece in tensors)
        head = _head(answer.model, answer.version, told)
        return [head, *pieces], len(head) if pieces else None
    return _written(answer, form)


@lru_cache(maxsize=128)
def _head(model: str, version: str, told: tuple[tuple[str, str, tuple[int, ...], int], ...]) -> bytes:
    """The JSON of an answer whose outputs (name, datatype, shape, number of bytes) are all binary."""
    outputs = [
        {"name": name, "datatype": datatype, "shape": list(shape), "parameters": {"binary_data_size": size}}
        for name, datatype, shape, size in told
    ]
    return _ENCODER.encode({"model_name": model, "model_version": version, "outputs": outputs}).encode()


def _written(answer: InferenceResponse, form: Form) -> tuple[list[bytes], int | None]:
    outputs: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    for name, datatype, array in answer.outputs:
        output: dict[str, Any] = {"name": name, "datatype": datatype, "shape": list(array.shape)}
        if form.is_binary(name):
            pieces.append(to_bytes(array))
            output["parameters"] = {"binary_data_size": len(pieces[-1])}
        else:
            output["data"] = _listed(array)
        outputs.append(output)
    document: dict[str, Any] = {"model_name": answer.model, "model_version": answer.version, "outputs": outputs}
    if answer.id:
        document["id"] = answer.id
    head = _ENCODER.encode(document).encode()
    return [head, *pieces], len(head) if pieces else None


def _listed(array: Array) -> list[Any]:
    """An array's elements in row-major order."""
    flat = array.ravel()
    if array.dtype.kind == "O":
        return [each.decode("utf-8", "replace") for each in flat.tolist()]
    if array.dtype.kind in "biu":
        return list(flat.tolist())
    numbers = flat.astype(np.float64, copy=False)
    if np.isfinite(numbers).all():
        return list(numbers.tolist())
    return [each if np.isfinite(each) else None for each in numbers.tolist()]
