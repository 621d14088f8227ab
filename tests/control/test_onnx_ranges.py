"""ONNX loops that reduce a range of rows in each round, as PyTorch writes `EmbeddingBag`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import onert
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.enclosed import Loop
from onert.ir.ops.reduction.segment import ReduceRanges

onnx_parser = pytest.importorskip("onnx.parser")

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n,3] x, int64[t] begins, int64[n] rows) => (float[p,q] y)
<bool go = {{1}}, int64 first = {{0}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}},
 float[1,3] nothing = {{-1, -2, -3}}> {{
  shape = Shape (begins)
  count = Gather (shape, first)
  size = Shape (rows)
  bounds = Concat <axis = 0> (begins, size)
  {loop}
  y = Mul (made, made)
}}"""
APPENDED = """ends = Slice (bounds, one, open)
  open = Constant <value_ints = [9223372036854775807]> ()
  made = Loop (count, go) <body = b (int64 i, bool c) => (bool on, float[3] row) {{
      on = Identity (c)
      low = Gather (bounds, i)
      high = Gather (ends, i)
      begin = Unsqueeze (low, zero)
      end = Unsqueeze (high, zero)
      {body}
  }}>"""
LISTED = """more = Less (first, count)
  none = SequenceEmpty <dtype = 1> ()
  last, all = Loop (count, more, first, none)
  <body = b (int64 i, bool c, int64 k, seq(float) s) => (bool on, int64 next, seq(float) s2) {{
      at = Reshape (k, one)
      after = Add (at, one)
      begin = Slice (bounds, at, after)
      later = Add (at, two)
      end = Slice (bounds, after, later)
      is_empty = Equal (begin, end)
      item = If (is_empty) <
        then_branch = t () => (float[1,3] a) {{ a = Identity (nothing) }},
        else_branch = e () => (float[1,r] d) {{ {body} }}
      >
      s2 = SequenceInsert (s, item)
      unit = Squeeze (one)
      next = Add (k, unit)
      on = Less (next, count)
  }}>
  made = ConcatFromSequence <axis = 0> (all)"""
PART = "part = Slice (x, begin, end, zero) "
LAST = (
    PART + "number = Sub (count, unit) unit = Squeeze (one) is_last = Equal (k, number)"
    " d = If (is_last) <then_branch = m () => (float[1,w] f) {{"
    " total = ReduceSum <keepdims = 1> (part, zero) rest = Sub (size, begin) q = Cast <to = 1> (rest)"
    " f = Div (total, q) }}, else_branch = o () => (float[1,w] h) {{ h = ReduceMean <axes = [0]> (part) }}>"
)
TAIL = (
    "number = Sub (count, unit) unit = Squeeze (one) is_last = Equal (k, number)"
    " part = If (is_last) <then_branch = m () => (float[v,w] f) {{"
    " open = Constant <value_ints = [9223372036854775807]> () f = Slice (x, begin, open, zero) }},"
    " else_branch = o () => (float[v,w] h) {{ h = Slice (x, begin, end, zero) }}> d = ReduceMax <axes = [0]> (part)"
)

Parts = Sequence[np.ndarray]
"""The numbers of the rows of each range."""
Expected = Callable[[np.ndarray, np.ndarray, Parts], list[np.ndarray]]
NOTHING = np.float32([-1, -2, -3])
REDUCED: dict[str, tuple[str, str, Expected]] = {
    "sums": (
        APPENDED,
        PART + "row = ReduceSum <keepdims = 0> (part, zero)",
        lambda x, rows, parts: [x[p].sum(0) for p in parts],
    ),
    "maxima of gathered rows": (
        APPENDED,
        "part = Slice (rows, begin, end, zero) taken = Gather (x, part)"
        " row = ReduceMax <keepdims = 0, axes = [0]> (taken)",
        lambda x, rows, parts: [x[rows[p]].max(0, initial=-np.inf) for p in parts],
    ),
    "weighted sums, shifted": (
        APPENDED,
        "part = Slice (rows, begin, end, zero) taken = Gather (x, part) weights = Cast <to = 1> (part)"
        " wide = Unsqueeze (weights, one) scaled = Mul (taken, wide)"
        " total = ReduceSum <keepdims = 0> (scaled, zero) index = Cast <to = 1> (i) row = Add (total, index)",
        lambda x, rows, parts: [(x[rows[p]] * rows[p][:, None]).sum(0) + i for i, p in enumerate(parts)],
    ),
    "listed sums": (
        LISTED,
        PART + "d = ReduceSum <keepdims = 1> (part, zero)",
        lambda x, rows, parts: [x[p].sum(0) if len(p) else NOTHING for p in parts],
    ),
    "listed means, the last one by its size": (
        LISTED,
        LAST,
        lambda x, rows, parts: [x[p].mean(0) if len(p) else NOTHING for p in parts],
    ),
    "listed maxima of ranges that branches choose": (
        LISTED,
        TAIL,
        lambda x, rows, parts: [x[p].max(0) if len(p) else NOTHING for p in parts],
    ),
}
OTHERS: dict[str, tuple[str, str, Expected]] = {
    "sums of every other row": (
        APPENDED,
        "part = Slice (x, begin, end, zero, two) row = ReduceSum <keepdims = 0> (part, zero)",
        lambda x, rows, parts: [x[p[::2]].sum(0) for p in parts],
    ),
    "sums of what the round before added": (
        "last, made = Loop (count, go, nothing)"
        " <body = b (int64 i, bool c, float[1,3] s) => (bool on, float[1,3] s2, float[3] row) {{"
        " on = Identity (c) row = ReduceSum <keepdims = 0> (s, zero) s2 = Add (s, s) }}>",
        "",
        lambda x, rows, parts: [NOTHING * 2**i for i in range(len(parts))],
    ),
}
CASES = REDUCED | OTHERS
BEGINS = ([0, 2, 2, 3], [0], [0, 1, 4, 4, 6, 6], [0, 3, 3, 4])


def _content(loop: str, body: str) -> bytes:
    text = MODEL.format(loop=loop.format(body=body.format()))
    found: bytes = onnx_parser.parse_model(text).SerializeToString()
    return found


def _given(begins: Sequence[int]) -> tuple[dict[str, np.ndarray], Parts]:
    n = 7 + len(begins)
    rng = np.random.default_rng(n)
    given = {
        "x": rng.integers(-9, 9, (n, 3)).astype(np.float32),
        "begins": np.array(begins),
        "rows": rng.integers(-n, n, n),
    }
    return given, [np.arange(a, b) for a, b in zip(begins, [*begins[1:], n], strict=True)]


@pytest.mark.parametrize(("loop", "body", "expected"), CASES.values(), ids=CASES)
def test_each_range_of_rows_is_reduced_to_one_row(loop: str, body: str, expected: Expected) -> None:
    session = onert.InferenceSession(_content(loop, body))
    for begins in BEGINS:
        given, parts = _given(begins)
        (y,) = session.run(None, given)
        np.testing.assert_allclose(y, np.stack(expected(given["x"], given["rows"], parts)) ** 2, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_only_a_loop_over_ranges_becomes_operations_on_all_of_them(name: str) -> None:
    loop, body, _ = CASES[name]
    given, _ = _given(BEGINS[0])
    shapes = {k: array.shape for k, array in enumerate(given.values())}
    program = onert.compile(onert.load(_content(loop, body)), input_shapes=shapes)
    kinds = {type(o.op) for o in program.main.subgraph.operations}
    assert (ReduceRanges in kinds) == (name in REDUCED)
    assert kinds.isdisjoint((While, Loop)) == (name in REDUCED)
