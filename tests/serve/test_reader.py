"""Claims about requests whose JSON came before."""

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


def told(asked: Any, form: Any) -> tuple[Any, ...]:
    inputs = {name: (array.dtype, array.tolist()) for name, array in asked.inputs.items()}
    return asked.id, inputs, dict(asked.parameters), asked.outputs, dict(form.by_name), form.others


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
        return told(*read(body, length))
    except ServeError as error:
        return str(error)


@pytest.mark.parametrize("name", MESSAGES)
def test_json_that_came_before_is_read_as_it_was(name: str) -> None:
    reader = json_form.Reader()
    body, length = MESSAGES[name]
    other = body[:length] + bytes(reversed(body[length:]))
    for each in (body, body, other, body[:-1], body + b"x", body):
        assert outcome(reader.read, each, length) == outcome(json_form.read, each, length)


def test_so_many_heads_are_kept_and_no_more() -> None:
    """Those that were asked for last."""
    reader = json_form.Reader()
    first, length = MESSAGES["one"]
    for at in range(3 * json_form._KEPT):
        body, size = message(tensor(f"x{at}"), data=DATA[:8])
        assert list(reader.read(body, size)[0].inputs) == [f"x{at}"]
        reader.read(first, length)
    assert len(reader._layouts) == json_form._KEPT
    assert first[:length] in reader._layouts


def test_requests_that_share_a_head_share_no_elements() -> None:
    reader = json_form.Reader()
    body, length = MESSAGES["one"]
    arrays = [reader.read(bytearray(body), length)[0].inputs["x"] for _ in range(3)]
    arrays[1][:] = 5
    assert [array.tolist() for array in arrays] == [[[0, 1]], [[5, 5]], [[0, 1]]]
