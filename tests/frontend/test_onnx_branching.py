"""Models in which a tensor's rank is known only at run time: a branch is built for each rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")

HEAD = '<ir_version: 9, opset_import: ["" : 17]>'
DROPPED = f"""{HEAD} g (float[n, 1, 3] x) => (float[m] y) {{
  z = Squeeze (x)
  axes = Constant <value_ints: ints = [-1]> ()
  s = ReduceSum <keepdims: int = 0> (z, axes)
  minus = Constant <value_ints: ints = [-1]> ()
  y = Reshape (s, minus)
}}"""
"""A dimension that is dropped if it has length 1."""
WITHIN = f"""{HEAD} g (float[3] x, bool once) => (float[k] y) {{
  yes = Constant <value: tensor = bool {{1}}> ()
  y = If (yes) <then_branch: graph = known () => (float[k] out) {{
      rank = If (once) <then_branch: graph = plain () => (float[3] a) {{ a = Identity (x) }},
                        else_branch: graph = wide () => (float[1, 3] b) {{
                          zero = Constant <value_ints: ints = [0]> ()
                          b = Unsqueeze (x, zero) }}>
      shape = Shape (rank)
      counted = Cast <to: int = 1> (shape)
      out = Add (counted, counted)
    }}, else_branch: graph = never () => (float[3] c) {{ c = Identity (x) }}>
}}"""
"""Branches of different rank, inside a branch that is always taken."""
AGAIN = "Squeeze (x)\n  r = Add (z, z)\n  t = Squeeze (r)"
TWICE = DROPPED.replace("Squeeze (x)", AGAIN).replace("(z, a", "(t, a")


@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
@pytest.mark.parametrize("text", [DROPPED, TWICE], ids=["once", "twice"])
def test_a_dynamic_dimension_is_squeezed_exactly_when_it_is_1(text: str, backends: tuple[str, ...]) -> None:
    choices = onert.SessionOptions()
    choices.onert = {"backends": backends} if backends else {}
    session = onert.InferenceSession(onnx.parser.parse_model(text).SerializeToString(), choices)
    for rows in (4, 1, 2):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 1, 3)
        (y,) = session.run(None, {"x": x})
        assert y.tolist() == (x.sum((1, 2)) * (2 if text == TWICE else 1)).tolist()


@pytest.mark.parametrize("once", [True, False])
def test_ranks_are_known_after_a_branch_that_is_always_taken(once: Any) -> None:
    session = onert.InferenceSession(onnx.parser.parse_model(WITHIN).SerializeToString())
    (y,) = session.run(None, {"x": np.float32([1, 2, 3]), "once": np.array(once)})
    assert y.tolist() == ([6] if once else [2, 6])


def test_several_dynamic_dimensions_are_squeezed_exactly_when_they_are_1() -> None:
    text = "agraph (float[n, k, 3] x) => (float[m] y) { z = Squeeze (x)\n y = Neg (z) }"
    content = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}').SerializeToString()
    session = onert.InferenceSession(content)
    for n, k in ((4, 2), (1, 2), (4, 1), (1, 1), (4, 0), (4, 2)):
        x = np.arange(n * k * 3, dtype=np.float32).reshape(n, k, 3)
        (y,) = session.run(None, {"x": x})
        assert y.shape == x.squeeze().shape
        assert (y == -x.squeeze()).all()


def test_a_squeeze_without_axes_of_too_many_dynamic_dimensions_is_refused_with_the_place() -> None:
    text = DROPPED.replace("float[n, 1, 3] x", "float[n, k, l, m] x")
    with pytest.raises(onert.ModelError, match=r"node 0 Squeeze: .* expected at most 3 unknown dimensions"):
        onert.load(onnx.parser.parse_model(text).SerializeToString())
