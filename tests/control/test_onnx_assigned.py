"""ONNX loops that assign to slices, as Paddle's exporter writes them, run natively and match ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir.ops.control_flow.control import While

onnx_parser = pytest.importorskip("onnx.parser")
onnxruntime = pytest.importorskip("onnxruntime")

LOOP = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,4] first, int64[1] begin) => (float[1,4] last, float[1,9,4] rows)
<int64 rounds = {7}, bool go = {1}, float[1,9,4] empty = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, int64[1] one = {1}, int64[1] zero = {0}, int64[1] two = {2},
  int64[1] three = {3}, int64[3] column = {1, -1, 1}, int64 n1 = {1}, float[1] onef = {1.0}> {
  k9, last, rows = Loop (rounds, go, begin, first, empty) <body = b (int64 i, bool c, int64[1] k, float[1,4] h,
    float[a,b,d] x) => (bool on, int64[1] k2, float[1,4] h2, float[e,f,g] x2) {
      t = Tanh (h)
      h2 = Add (t, onef)
      f0 = Cast <to = 1> (k)
      f1 = Add (f0, onef)
      k2 = Cast <to = 7> (f1)
      sizes = Shape (x)
      n = Gather (sizes, one)
      end = Min (n, k2)
      part = Slice (x, k, end, one, one)
      shape = Shape (part)
      row = Unsqueeze (h2, one)
      new = Expand (row, shape)
      s = Squeeze (k)
      e = Squeeze (end)
      numbers = Range (s, e, n1)
      places = Reshape (numbers, column)
      before = Slice (shape, zero, one, zero)
      after = Slice (shape, two, three, zero)
      repeats = Concat <axis = 0> (before, one, after)
      indices = Tile (places, repeats)
      x2 = ScatterElements <axis = 1> (x, indices, new)
      on = Identity (c)
  }>
}"""


def _session(model: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options)


@pytest.mark.parametrize("begin", [0, 1, 2, 3, 8, 9, 12])
def test_a_loop_that_assigns_rows_matches_onnx_runtime(begin: int) -> None:
    model = onnx_parser.parse_model(LOOP).SerializeToString()
    given = {"first": np.float32([[0.1, -0.4, 0.9, -1.3]]), "begin": np.int64([begin])}
    found = onert.InferenceSession(model).run(None, given)
    for one, other in zip(found, _session(model).run(None, given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_loop_that_assigns_rows_is_native() -> None:
    program = onert.compile(onert.load(onnx_parser.parse_model(LOOP).SerializeToString()), num_threads=1)
    steps = program.main.steps
    assert {step.backend for step in steps} == {"llvm"}
    assert not any(isinstance(o.op, While) for step in steps for o in step.sequence.body)


PLACEHOLDERS = """<ir_version: 8, opset_import: ["" : 13]>
g (float[b,4] first, int64 most, bool go) => (float[c,4] last, float[d,4] twice, int64[n] counted)
<float placeholder = {0}, int64 zero = {0}, int64[1] one = {1}, int64 known = {40}, bool yes = {1}> {
  last, twice, number = Loop (TRIPS, GO, first, placeholder, zero) <body = b (int64 i, bool c, float[e,4] h, float t,
    int64 k) => (bool on, float[e,4] h2, float[e,4] t2, int64[1] k2) {
      h2 = Tanh (h)
      t2 = Add (h2, h2)
      k2 = Add (k, one)
      on = Identity (c)
  }>
  counted = Reshape (number, one)
}"""


def _with_placeholders(trips: str = "known", go: str = "yes") -> bytes:
    text = PLACEHOLDERS.replace("TRIPS", trips).replace("GO", go)
    content: bytes = onnx_parser.parse_model(text).SerializeToString()
    return content


@pytest.mark.parametrize("rows", [1, 3])
def test_a_variable_assigned_before_it_is_read_may_begin_with_any_shape(rows: int) -> None:
    model = _with_placeholders()
    given = {"first": np.random.default_rng(0).standard_normal((rows, 4), np.float32)}
    given |= {"most": np.array(1), "go": np.array(True)}
    found = onert.InferenceSession(model).run(None, given)
    for one, other in zip(found, _session(model).run(None, given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, strict=True)


def test_a_loop_with_placeholders_is_native() -> None:
    package = onert.load(_with_placeholders())
    program = onert.compile(package, num_threads=1, input_shapes={0: (2, 4)})
    assert {step.backend for step in program.main.steps} == {"llvm"}


@pytest.mark.parametrize(("trips", "go"), [("most", "yes"), ("known", "go")])
@pytest.mark.parametrize(("most", "goes"), [(0, False), (2, True)])
def test_a_loop_that_may_not_run_returns_its_placeholder(trips: str, go: str, most: int, goes: bool) -> None:
    model = _with_placeholders(trips, go)
    given = {"first": np.float32([[1, 2, 3, 4]]), "most": np.array(most), "go": np.array(goes)}
    found = onert.InferenceSession(model).run(None, given)
    for one, other in zip(found, _session(model).run(None, given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, strict=True)


RANGE = """<ir_version: 8, opset_import: ["" : 13]>
g (%(type)s start, %(type)s limit, %(type)s step) => (%(type)s[n] y) {
  r = Range (start, limit, step)
  y = Add (r, r)
}"""


@pytest.mark.parametrize("type_", ["int64", "int32", "float"])
@pytest.mark.parametrize(("start", "limit", "step"), [(0, 5, 2), (5, 3, 1), (5, 3, -1), (3, 5, -1), (2, 2, 1)])
def test_a_range_may_be_empty(type_: str, start: int, limit: int, step: int) -> None:
    model = onnx_parser.parse_model(RANGE % {"type": type_}).SerializeToString()
    dtype = np.float32 if type_ == "float" else np.dtype(type_)
    given = {n: np.array(v, dtype) for n, v in (("start", start), ("limit", limit), ("step", step))}
    (found,), (expected,) = (each.run(None, given) for each in (onert.InferenceSession(model), _session(model)))
    np.testing.assert_array_equal(found, expected)
