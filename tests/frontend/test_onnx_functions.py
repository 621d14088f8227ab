"""Functions defined by an ONNX model: inputs and attributes that callers leave out."""

from __future__ import annotations

import numpy as np
import pytest

import onert

parser = pytest.importorskip("onnx.parser", reason="the package onnx writes the models")
X = np.float32([[-1, 0.5, 2]])
HEADER = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]> g (float[1,3] x) => (float[1,3] y) '
OWN = ' <domain: "own", opset_import: ["" : 18, "own" : 1]> '
CLIP = OWN + "f (a, low, high) => (b) { b = Clip(a, low, high) }"
LOW, HIGH = "low = Constant<value_float=-0.5>() ", "high = Constant<value_float=1.0>() "
TEMPLATES = {
    "all inputs": (LOW + HIGH + "y = own.f(x, low, high)", CLIP, X.clip(-0.5, 1)),
    "the last input left out": (LOW + "y = own.f(x, low)", CLIP, X.clip(-0.5)),
    "one in the middle left out": (HIGH + "y = own.f(x, , high)", CLIP, X.clip(None, 1)),
    "all but one left out": ("y = own.f(x)", CLIP, X),
    "left out of a function within": (
        "y = own.outer(x)",
        CLIP + OWN + "outer (a, low) => (b) { one = Constant<value_float=1.0>() b = own.f(a, low, one) }",
        X.clip(None, 1),
    ),
    "left out of a branch within": (
        "y = own.f(x)",
        OWN + "f (a, low) => (b) { yes = Constant<value_int=1>() c = Cast<to=9>(yes)"
        " b = If (c) <then_branch = t () => (float[1,3] p) { p = Clip(a, low) },"
        " else_branch = e () => (float[1,3] q) { q = Neg(a) }> }",
        X,
    ),
    "an attribute handed on": (
        "y = own.outer(x)",
        OWN + "f <alpha> (a) => (b) { b = LeakyRelu<alpha: float = @alpha>(a) }"
        + OWN + "outer <beta: float = 0.5> (a) => (b) { b = own.f<alpha: float = @beta>(a) }",
        np.where(X < 0, X / 2, X),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "functions", "expected"), TEMPLATES.values(), ids=TEMPLATES)
def test_functions_receive_omitted_inputs_and_forwarded_attributes(
    nodes: str, functions: str, expected: np.ndarray
) -> None:
    content = parser.parse_model(f"{HEADER} {{ {nodes} }} {functions}").SerializeToString()
    (y,) = onert.InferenceSession(content).run(None, {"x": X})
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("nodes", "function", "sentence"),
    [
        ("y = own.f(x)", "f (a, b) => (c) { c = Add(a, b) }", "input 1 is absent"),
        ("y = own.f(x, x)", "f (a) => (b) { b = Neg(a) }", "has 2 inputs, expected at most 1"),
        ("y = own.f(x)", "f (a, b) => (b) { c = Neg(a) }", "'b' is read, but the function's caller omits it"),
    ],
)
def test_calls_that_do_not_match_their_function_are_refused(nodes: str, function: str, sentence: str) -> None:
    content = parser.parse_model(f"{HEADER} {{ {nodes} }} {OWN} {function}").SerializeToString()
    with pytest.raises(onert.OnertError, match=sentence):
        onert.load(content)
