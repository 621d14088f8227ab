"""Functions of every int16 value equal LiteRT's interpolated results bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from model_writer import LiteRt, Model

from onert.ir import CallTypes, DType, Quantization, TensorType, evaluate
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

EVERY = np.arange(-32768, 32768).astype(np.int16)
OPTIONS = {"EXP": ("ExpOptions", {}), "GELU": ("GeluOptions", {})}


SCALES = (2**-13, 2**-12, 2**-11, 2**-10, 0.0005, 0.01)
RESULTS = {"TANH": 2**-15, "LOGISTIC": 2**-15, "EXP": 0.0007, "LOG": 0.0007, "GELU": 0.0007}
# Scales with results so close to half a step that the last bit of a float decides.
TIES = [("EXP", 0.0002, 0.0002), ("EXP", 0.0004, 0.001), ("GELU", 0.0003, 0.0003)]


@pytest.mark.parametrize(("code", "scale", "result"), [*((c, s, r) for c, r in RESULTS.items() for s in SCALES), *TIES])
def test_int16_functions_equal_litert_for_every_element(code: str, scale: float, result: float) -> None:
    if code == "EXP" and scale == 0.01:
        pytest.skip("LiteRT's table overflows where the exponential exceeds float32, and yields the lowest value")
    types = [TensorType(DType.INT16, EVERY.shape, Quantization((float(np.float32(s)),), (0,))) for s in (scale, result)]
    model = Model()
    graph = model.graph()
    x = graph.input(DType.INT16, EVERY.shape, types[0].quantization)
    out = graph.tensor(DType.INT16, EVERY.shape, None, types[1].quantization)
    graph.operator(code, [x], [out], OPTIONS.get(code))
    graph.outputs(out)
    (mine,) = evaluate(Unary(UnaryKind[code]), [EVERY], CallTypes((types[0],), (types[1],)))
    np.testing.assert_array_equal(mine, LiteRt(model.done(), "BUILTIN_REF")(EVERY)[0])
