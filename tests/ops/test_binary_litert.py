"""Quantised binary functions equal LiteRT's reference kernels bit for bit, at random scales."""

from __future__ import annotations

import zlib
from typing import Any

import litert_peer as litert
import numpy as np
import pytest

from onert.ir import Array, CallTypes, DType, Op, Quantization, TensorType, evaluate, infer
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import Binary, BinaryKind, PRelu
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.unary import LeakyRelu

BYTES = (DType.INT8, DType.UINT8)
CLAMPS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
Row = tuple[str, Op, DType, litert.Options | None]


def _binary(kind: BinaryKind, dtype: DType, clamp: Activation = Activation.NONE) -> Row:
    table = "".join(part.title() for part in kind.name.split("_")) + "Options"
    fields: dict[str, Any] = {"fusedActivationFunction": CLAMPS[clamp.name]} if len(kind.name) == 3 else {}
    if kind in (BinaryKind.ADD, BinaryKind.SUB) and dtype is DType.INT16:
        fields["potScaleInt16"] = False
    return kind.name, Binary(kind, clamp), dtype, (table, fields)


def _rows() -> list[Row]:
    found = [_binary(kind, dtype) for kind in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL) for dtype in BYTES]
    found += [_binary(kind, DType.INT16) for kind in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)]
    found += [_binary(BinaryKind.ADD, dtype, clamp) for dtype in BYTES for clamp in (Activation.RELU, Activation.RELU6)]
    found.append(_binary(BinaryKind.SQUARED_DIFFERENCE, DType.INT8))
    # LiteRT concatenates int8 tensors only if all have the same scale.
    found.append(("CONCATENATION", Concat(1), DType.UINT8, ("ConcatenationOptions", {"axis": 1})))
    for dtype in BYTES:
        found.append(("PRELU", PRelu(), dtype, None))
        found += [
            (kind.name, Comparison(kind), dtype, (f"{kind.name.title().replace('_', '')}Options", {}))
            for kind in (ComparisonKind.LESS, ComparisonKind.GREATER_EQUAL)
        ]
    return found


ROWS = _rows()


def _quantization(rng: np.random.Generator, dtype: DType) -> Quantization:
    low, high = dtype.limits
    zero = 0 if dtype is DType.INT16 else int(rng.integers(low, high, endpoint=True))
    return Quantization((float(np.float32(2.0 ** rng.uniform(-9, -3))),), (zero,))


def _elements(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    low, high = dtype.limits
    out = rng.integers(low, high, shape, dtype.numpy, endpoint=True)
    out.reshape(-1)[:3] = low, high, 0
    return out


def _unsaturated(rng: np.random.Generator, op: Op, arrays: list[Array], inputs: tuple[TensorType, ...]) -> CallTypes:
    """Types with a random result scale that does not saturate all results, as saturated ones agree trivially."""
    (result,) = infer(op, inputs) or ()
    for _ in range(20):
        quantization = None if result.dtype is DType.BOOL else _quantization(rng, result.dtype)
        types = CallTypes(inputs, (TensorType(result.dtype, result.shape, quantization),))
        (mine,) = evaluate(op, arrays, types)
        if len(np.unique(mine)) > 1:
            return types
    raise AssertionError("every scale that was drawn saturates the result")


def _agree(code: str, op: Op, options: litert.Options | None, arrays: list[Array], types: CallTypes) -> None:
    fixed = {1: arrays[1]} if code == "PRELU" else {}
    (theirs,) = litert.run(litert.one_operator(code, options, types, fixed), arrays[: len(arrays) - len(fixed)])
    (mine,) = evaluate(op, arrays, types)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("draw", range(6))
@pytest.mark.parametrize(
    ("code", "op", "dtype", "options"),
    ROWS,
    ids=[f"{r[0]} {r[2].text} {r[1].label} {getattr(r[1], 'activation', Activation.NONE).name}" for r in ROWS],
)
def test_binary_results_equal_litert(
    code: str, op: Op, dtype: DType, options: litert.Options | None, draw: int
) -> None:
    rng = np.random.default_rng((zlib.crc32(f"{code} {options} {dtype.text}".encode()), draw))
    arrays = [_elements(rng, dtype, shape) for shape in ((5, 64), (5, 64) if draw % 2 or code != "PRELU" else (64,))]
    inputs = tuple(TensorType(dtype, a.shape, _quantization(rng, dtype)) for a in arrays)
    _agree(code, op, options, arrays, _unsaturated(rng, op, arrays, inputs))


@pytest.mark.parametrize("draw", range(6))
@pytest.mark.parametrize("dtype", [*BYTES, DType.INT16], ids=lambda d: d.text)
@pytest.mark.parametrize("alpha", [0.2, 1.7])
def test_leaky_relu_equals_litert(dtype: DType, alpha: float, draw: int) -> None:
    rng = np.random.default_rng((draw, round(alpha * 10)))
    x, op = _elements(rng, dtype, (5, 64)), LeakyRelu(alpha)
    types = _unsaturated(rng, op, [x], (TensorType(dtype, x.shape, _quantization(rng, dtype)),))
    _agree("LEAKY_RELU", op, ("LeakyReluOptions", {"alpha": alpha}), [x], types)


@pytest.mark.parametrize("scales", [(0.0064, 0.00277, 0.00672), (0.00082, 0.00055, 0.0011), (0.0098, 0.0009, 0.03)])
@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB], ids=lambda kind: kind.name)
def test_int16_sums_equal_litert_near_ties(kind: BinaryKind, scales: tuple[float, ...]) -> None:
    """Among a hundred thousand sums a few are so close to a half that the extra fraction bits decide."""
    rng = np.random.default_rng(0)
    code, op, dtype, options = _binary(kind, DType.INT16)
    arrays = [rng.integers(-32768, 32768, 400_000).astype(np.int16) for _ in range(2)]
    x, y, result = (TensorType(dtype, arrays[0].shape, Quantization((float(np.float32(s)),), (0,))) for s in scales)
    _agree(code, op, options, arrays, CallTypes((x, y), (result,)))
