"""The reader's cache of parsed JSON heads."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from onert.serve.errors import ServeError
from onert.serve.protocol import json_form


def tensor(name: str = "x", size: int | None = 8, **more: Any) -> dict[str, Any]:
    found = {"name": name, "datatype": "FP32", "shape": [1, 2], **more}
    return found if size is None else {**found, "parameters": {"binary_data_size": size}}


def message(*inputs: dict[str, Any], data: bytes, **more: Any) -> tuple[bytes, int]:
    head = json.dumps({"inputs": list(inputs), **more}).encode()
    return head + data, len(head)


def contents_of(parsed: Any, form: Any) -> tuple[Any, ...]:
    inputs = {name: (array.dtype, array.tolist()) for name, array in parsed.inputs.items()}
    return parsed.id, inputs, dict(parsed.parameters), parsed.outputs, dict(form.by_name), form.others


DATA = np.arange(4, dtype=np.float32).tobytes()
MESSAGES = {
    "one": message(tensor(), data=DATA[:8]),
    "two": message(tensor("x"), tensor("y"), data=DATA, parameters={"priority": 3, "binary_data_output": True}),
    "outputs": message(tensor(), data=DATA[:8], outputs=[{"name": "z", "parameters": {"binary_data": True}}]),
    "an id": message(tensor(), data=DATA[:8], id="7"),
    "numbers": message(tensor(size=None, data=[1, 2]), tensor("y"), data=DATA[:8]),
    "long": message(tensor("x" * json_form._SHORT), data=DATA[:8]),
    "a byte less": message(tensor(), data=DATA[:7]),
    "a byte more": message(tensor(), data=DATA[:9]),
    "no shape": message(tensor(shape=[3]), data=DATA[:8]),
    "twice": message(tensor(), tensor(), data=DATA),
}


def outcome(read: Any, body: bytes, length: int) -> object:
    try:
        return contents_of(*read(body, length))
    except ServeError as error:
        return str(error)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_cached_head_is_read_like_an_uncached_one(name: str) -> None:
    reader = json_form.Reader()
    body, length = MESSAGES[name]
    other = body[:length] + bytes(reversed(body[length:]))
    for each in (body, body, other, body[:-1], body + b"x", body):
        assert outcome(reader.read, each, length) == outcome(json_form.read, each, length)


def test_a_limited_number_of_heads_is_cached() -> None:
    """The most recently used ones."""
    reader = json_form.Reader()
    first, length = MESSAGES["one"]
    for at in range(3 * json_form._KEPT):
        body, size = message(tensor(f"x{at}"), data=DATA[:8])
        assert list(reader.read(body, size)[0].inputs) == [f"x{at}"]
        reader.read(first, length)
    assert len(reader._layouts) == json_form._KEPT
    assert first[:length] in reader._layouts


def test_requests_with_the_same_head_do_not_share_elements() -> None:
    reader = json_form.Reader()
    body, length = MESSAGES["one"]
    arrays = [reader.read(bytearray(body), length)[0].inputs["x"] for _ in range(3)]
    arrays[1][:] = 5
    assert [array.tolist() for array in arrays] == [[[0, 1]], [[5, 5]], [[0, 1]]]
