"""Fully connected layers of quantised integers with computed weights run natively and match their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.case import Case

from onert.ir import DType, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.target.isa import Isa, runnable

from .harness import whole_range
from .natively import check, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
Scales = tuple[float, int, float | tuple[float, ...], int, float, int]
BYTES: dict[str, tuple[FullyConnected, tuple[int, ...], int, Scales, bool]] = {
    "no zero points": (FullyConnected(), (5, 37), 9, (0.03, 0, 0.02, 0, 0.5, 0), False),
    "zero points and a bias": (FullyConnected(), (5, 37), 9, (0.03, -7, 0.02, 11, 0.4, 3), True),
    "a scale for each output": (FullyConnected(), (4, 8), 3, (0.03, 5, (0.02, 0.5, 1e-4), 0, 0.4, -9), True),
    "a clamp": (FullyConnected(Activation.RELU6), (4, 33), 20, (0.03, 5, 0.02, -1, 0.05, -128), True),
    "ties": (FullyConnected(), (6, 3), 40, (0.5, 1, 0.5, 2, 2.0, 0), False),
    "several axes": (FullyConnected(keep_dims=True), (2, 3, 16), 5, (0.03, 5, 0.02, -1, 0.5, 1), False),
    "rows across axes": (FullyConnected(), (2, 3, 8), 5, (0.03, 5, 0.02, -1, 0.5, 1), False),
    "16-bit results": (FullyConnected(output=DType.INT16), (4, 21), 6, (0.03, 5, 0.02, -1, 0.003, 0), True),
    "long sums": (FullyConnected(), (3, 1500), 4, (0.03, -128, 0.02, 127, 30.0, 4), True),
}
SHORTS: dict[str, tuple[FullyConnected, tuple[int, ...], int, tuple[float, float, float]]] = {
    "rows": (FullyConnected(), (5, 37), 9, (2.0**-12, 2.0**-13, 2.0**-9)),
    "several axes": (FullyConnected(keep_dims=True), (2, 3, 16), 5, (3e-5, 1e-4, 2e-3)),
}


def _quantized(scale: float | tuple[float, ...], zero: int = 0) -> Quantization:
    scales = scale if isinstance(scale, tuple) else (scale,)
    return Quantization(
        tuple(float(np.float32(s)) for s in scales), (zero,) * len(scales), 0 if len(scales) > 1 else None
    )


def _case(op: FullyConnected, operands: tuple[Any, ...], given: tuple[Any, ...], result: Quantization) -> Case:
    return Case("", op, operands, quantization=given, result_quantization=(result,))


@ISAS
@pytest.mark.parametrize("name", BYTES)
def test_computed_weights_of_bytes_keep_the_rounding_of_the_layer(isa: Isa, name: str) -> None:
    op, shape, outputs, (x_scale, x_zero, w_scale, w_zero, scale, zero), biased = BYTES[name]
    x, weight = whole_range(np.int8, shape), whole_range(np.int8, (outputs, shape[-1]), 1)
    given: list[Quantization | None] = [_quantized(x_scale, x_zero), _quantized(w_scale, w_zero)]
    operands = [x, weight]
    if biased:
        operands.append(whole_range(np.int32, (outputs,)))
        factors = np.broadcast_to(np.float32(x_scale) * np.float32(w_scale), outputs).tolist()
        given.append(_quantized(tuple(factors) if isinstance(w_scale, tuple) else factors[0]))
    case = _case(op, tuple(operands), tuple(given), _quantized(scale, zero))
    check(subgraph_of(case), operands, isa)


@ISAS
@pytest.mark.parametrize("name", SHORTS)
def test_computed_16_bit_weights_are_a_product_of_matrices(isa: Isa, name: str) -> None:
    op, shape, outputs, scales = SHORTS[name]
    operands = (whole_range(np.int16, shape), whole_range(np.int16, (outputs, shape[-1]), 1))
    x_scale, w_scale, scale = map(_quantized, scales)
    check(subgraph_of(_case(op, operands, (x_scale, w_scale), scale)), list(operands), isa)


def test_16_bit_layers_that_a_product_of_matrices_would_scale_otherwise_stay_layers() -> None:
    operands = (whole_range(np.int16, (5, 7)), whole_range(np.int16, (3, 7), 1))
    scales = [_quantized(s) for s in (0.0008425769628956914, 0.0008380250073969364, 0.0001379638270009309)]
    assert why_not(subgraph_of(_case(FullyConnected(), operands, (scales[0], scales[1]), scales[2])))
