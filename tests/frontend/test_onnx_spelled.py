"""Casts between numbers and strings give ONNX Runtime's results."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import onert
from onert.ir import Array, OnertError

onnxruntime = pytest.importorskip("onnxruntime")

NUMBERS = [0, -0.0, 1.5, 0.1, 1 / 3, 1e10, 123456789, 1e-7, 3.4e38, np.nan, np.inf, -np.inf, 1e16, 0.0001, 12345.678]
TEXTS = ["1.5", " 2", "4x", "1e5", "0x10", "1_000", "-0", "1.9", "300", "-7", "+5", "1e", "0x"]


def _cast(x: Array, to: int) -> bytes:
    node = helper.make_node("Cast", ["x"], ["y"], to=to)
    given = TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    ends = [helper.make_tensor_value_info(name, kind, ["n"]) for name, kind in (("x", given), ("y", to))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 18)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    return content


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "int8", "bool"])
def test_numbers_are_written_and_read_as_by_onnx_runtime(dtype: str) -> None:
    kind = np.dtype(dtype)
    numbers = NUMBERS if kind.kind == "f" else [0, 1, 100]
    with np.errstate(over="ignore"):
        written = np.array(numbers).astype(kind)
    read = np.array(TEXTS, object)
    for x, to in ((written, TensorProto.STRING), (read, helper.np_dtype_to_tensor_dtype(kind))):
        content = _cast(x, to)
        mine, theirs = (
            s(content).run(None, {"x": x})[0] for s in (onert.InferenceSession, onnxruntime.InferenceSession)
        )
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("text", "to"), [("", "float32"), ("abc", "int64"), ("1e400", "float64"), (".", "uint8"), (str(1 << 63), "int64")]
)
def test_a_string_that_begins_with_no_number_is_an_error_that_shows_it(text: str, to: str) -> None:
    x = np.array([text], object)
    with pytest.raises(OnertError, match=f"a string is {text!r}, expected a"):
        onert.InferenceSession(_cast(x, helper.np_dtype_to_tensor_dtype(np.dtype(to)))).run(None, {"x": x})
