"""ONNX loops that append to a sequence in each round: the result's rank is known, and the loop runs natively."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import onert
from onert.ir.ops.control_flow.control import While

onnx_parser = pytest.importorskip("onnx.parser")

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
g (float[t,2,3] x) => (float[p,q,r] y) <int64 zero = {{0}}, bool go = {{1}}> {{
  sizes = Shape (x)
  length = Gather (sizes, zero)
  first = Gather <axis = 0> (x, zero)
  s = {initial}
  h9, all = Loop (length, go, first, s) <body = b (int64 i, bool c, float[2,3] h, seq(float) s1)
    => (bool on, float[2,3] h2, seq(float) s2) {{
      on = Identity (c)
      row = Gather <axis = 0> (x, i)
      sum = Add (h, row)
      h2 = Tanh (sum)
      {body}
  }}>
  z = {joined}
  y = Add (z, z)
}}"""
EMPTY, TWO = "SequenceEmpty <dtype = 1> ()", "SequenceConstruct (first, first)"
STACKED = "ConcatFromSequence <axis = {}, new_axis = 1> (all)"
CASES = {
    "stacked first": (EMPTY, "s2 = SequenceInsert (s1, h2)", STACKED.format(0), lambda hs, f: np.stack(hs)),
    "stacked in the middle": (EMPTY, "s2 = SequenceInsert (s1, h2)", STACKED.format(1), lambda hs, f: np.stack(hs, 1)),
    "stacked last": (EMPTY, "s2 = SequenceInsert (s1, h2)", STACKED.format(-1), lambda hs, f: np.stack(hs, -1)),
    "the last first": (
        EMPTY,
        "w = Constant <value_int = 0> () s2 = SequenceInsert (s1, h2, w)",
        STACKED.format(1),
        lambda hs, f: np.stack(hs[::-1], 1),
    ),
    "behind others": (TWO, "s2 = SequenceInsert (s1, h2)", STACKED.format(1), lambda hs, f: np.stack([f, f, *hs], 1)),
    "joined along an axis": (
        EMPTY,
        "w = Unsqueeze (h2, a) a = Constant <value_ints = [0]> () s2 = SequenceInsert (s1, w)",
        "ConcatFromSequence <axis = 1> (all)",
        lambda hs, f: np.concatenate(hs, 0)[None],
    ),
    "joined side by side": (
        EMPTY,
        "s2 = SequenceInsert (s1, h2)",
        "Unsqueeze (beside, a) a = Constant <value_ints = [0]> () beside = ConcatFromSequence <axis = -1> (all)",
        lambda hs, f: np.concatenate(hs, 1)[None],
    ),
    "one of them": (
        EMPTY,
        "s2 = SequenceInsert (s1, h2)",
        "Unsqueeze (it, a) a = Constant <value_ints = [1]> () it = SequenceAt (all, zero)",
        lambda hs, f: hs[0][:, None],
    ),
    "what a round finds at the end": (
        TWO,
        "e = Constant <value_int = -1> () w = SequenceAt (s1, e) v = Add (w, h2) s2 = SequenceInsert (s1, v)",
        STACKED.format(0),
        lambda hs, f: np.stack([f, f, *(f + np.cumsum(hs, 0))]),
    ),
    "in a loop within": (
        EMPTY,
        "n = Constant <value_int = 2> () s2 = Loop (n2, , s1) <body = k (int64 j, bool d, seq(float) u)"
        " => (bool dd, seq(float) u2) { dd = Constant <value = bool {1}> () u2 = SequenceInsert (u, h2) }>"
        " n2 = Min (n, length)",
        STACKED.format(1),
        lambda hs, f: np.stack([h for h in hs for _ in range(min(2, len(hs)))], 1),
    ),
}
NATIVE = ("stacked first", "stacked in the middle", "stacked last", "joined along an axis", "joined side by side")


Rows = Callable[[Sequence[np.ndarray], np.ndarray], np.ndarray]


def _expected(x: np.ndarray, how: Rows) -> np.ndarray:
    states, h = [], x[0]
    for row in x:
        h = np.tanh(h + row)
        states.append(h)
    return 2 * how(states, x[0])


@pytest.mark.parametrize(("initial", "body", "joined", "how"), CASES.values(), ids=CASES)
def test_a_sequence_filled_by_a_loop_has_the_expected_elements(initial: str, body: str, joined: str, how: Rows) -> None:
    text = MODEL.format(initial=initial, body=body, joined=joined)
    session = onert.InferenceSession(onnx_parser.parse_model(text).SerializeToString())
    for length in (3, 1, 40):
        x = np.linspace(-1, 1, length * 6, dtype=np.float32).reshape(length, 2, 3)
        (y,) = session.run(None, {"x": x})
        np.testing.assert_allclose(y, _expected(x, how), atol=1e-5)


@pytest.mark.parametrize("name", NATIVE)
def test_a_loop_that_only_appends_tensors_is_enclosed(name: str) -> None:
    initial, body, joined, _ = CASES[name]
    content = onnx_parser.parse_model(MODEL.format(initial=initial, body=body, joined=joined)).SerializeToString()
    program = onert.compile(onert.load(content), input_shapes={0: (40, 2, 3)})
    assert While not in {type(o.op) for o in program.main.subgraph.operations}
    assert None not in program.outputs[0].shape
