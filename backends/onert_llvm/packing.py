"""Packed weights: the layouts that kernels read, made from the layouts of models with NumPy."""

from __future__ import annotations

import numpy as np

from onert.ir import Array

from .kernels.dot import GROUP, offset
from .kernels.requantize import FIELDS
from .kernels.tile import Columns
from .target import Isa


def pack_f32(weights: Array, columns: Columns, isa: Isa) -> tuple[Array, int]:
    """Panels of `weights[taps, k, n]` (or `[k, n]`) in float32, and the bytes from one to the next.

    A panel is `[taps, k, width]`, its columns filled up with zeros to whole registers. The tail is packed to its own
    width.
    """
    taps, depth, n = weights.shape if weights.ndim == 3 else (1, *weights.shape)
    w = np.asarray(weights, np.float32).reshape(taps * depth, n)
    width, tail = columns.vectors * isa.f32, columns.tail * isa.f32
    full = n // width if width else 0
    packed = np.zeros(taps * depth * (full * width + tail), np.float32)
    split = full * width * taps * depth
    if full:
        packed[:split].reshape(full, -1, width)[:] = w[:, : full * width].reshape(-1, full, width).transpose(1, 0, 2)
    if tail:
        packed[split:].reshape(-1, tail)[:, : n - full * width] = w[:, full * width :]
    return packed, taps * depth * (width or tail) * 4


def panels(n: int, columns: Columns, isa: Isa) -> int:
    """How many panels `n` columns make."""
    width = columns.widest * isa.f32
    return -(-n // width)


def pack_int8(weights: Array, columns: Columns, isa: Isa) -> tuple[Array, int]:
    """Panels of the signed bytes `weights[taps, k, n]` (or `[k, n]`), and the bytes from one to the next.

    A panel is `[taps, ceil(k / group), width, group]`: neighbours along k lie together as the target's dot product
    wants them, filled up with zeros. Unsigned weights are packed as `weights - 128`.
    """
    taps, depth, n = weights.shape if weights.ndim == 3 else (1, *weights.shape)
    group = GROUP[isa.dot]
    groups = -(-depth // group)
    padded = np.zeros((taps, groups * group, n), np.int8)
    padded[:, :depth] = weights.reshape(taps, depth, n)
    w = padded.reshape(taps * groups, group, n).transpose(0, 2, 1)
    width, tail = columns.vectors * isa.f32, columns.tail * isa.f32
    full = n // width if width else 0
    rows = taps * groups * group
    packed = np.zeros(rows * (full * width + tail), np.int8)
    split = full * width * rows
    if full:
        cut = w[:, : full * width].reshape(-1, full, width, group).transpose(1, 0, 2, 3)
        packed[:split].reshape(full, -1, width, group)[:] = cut
    if tail:
        packed[split:].reshape(-1, tail, group)[:, : n - full * width] = w[:, full * width :]
    return packed, rows * (width or tail)


def pack_columns(bias: Array, multipliers: Array, shifts: Array, isa: Isa) -> Array:
    """What `requantize` reads for each register of columns: bias, mantissa, right and left shift, a register of each.

    `bias[n]` is that of the accumulators (see `folded_bias`); `multipliers` and `shifts` have n elements or one.
    """
    n, lanes = len(bias), isa.f32
    fields = np.zeros((len(FIELDS), -(-n // lanes) * lanes), np.int32)
    shifts = np.broadcast_to(np.asarray(shifts, np.int64), (n,))
    columns = (bias, np.broadcast_to(multipliers, (n,)), np.maximum(-shifts, 0), np.maximum(shifts, 0))
    for row, values in zip(fields, columns, strict=True):
        row[:n] = values
    return np.ascontiguousarray(fields.reshape(len(FIELDS), -1, lanes).transpose(1, 0, 2)).reshape(-1)


def folded_bias(
    weights: Array,
    bias: Array | None,
    input_zero: int,
    weight_zero: int,
    isa: Isa,
    signed: bool,
    shifted_sums: bool = False,
) -> Array:
    """The bias that makes the kernels' sums those of the true zero points, in int32 (wrapping as the sums do).

    `weights[taps, k, n]` or `[k, n]` are signed bytes as packed, `weight_zero` their zero point in that domain and
    `input_zero` the stored one of the activations. What is left for the kernel is to subtract `weight_zero` times the
    sum of the activations: as stored, or (`shifted_sums`) in the domain of the dot product.
    """
    w = weights.reshape(-1, weights.shape[-1]).astype(np.int64)
    moved = input_zero + offset(isa, signed)
    total = -moved * w.sum(0) + w.shape[0] * (moved if shifted_sums else input_zero) * weight_zero
    wrapped = total + (0 if bias is None else bias.astype(np.int64))
    out: Array = (wrapped & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return out


def pack_depthwise_int8(weights: Array, isa: Isa) -> Array:
    """Signed bytes `weights[height, width, channels]` as `[ceil(height / group), width, channels, group]`.

    Channels are filled up with zeros to whole registers, rows to whole groups.
    """
    height, width, channels = weights.shape
    group, lanes = GROUP[isa.dot], isa.f32
    steps = -(-height // group)
    packed = np.zeros((steps * group, width, -(-channels // lanes) * lanes), np.int8)
    packed[:height, :, :channels] = weights
    return np.ascontiguousarray(packed.reshape(steps, group, width, -1).transpose(0, 2, 3, 1)).reshape(-1)
