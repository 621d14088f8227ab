"""Unary functions of every byte equal LiteRT's reference kernels bit for bit, at scales of every magnitude."""

from __future__ import annotations

import numpy as np
import pytest
from model_writer import LiteRt, Model

from onert.ir import Array, CallTypes, DType, Quantization, TensorType, evaluate
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

OPTIONS = {"EXP": ("ExpOptions", {}), "GELU": ("GeluOptions", {}), "ABS": ("AbsOptions", {})}
BOTH = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH", "TANH", "LOGISTIC")
SIGNED = (*BOTH, "GELU", "ABS", "RSQRT", "EXP", "LOG")
SCALES = [tuple(map(float, pair)) for pair in np.exp(np.random.default_rng(7).uniform(-8, 0, (12, 2))).astype("f4")]
FIXED = {"TANH": 1 / 128, "LOGISTIC": 1 / 256}
"""Result scales that the kernels prescribe."""


def _case(code: str, dtype: DType, scales: tuple[float, float]) -> tuple[Array, CallTypes]:
    low, high = dtype.limits
    entry = low if code in ("RSQRT", "LOG") else (low + high) // 2 + 4
    zero = {"TANH": (low + high + 1) // 2, "LOGISTIC": low}.get(code, entry)
    first = low + 1 if code in ("RSQRT", "LOG") else low  # LiteRT rejects non-positive inputs
    x = np.arange(first, high + 1).astype(dtype.numpy)
    result = Quantization((FIXED.get(code, scales[1]),), (zero,))
    entries = TensorType(dtype, x.shape, Quantization((scales[0],), (entry,)))
    return x, CallTypes((entries,), (TensorType(dtype, x.shape, result),))


@pytest.mark.parametrize("scales", SCALES, ids=lambda pair: f"{pair[0]:.4f}-{pair[1]:.4f}")
@pytest.mark.parametrize(("code", "dtype"), [*((c, DType.INT8) for c in SIGNED), *((c, DType.UINT8) for c in BOTH)])
def test_unary_functions_of_every_byte_equal_litert(code: str, dtype: DType, scales: tuple[float, float]) -> None:
    if code == "HARD_SWISH" and scales[0] / scales[1] < 2**-8:
        pytest.skip("LiteRT shifts its 16-bit products by more bits than they have")
    x, types = _case(code, dtype, scales)
    model = Model()
    graph = model.graph()
    entry = graph.input(dtype, x.shape, types.input(0).quantization)
    out = graph.tensor(dtype, x.shape, None, types.output.quantization)
    graph.operator(code, [entry], [out], OPTIONS.get(code))
    graph.outputs(out)
    expected = LiteRt(model.done(), "BUILTIN_REF")(x)[0]
    (found,) = evaluate(Unary(UnaryKind[code]), [x], types)
    np.testing.assert_array_equal(found, expected)
