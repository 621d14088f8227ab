"""Arithmetic on 16-bit floats is done in float32, and rounded where other operations read the result."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.compiler.legalize.legalize import Support
from onert.compiler.passes.widen import widen
from onert.ir import CallTypes, DType, Operation
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary
from onert.ir.text import parse_subgraph, text

BEFORE = """subgraph "main" {
  %0 "x" : f16[2, 3]
  %1 "" : f16[3] = [1, 2, 3]
  %2 "a" : f16[2, 3]
  %3 "b" : f16[2, 3]
  %4 "c" : f16[3, 2]
  %5 "" : i32[2] = [1, 0]
  inputs (%0)
  outputs (%3, %4)
  %2 = Binary(%0, %1) {kind=BinaryKind.ADD, activation=Activation.NONE} @ "first"
  %3 = Unary(%2) {kind=UnaryKind.EXP} @ "second"
  %4 = Transpose(%2, %5) {} @ "third"
}
"""
AFTER = """subgraph "main" {
  %0 "x" : f16[2, 3]
  %1 "b" : f16[2, 3]
  %2 "c" : f16[3, 2]
  %3 "" : i32[2] = [1, 0]
  %4 "" : f32[2, 3]
  %5 "" : f32[3] = [1.0, 2.0, 3.0]
  %6 "a" : f32[2, 3]
  %7 "b" : f32[2, 3]
  %8 "c" : f32[3, 2]
  inputs (%0)
  outputs (%1, %2)
  %4 = Cast(%0) {to=<f32>} @ "first"
  %6 = Binary(%4, %5) {kind=BinaryKind.ADD, activation=Activation.NONE} @ "first"
  %7 = Unary(%6) {kind=UnaryKind.EXP} @ "second"
  %1 = Cast(%7) {to=<f16>} @ "second"
  %8 = Transpose(%6, %3) {} @ "third"
  %2 = Cast(%8) {to=<f16>} @ "third"
}
"""


def _plain(operation: Operation, types: CallTypes) -> Support:
    """Support of a backend that computes in float32 and moves any type."""
    computes = not operation.op.stored and any(t is not None and t.dtype is DType.FLOAT16 for t in types.inputs)
    return Support.EVALUATED if computes else Support.NATIVE


def test_intermediate_results_are_not_rounded() -> None:
    found = widen(parse_subgraph(BEFORE), _plain)
    assert text(found).split() == text(parse_subgraph(AFTER)).split()


def test_operations_with_native_16_bit_support_are_not_widened() -> None:
    graph = parse_subgraph(BEFORE)
    assert widen(graph, lambda operation, types: Support.NATIVE) is graph


def test_an_operation_with_native_16_bit_support_reads_a_rounded_operand() -> None:
    graph = parse_subgraph(BEFORE)
    found = widen(graph, lambda o, types: Support.NATIVE if not isinstance(o.op, Binary) else _plain(o, types))
    exp = next(o for o in found.operations if isinstance(o.op, Unary))
    assert found.type(exp.used[0]).dtype is found.type(exp.outputs[0]).dtype is DType.FLOAT16
    assert isinstance(found.operations[found.definitions[exp.used[0]]].op, Cast)


SUMS = """<ir_version: 9, opset_import: ["" : 19]> g ({0}[4] x, float[4] f) => ({0}[4] y, {0}[4] z) {{
  one = Constant <value = {0}[1] {{{2}}}> ()
  a = Add (x, one)
  y = Sub (a, one)
  r = Cast <to = {1}> (f)
  z = Sub (r, one)
}}"""


@pytest.mark.parametrize("backends", [("reference",), ()], ids=["reference", "native"])
@pytest.mark.parametrize(("name", "number"), [("float16", 10), ("bfloat16", 16)])
def test_casts_of_the_model_still_round(name: str, number: int, backends: tuple[str, ...]) -> None:
    onnx = pytest.importorskip("onnx")
    dtype = DType.FLOAT16 if number == 10 else DType.BFLOAT16
    options = onert.SessionOptions()
    options.onert = {"backends": backends}
    one = int(np.ones(1, dtype.numpy).view(np.uint16)[0])
    content = onnx.parser.parse_model(SUMS.format(name, number, one)).SerializeToString()
    x = np.float32([1, 3, 5, 7]) * np.float32(2**-13)
    session = onert.InferenceSession(content, options)
    y, z = (each.astype(np.float32) for each in session.run(None, {"x": x.astype(dtype.numpy), "f": x + 1}))
    step = 2.0 ** (-10 if number == 10 else -7)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, np.round(x / step) * step)


def test_a_select_between_narrow_constants_is_widened() -> None:
    before = """subgraph "main" {
  %0 "mask" : bool[4]
  %1 "" : f16[1] = [0]
  %2 "" : f16[1] = [-100]
  %3 "y" : f16[4]
  inputs (%0)
  outputs (%3)
  %3 = Select(%0, %1, %2) {} @ "choice"
}
"""

    def support(operation: Operation, types: CallTypes) -> Support:
        narrow = types.output.dtype is DType.FLOAT16 and not isinstance(operation.op, Cast)
        return Support.EVALUATED if narrow else Support.NATIVE

    found = widen(parse_subgraph(before), support)
    choice, rounding = found.operations
    assert found.type(choice.outputs[0]).dtype is DType.FLOAT32
    assert rounding.op == Cast(DType.FLOAT16)
