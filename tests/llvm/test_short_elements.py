"""Elementwise functions of 16-bit integers equal the reference bit for bit on every target."""

from __future__ import annotations

import numpy as np
import pytest
from cases.case import Case
from compute_trials import Draw, Tensor, per_tensor

from onert.ir import DType, Op, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Dequantize, Quantize
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind
from onert_llvm.target.isa import Isa, runnable

from .natively import check, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SHAPES = [((5,), (5,)), ((3, 700), (3, 700)), ((2, 3, 37), (37,)), ((2, 3, 37), (2, 1, 1)), ((4, 3, 5), (1,))]
SCALES = [(0.001, 0.001, 0.0021), (0.003, 0.0007, 0.0009), (0.01, 0.00001, 0.0003), (2.0**-12, 2.0**-13, 2.0**-12)]

PAIRS = [BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.SQUARED_DIFFERENCE]


def _case(op: Op, result: Quantization | None, *operands: Tensor) -> Case:
    arrays, quantization, dtypes = zip(*operands, strict=True)
    return Case("", op, arrays, quantization=quantization, result_quantization=(result,), dtypes=dtypes)


def _check(case: Case, isa: Isa) -> None:
    check(subgraph_of(case), [a for a in case.inputs if a is not None], isa, threads=2)


@ISAS
@pytest.mark.parametrize("kind", PAIRS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_binary_functions_of_int16_are_exact(
    isa: Isa, kind: BinaryKind, scales: tuple[float, ...], shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    draw = Draw(f"{kind} {scales} {shapes}")
    out = scales[2] * {BinaryKind.MUL: 20, BinaryKind.SQUARED_DIFFERENCE: 40}.get(kind, 1)
    operands = [draw.stored(np.int16, shape, per_tensor(s)) for shape, s in zip(shapes, scales[:2], strict=True)]
    operands[0][0].reshape(-1)[:2] = (-32768, 32767)
    for activation in (Activation.NONE, Activation.RELU6):
        _check(_case(Binary(kind, activation), per_tensor(out), *operands), isa)


def test_int16_operands_with_a_zero_point_and_quotients_are_not_native() -> None:
    draw = Draw("left")
    x = draw.stored(np.int16, (3, 4), per_tensor(0.1))
    moved = draw.stored(np.int16, (3, 4), per_tensor(0.1, 5))
    assert why_not(subgraph_of(_case(Binary(BinaryKind.ADD), per_tensor(0.1), x, moved)))
    assert why_not(subgraph_of(_case(Binary(BinaryKind.DIV), per_tensor(0.1), x, x)))


UNARIES = [
    (Unary(UnaryKind.RELU), 0.001), (Unary(UnaryKind.RELU6), 0.0002), (Unary(UnaryKind.RELU_N1_TO_1), 0.00005),
    (Unary(UnaryKind.RELU_0_TO_1), 0.001), (Unary(UnaryKind.LOGISTIC), 1 / 32768), (Unary(UnaryKind.TANH), 1 / 32768),
    (Unary(UnaryKind.GELU), 0.0006), (Unary(UnaryKind.RSQRT), 0.001), (Unary(UnaryKind.ABS), 0.001),
    (Unary(UnaryKind.HARD_SWISH), 0.0009), (LeakyRelu(0.3), 0.0009), (Unary(UnaryKind.EXP), 0.01),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize(("op", "scale"), UNARIES, ids=lambda v: v.label if isinstance(v, Op) else str(v))
@pytest.mark.parametrize("shape", [(), (5,), (3, 1001)], ids=str)
def test_unary_functions_of_int16_are_exact(isa: Isa, op: Op, scale: float, shape: tuple[int, ...]) -> None:
    draw = Draw(f"{op} {shape}")
    positive = op.label.endswith("RSQRT")
    x = draw.between(np.int16, 1 if positive else -32768, 32767, shape, per_tensor(0.0006))
    _check(_case(op, per_tensor(scale), x), isa)


@ISAS
@pytest.mark.parametrize("target", [DType.INT8, DType.UINT8, DType.INT16], ids=lambda t: t.text)
@pytest.mark.parametrize("source", [DType.INT8, DType.UINT8, DType.INT16], ids=lambda t: t.text)
@pytest.mark.parametrize("ratio", [0.0003, 0.4, 1.0, 1.7, 300.0])
def test_requantisation_between_8_and_16_bits_is_exact(isa: Isa, source: DType, target: DType, ratio: float) -> None:
    zeros = {DType.INT8: -3, DType.UINT8: 130, DType.INT16: 0}
    x = Draw(f"{source} {target} {ratio}").stored(source.numpy, (3, 301), per_tensor(0.01 * ratio, zeros[source]))
    _check(_case(Quantize(target), per_tensor(0.01, zeros[target]), x), isa)


@ISAS
@pytest.mark.parametrize("shape", [(), (3, 301)], ids=str)
def test_int16_quantisation_and_dequantisation_are_exact(isa: Isa, shape: tuple[int, ...]) -> None:
    draw = Draw(f"floats {shape}")
    x = np.asarray(draw.real(shape)[0] * 9).astype(np.float32)
    x.reshape(-1)[:5] = (np.nan, np.inf, -np.inf, 0.0005, -0.0015)[: x.size]
    _check(_case(Quantize(DType.INT16), per_tensor(0.001, 0), (x, None, None)), isa)
    _check(_case(Quantize(DType.INT16), per_tensor(0.0011, 700), (x, None, None)), isa)
    _check(_case(Dequantize(), None, draw.stored(np.int16, shape, per_tensor(0.0011, 700))), isa)
