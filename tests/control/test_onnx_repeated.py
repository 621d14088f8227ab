"""ONNX loops that repeat each slice of a tensor as often as a number says, as PyTorch writes `repeat_interleave`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import onert
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.data_movement.slicing import Repeat

onnx_parser = pytest.importorskip("onnx.parser")

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[{shape}] x, int64[t] n) => (float[p,q] y)
<bool go = {{1}}, int64 first = {{0}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}},
 int64[1] less = {{-1}}> {{
  shape = Shape (n)
  length = Gather (shape, first)
  ones = ConstantOfShape <value = int64[1] {{1}}> (shape)
  xs = SplitToSequence <axis = {axis}> (x, ones)
  ns = SplitToSequence <axis = 0> (n, ones)
  none = SequenceEmpty <dtype = 1> ()
  all = Loop (length, go, none) <body = b (int64[1] i, bool c, seq(float) s) => (bool on, seq(float) s2) {{
      on = Identity (c)
      one_x = SequenceAt (xs, i)
      count = SequenceAt (ns, i)
      {body}
      s2 = SequenceInsert (s, item)
  }}>
  joined = ConcatFromSequence <axis = {joined}> (all)
  y = Mul (joined, joined)
}}"""

EXPANDED = """dims = Where (open, full, sizes)
      rank = Shape (sizes)
      full = ConstantOfShape <value = int64[1] {{1}}> (rank)
      negative = Mul (full, less)
      open = Equal (sizes, negative)
      wide = Unsqueeze ({taken}, {at})
      sizes = Concat <axis = 0> ({sizes})
      many = Expand (wide, dims)
      to = Constant <value_ints = {to}> ()
      item = Reshape (many, to)
      three = Constant <value_ints = [3]> ()
      more = Mul (size, two)
      size = Abs (count)
      back = Sub (less, i)
      other = SequenceAt (xs, back)"""


def _expanded(sizes: str, to: str, at: str = "one", taken: str = "one_x") -> str:
    return EXPANDED.format(sizes=sizes, to=to, at=at, taken=taken)


def _ones(n: np.ndarray) -> np.ndarray:
    return np.where(n == -1, 1, n)  # as the exporter's Where says


Expected = Callable[[np.ndarray, np.ndarray], np.ndarray]
REPEATED: dict[str, tuple[str, int, int, str, Expected]] = {
    "rows": ("t,3", 0, 0, _expanded("one, count, three", "[-1, 3]"), lambda x, n: np.repeat(x, _ones(n), 0)),
    "rows twice as often": (
        "t,3",
        0,
        0,
        _expanded("one, more, three", "[-1, 3]"),
        lambda x, n: np.repeat(x, 2 * abs(n), 0),
    ),
    "columns": ("3,t", 1, 1, _expanded("three, one, count", "[3, -1]", "two"), lambda x, n: np.repeat(x, _ones(n), 1)),
    "columns as rows": (
        "1,t",
        1,
        0,
        _expanded("one, one, count", "[-1, 1]", "two"),
        lambda x, n: np.repeat(x, _ones(n), 1).reshape(-1, 1),
    ),
    "tiled rows": (
        "t,3",
        0,
        0,
        "item = Tile (one_x, times) times = Concat <axis = 0> (size, one) size = Abs (count)",
        lambda x, n: np.repeat(x, abs(n), 0),
    ),
}
OTHERS: dict[str, tuple[str, int, int, str, Expected]] = {
    "whole columns": (
        "3,t",
        1,
        0,
        _expanded("count, three, one", "[-1, 1]", "zero"),
        lambda x, n: np.concatenate([np.tile(x[:, i], k) for i, k in enumerate(_ones(n))])[:, None],
    ),
    "rows in another order": (
        "t,3",
        0,
        0,
        _expanded("one, count, three", "[-1, 3]", taken="other"),
        lambda x, n: np.repeat(x[::-1], _ones(n), 0),
    ),
}
CASES = REPEATED | OTHERS
COUNTS = ([2, 0, 3], [1], [0, 4, 1, 1, -1])


def _content(shape: str, axis: int, joined: int, body: str) -> bytes:
    text = MODEL.format(shape=shape, axis=axis, joined=joined, body=body)
    found: bytes = onnx_parser.parse_model(text).SerializeToString()
    return found


def _x(shape: str, length: int) -> np.ndarray:
    dims = [length if d == "t" else int(d) for d in shape.split(",")]
    return np.arange(1, 1 + np.prod(dims), dtype=np.float32).reshape(dims)


@pytest.mark.parametrize(("shape", "axis", "joined", "body", "expected"), CASES.values(), ids=CASES)
def test_slices_are_repeated_as_often_as_their_counts_say(
    shape: str, axis: int, joined: int, body: str, expected: Expected
) -> None:
    session = onert.InferenceSession(_content(shape, axis, joined, body))
    for counts in COUNTS:
        x, n = _x(shape, len(counts)), np.array(counts)
        (y,) = session.run(None, {"x": x, "n": n})
        np.testing.assert_array_equal(y, expected(x, n) ** 2)


@pytest.mark.parametrize("name", CASES)
def test_only_a_loop_that_repeats_slices_in_order_becomes_one_operation(name: str) -> None:
    shape, axis, joined, body, _ = CASES[name]
    program = onert.compile(
        onert.load(_content(shape, axis, joined, body)), input_shapes={0: _x(shape, 4).shape, 1: (4,)}
    )
    kinds = {type(o.op) for o in program.main.subgraph.operations}
    assert (Repeat in kinds, While in kinds) == (name in REPEATED, name not in REPEATED)


@pytest.mark.parametrize("name", ["rows", "columns", "columns as rows", "whole columns"])
def test_a_negative_count_is_an_error(name: str) -> None:
    shape, axis, joined, body, _ = CASES[name]
    session = onert.InferenceSession(_content(shape, axis, joined, body))
    with pytest.raises(Exception, match="-2"):
        session.run(None, {"x": _x(shape, 3), "n": np.array([1, -2, 2])})
