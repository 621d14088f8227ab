"""Weights and columns in the layout that kernels for small processors read."""

from __future__ import annotations

import numpy as np

from onert.ir import Array
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
from onert_llvm.kernels.contraction.small.depthwise import TOGETHER
from onert_llvm.kernels.contraction.small.product import ACROSS
from onert_llvm.schedule.weight_packing import Multipliers, exact_fields, per_column


def pack(weights: Array, unit: int) -> Array:
    """Signed bytes `[n, k]` as blocks `[steps, 2, unit]`, a last odd column as `[steps, unit]`; padded with zeros."""
    n, depth = weights.shape
    steps = -(-depth // unit)
    padded = np.zeros((n, steps * unit), np.int8)
    padded[:, :depth] = weights
    even = n // ACROSS * ACROSS
    blocks = padded[:even].reshape(-1, ACROSS, steps, unit).transpose(0, 2, 1, 3).reshape(-1)
    return np.concatenate([blocks, padded[even:].reshape(-1)])


def pack_taps(weights: Array, together: bool) -> Array:
    """Signed bytes `[taps, channels]` as groups `[taps, 4]` if `together`, and `[taps]` for each other channel."""
    taps, channels = weights.shape
    grouped = channels // TOGETHER * TOGETHER if together else 0
    groups = weights[:, :grouped].reshape(taps, -1, TOGETHER).transpose(1, 0, 2).reshape(-1)
    return np.ascontiguousarray(np.concatenate([groups, weights[:, grouped:].T.reshape(-1)]))


def fixed_fields(how: Scaling, bias: Array, multipliers: Multipliers, zero_point: int) -> Array:
    """The fields of columns with fixed-point multipliers (`OneByOne`)."""
    mantissas, shifts = per_column(multipliers, len(bias))
    if how is Scaling.WIDE:
        return _interleaved(bias, mantissas, np.maximum(-shifts, 0), np.maximum(shifts, 0))
    right = np.maximum(-shifts, 1)
    return _interleaved(bias, mantissas, (1 << (right - 1)) + (zero_point << right), right)


def real_fields(bias: Array, reals: Array) -> Array:
    """The fields of columns with real multipliers."""
    return _interleaved(bias, *exact_fields(np.broadcast_to(reals, bias.shape).astype(np.float64)))


def _interleaved(*rows: Array) -> Array:
    fields = np.stack([(row.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32) for row in rows], 1)
    return np.ascontiguousarray(fields).reshape(-1).view(np.int32)
