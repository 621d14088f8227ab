"""Products of bytes with float32 results, computed as products of floats for backends without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from onert.ir import CallTypes, DType
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.convert import Cast

from .decomposition import Decomposition
from .draft import Draft

Product = Conv2D | FullyConnected | BatchMatMul


def _why_not(op: Product, types: CallTypes) -> str | None:
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


REAL_SUMS = Decomposition(_why_not, _as_floats)
