"""Products of bytes whose sums become real numbers, for backends that have none: as products of floats."""

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
        return "only bytes that become float32 are multiplied as floats"
    return "a tensor has no elements" if 0 in (*types.input(0).shape, *types.input(1).shape) else None


def _as_floats(d: Draft, op: Any, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Mul(product(Sub(Cast(x), zero), Sub(Cast(y), zero)), scales)

    The sums are exact while they are below 2**24, and otherwise those of floats, as in the model that says
    dequantised bytes are multiplied.
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
