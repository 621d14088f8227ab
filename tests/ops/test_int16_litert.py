"""Functions of every int16 value equal LiteRT's interpolated results bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from model_writer import LiteRt, Model

from onert.ir import CallTypes, DType, Quantization, TensorType, evaluate
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

EVERY = np.arange(-32768, 32768).astype(np.int16)
OPTIONS = {"EXP": ("ExpOptions", {}), "GELU": ("GeluOptions", {})}


@pytest.mark.parametrize("scale", [2**-13, 2**-12, 2**-11, 2**-10, 0.0005, 0.01])
@pytest.mark.parametrize("code", ["TANH", "LOGISTIC", "EXP", "LOG", "GELU"])
def test_int16_functions_equal_litert_for_every_element(code: str, scale: float) -> None:
    if code == "EXP" and scale == 0.01:
        pytest.skip("LiteRT's table overflows where the exponential exceeds float32, and yields the lowest value")
    result = 2**-15 if code in ("TANH", "LOGISTIC") else 0.0007
    types = [TensorType(DType.INT16, EVERY.shape, Quantization((float(np.float32(s)),), (0,))) for s in (scale, result)]
    model = Model()
    graph = model.graph()
    x = graph.input(DType.INT16, EVERY.shape, types[0].quantization)
    out = graph.tensor(DType.INT16, EVERY.shape, None, types[1].quantization)
    graph.operator(code, [x], [out], OPTIONS.get(code))
    graph.outputs(out)
    (mine,) = evaluate(Unary(UnaryKind[code]), [EVERY], CallTypes((types[0],), (types[1],)))
    np.testing.assert_array_equal(mine, LiteRt(model.done(), "BUILTIN_REF")(EVERY)[0])
