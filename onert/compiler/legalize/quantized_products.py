"""Products of quantised integers: of bytes with float32 results in floats, for backends without them, and fully
connected layers with computed weights as products of two matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from onert.ir import CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.fixed_point import narrowed
from onert.ir.ops.arithmetic.rescale import (
    filter_multipliers,
    filter_ratios,
    first_zero_point,
    product_multiplier,
)
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.convert import Bitcast, Cast
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.shape import static

from .decomposition import Decomposition
from .draft import Draft, layer_operands

_Product = Conv2D | FullyConnected | BatchMatMul


def _why_not_real(op: _Product, types: CallTypes) -> str | None:
    if types.input(0).dtype.is_float or types.output.dtype is not DType.FLOAT32:
        return "only products of bytes with float32 results are computed in floats"
    return "a tensor has no elements" if 0 in (*types.input(0).shape, *types.input(1).shape) else None


def _as_floats(d: Draft, op: Any, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Mul(product(Sub(Cast(x), zero), Sub(Cast(y), zero)), scales)

    Sums below 2**24 are exact, others are rounded as in the original model, which multiplies dequantised bytes.
    """
    x, y = types.input(0), types.input(1)
    assert y.quantization is not None
    zeros = x.zero_point, y.quantization.zero_points[0]
    centred = []
    for operand, zero in zip(operands, zeros, strict=True):
        real = d.add(Cast(DType.FLOAT32), operand)
        centred.append(d.difference(real, d.real(zero)) if zero else real)
    sums = d.add(evolve(op, output=None), *centred)
    factors = np.float32(x.scale) * np.asarray(y.quantization.scales, np.float32)
    return [d.product(sums, d.constant(factors))]


REAL_SUMS = Decomposition(_why_not_real, _as_floats)


# ---- fully connected layers with computed weights

_MOST_TERMS = 1 << 15
"""Sums of as many products of bytes less their zero points fit in 32 bits."""


def _per_tensor(*types: TensorType) -> bool:
    return all(t.quantization is not None and t.quantization.per_tensor for t in types)


def _why_no_bytes(op: FullyConnected, types: CallTypes) -> str | None:
    x, weight, out = types.input(0), types.input(1), types.output
    if not x.dtype is weight.dtype is DType.INT8 or out.dtype not in (DType.INT8, DType.INT16):
        return "only products of signed bytes are computed from their stored integers"
    if any(t is not None and 0 in t.shape for t in types.inputs):
        return "a tensor has no elements"
    if (weight.shape[1] or 0) > _MOST_TERMS:
        return f"its sums have {weight.shape[1]} terms, expected at most {_MOST_TERMS}"
    if weight.quantization is None or weight.quantization.block_size is not None or not _per_tensor(x, out):
        return "its filter is quantised in blocks, or another tensor has several scales"
    return "its activation is not a clamp" if op.activation.value.function is not None else None


def _bytes(d: Draft, op: FullyConnected, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """BatchMatMul of stored integers, less the zero points times sums of rows and columns; rounded in float64"""
    x, weight, bias = layer_operands(operands)
    outputs, features = d.shape(weight)
    zeros = types.input(0).zero_point, first_zero_point(types.input(1))
    rows = d.reshaped(d.add(Bitcast(DType.INT8), x), math.prod(d.shape(x)) // features, features)
    columns = d.transposed(d.add(Bitcast(DType.INT8), weight), (1, 0))
    sums = d.add(BatchMatMul(output=DType.INT32), rows, columns)
    for side, axis, zero in ((rows, 1, zeros[1]), (columns, 0, zeros[0])):
        if zero:
            total = d.reduced(Reduction.SUM, d.cast(side, DType.INT32), (axis,), keep_dims=True)
            sums = d.difference(sums, d.product(total, d.number(zero)))
    if zeros[0] and zeros[1]:
        sums = d.sum(sums, d.number(features * zeros[0] * zeros[1]))
    if bias is not None:
        sums = d.sum(sums, d.reshaped(d.add(Bitcast(DType.INT32), bias), outputs))
    ratios = filter_ratios(types.input(0), types.input(1), types.output)
    whole = _rounded(d, d.product(d.cast(sums, DType.FLOAT64), d.constant(ratios)))
    whole = d.sum(whole, d.like(whole, types.output.zero_point))
    found = d.add(Cast(types.output.dtype), d.clamped(whole, *op.activation.bounds(types.output)))
    scaled = d.add(Bitcast(types.output.dtype), found, quantization=(types.output.quantization,))
    return [d.reshaped(scaled, *static(types.output.shape))]


def _rounded(d: Draft, x: int) -> int:
    """The nearest integers, halves away from zero."""
    whole = d.unary(UnaryKind.TRUNC, x)
    beyond = d.compared(ComparisonKind.GREATER_EQUAL, d.unary(UnaryKind.ABS, d.difference(x, whole)), d.like(x, 0.5))
    return d.sum(whole, d.chosen(beyond, d.unary(UnaryKind.SIGN, x), d.like(x, 0)))


def _why_no_shorts(op: FullyConnected, types: CallTypes) -> str | None:
    x, weight, out = types.input(0), types.input(1), types.output
    if not x.dtype is weight.dtype is out.dtype is DType.INT16:
        return "only products of 16-bit integers are scaled alike"
    if 0 in (*x.shape, *weight.shape):
        return "a tensor has no elements"
    if len(types.inputs) > 2 and types.inputs[2] is not None:
        return "it has a bias"
    if op.activation is not Activation.NONE:
        return "it has an activation"
    if not _per_tensor(x, weight, out) or any(t.zero_point for t in (x, weight, out)):
        return "a tensor has several scales, or a zero point"
    (layer, shift), (product, other) = (found(x, weight, out) for found in (filter_multipliers, product_multiplier))
    same = np.array_equal(narrowed(layer), narrowed(product)) and np.array_equal(shift, other)
    return None if same else "a product of matrices rounds its scales otherwise"


def _shorts(d: Draft, op: FullyConnected, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """BatchMatMul(Reshape(x), weight), whose second operand is transposed"""
    x, weight, _ = layer_operands(operands)
    features = d.shape(weight)[1]
    rows = d.reshaped(x, math.prod(d.shape(x)) // features, features)
    found = d.add(BatchMatMul(adjoint_y=True), rows, weight, quantization=(types.output.quantization,))
    return [d.reshaped(found, *static(types.output.shape))]


COMPUTED_WEIGHTS = (Decomposition(_why_no_bytes, _bytes), Decomposition(_why_no_shorts, _shorts))
