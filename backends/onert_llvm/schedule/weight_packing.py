"""Packed weights of bytes and the requantisation parameters of their sums, in the layouts that kernels read (NumPy)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.dtype import codes_of
from onert.ir.value import Value
from onert_llvm.kernels.arithmetic.interleave_x86 import PAIR, order
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling
from onert_llvm.kernels.contraction.int8_microkernel import offset, step_terms
from onert_llvm.kernels.contraction.register_tile import Columns
from onert_llvm.runtime.aligned_memory import zeros
from onert_llvm.target.isa import Isa

from .float_scaling import FloatMultipliers

Multipliers = tuple[Array, Array]
"""Fixed-point mantissas and shifts, one of each per column or one for all columns."""


def pack_int8(weights: Array, columns: Columns, isa: Isa) -> Array:
    """Panels of the signed bytes `weights[taps, k, n]` (or `[k, n]`).

    A panel is `[taps, ceil(k / group), width, group]`: neighbours along k are adjacent, as the target's dot product
    needs them, padded with zeros. Unsigned weights are packed as `weights - 128`.
    """
    taps, depth, n = weights.shape if weights.ndim == 3 else (1, *weights.shape)
    group = isa.group
    groups = -(-depth // group)
    rows = np.ascontiguousarray(weights.reshape(taps, depth, n).transpose(0, 2, 1))
    if groups * group > depth:
        rows = np.pad(rows, ((0, 0), (0, 0), (0, groups * group - depth)))
    unit = np.dtype(f"u{group}")  # neighbours move together
    w = rows.view(unit).transpose(0, 2, 1)
    width, tail = columns.vectors * isa.f32, columns.tail * isa.f32
    full = n // width if width else 0
    if columns.padded and n > full * width:
        tail = width
    packed = zeros(taps * groups * group * (full * width + tail), np.int8)
    split = full * width * taps * groups
    units = packed.view(unit)
    if full:
        cut = w[:, :, : full * width].reshape(taps, groups, full, width).transpose(2, 0, 1, 3)
        units[:split].reshape(full, taps, groups, width)[:] = cut
    if tail:
        units[split:].reshape(taps, groups, tail)[:, :, : n - full * width] = w[:, :, full * width :]
    return packed


def pack_narrow(weights: Array, columns: Columns, isa: Isa, bits: int) -> Array:
    """The same for `weights[1, k, n]` of `bits` bits each.

    A panel is `[ceil(k / (group * 8 / bits)), width, group]`: a byte holds the weights of `8 / bits` groups, the first
    in the lowest bits.
    """
    together, group = 8 // bits, isa.group
    _, depth, n = weights.shape
    missing = -depth % (group * together)
    bytes_ = pack_int8(np.pad(weights, ((0, 0), (0, missing), (0, 0))), columns, isa).view(np.uint8)
    groups, width = (depth + missing) // group, columns.vectors * isa.f32
    split = (n // width * width if width else 0) * (depth + missing)
    packed = zeros(len(bytes_) // together, np.uint8)
    for first, last, across in ((0, split, width * group), (split, len(bytes_), (len(bytes_) - split) // groups)):
        if first < last:
            rows = bytes_[first:last].reshape(-1, together, across)
            out = packed[first // together : last // together].reshape(-1, across)
            for i in range(together):
                out |= (rows[:, i] & ((1 << bits) - 1)) << (bits * i)
    return packed.view(np.int8)


def pack_int4(weights: Array, columns: Columns, isa: Isa) -> Array:
    """`pack_narrow` for 4-bit weights."""
    return pack_narrow(weights, columns, isa, 4)


def pack_int2(weights: Array, columns: Columns, isa: Isa) -> Array:
    """`pack_narrow` for 2-bit weights."""
    return pack_narrow(weights, columns, isa, 2)


@frozen
class PackLifted(Value):
    """`PACKS` for weights of `bits` bits after adding `lift`, modulo 256."""

    bits: int
    lift: int

    def __call__(self, weights: Array, columns: Columns, isa: Isa) -> Array:
        lifted = (weights.view(np.uint8) + np.uint8(self.lift)).view(np.int8)
        return PACKS[self.bits](lifted, columns, isa)


@frozen
class PackCodes(Value):
    """`PACKS` for codes of `bits` bits, bytes `[n, blocks, bytes]`, after adding `added`, modulo 256."""

    bits: int
    added: int

    def __call__(self, weights: Array, columns: Columns, isa: Isa) -> Array:
        codes = codes_of(weights, self.bits).reshape(len(weights), -1) + np.uint8(self.added % 256)
        return PACKS[self.bits](codes.view(np.int8).T[None], columns, isa)


def pack_words(weights: Array, columns: Columns, isa: Isa) -> Array:
    """Codes, bytes `[n, blocks, bytes]`, as panels of 32-bit words, `[words, width]`."""
    words = np.ascontiguousarray(weights).reshape(len(weights), -1).view("<u4")
    return pack_run_scales(words, columns, isa)


PACKS = {8: pack_int8, 4: pack_int4, 2: pack_int2}
"""The packing function by bits per weight."""


def pack_run_scales(scales: Array, columns: Columns, isa: Isa) -> Array:
    """The `scales[n, runs]`, of any element type, as panels `[runs, width]` that match those of the weights."""
    n, runs = scales.shape
    width, tail = columns.vectors * isa.f32, (columns.vectors if columns.padded else columns.tail) * isa.f32
    split = n // width * width if width else 0
    filled = np.zeros((split + (tail if split < n else 0), runs), scales.dtype)
    filled[:n] = scales
    out = zeros(filled.size, scales.dtype)
    if split:
        out[: split * runs].reshape(-1, runs, width)[:] = filled[:split].reshape(-1, width, runs).transpose(0, 2, 1)
    if split < n:
        out[split * runs :].reshape(runs, tail)[:] = filled[split:].T
    return out


def shortest(scales: Array) -> Array:
    """The float32 scales as float16 if it represents all of them exactly as positive normal numbers; else unchanged."""
    with np.errstate(over="ignore"):
        half = scales.astype(np.float16)
    normal = np.isfinite(half).all() and half.min() >= np.finfo(np.float16).smallest_normal
    return half if normal and np.array_equal(half.astype(np.float32), scales) else scales


def panel_bytes_int8(taps: int, depth: int, columns: Columns, isa: Isa, bits: int = 8) -> int:
    """The bytes from one panel of `[taps, depth]` rows of `bits`-bit weights to the next."""
    steps = -(-depth // step_terms(isa, bits))
    return taps * steps * isa.group * (columns.vectors or columns.tail) * isa.f32


def scaling(bounds: Array, multipliers: Multipliers, zero_point: int) -> Scaling:
    """How fixed-point multipliers can be applied to sums of magnitude at most `bounds[n]`."""
    _, shifts = per_column(multipliers, len(bounds))
    right = np.clip(-shifts, 0, 31)
    reach = bounds.astype(np.int64) + 1 + (1 << np.maximum(right - 1, 0)) + ((abs(zero_point) + 1) << right)
    narrow = shifts.max(initial=-1) < 0 and reach.max(initial=0) < 1 << 31
    return Scaling.NARROW if narrow else Scaling.WIDE


def pack_columns(
    how: Scaling,
    bias: Array,
    multipliers: Multipliers,
    zero_point: int,
    isa: Isa,
    rectified: bool = False,
    places: Array | None = None,
) -> Array:
    """What `requantize` reads per register of columns for fixed-point multipliers.

    `bias[n]` is the accumulators' bias (see `folded_bias`), `rectified` as in `Requantize`; `places` gives the column
    in each lane if they are not in order.
    """
    mantissas, shifts = (_placed(m, places, isa) for m in per_column(multipliers, len(bias)))
    start = _placed(bias, places, isa)
    if how is Scaling.WIDE:
        return _fields((start, mantissas, np.maximum(-shifts, 0), np.maximum(shifts, 0)), isa)
    right = np.maximum(-shifts, 1)
    added = (1 << (right - 1)) - (0 if rectified else 1) + (zero_point << right)
    offsets = (1 << 31) - (mantissas << 32) + (added << 32)
    odd = np.stack([mantissas[1::2] << 1, np.zeros(len(mantissas) // 2, np.int64)], 1).reshape(-1)
    halves = [np.ascontiguousarray(offsets[i::2]).view(np.int32) for i in (0, 1)]
    return _fields((start + (1 << 31), mantissas << 1, odd, *halves, right), isa)


def pack_floats(bias: Array, multipliers: FloatMultipliers, isa: Isa, places: Array | None = None) -> Array:
    """The same for float multipliers."""
    of = multipliers
    words = (row.view(np.int32) for row in (of.factor, of.rest, of.added, of.below))
    rows = (bias + of.steps, *words, of.steps)
    return _fields([_placed(row, places, isa) for row in rows], isa)


def pack_real_terms(bias: Array, first: Array, second: Array, isa: Isa, places: Array | None = None) -> Array:
    """The same for `QUOTIENT` and `PRODUCT`: two rows of float32."""
    rows = (bias, *(np.ascontiguousarray(row, np.float32).view(np.int32) for row in (first, second)))
    return _fields([_placed(row, places, isa) for row in rows], isa)


def real_scaling(isa: Isa) -> Scaling:
    """How real multipliers are applied on a target."""
    return Scaling.REAL if isa.doubles else Scaling.EXACT


def pack_reals(bias: Array, reals: Array, isa: Isa, places: Array | None = None) -> Array:
    """The same for real multipliers: float64, one per column or one."""
    wide = _placed(np.broadcast_to(reals, (len(bias),)).astype(np.float64), places, isa)
    if not isa.doubles:
        return _fields((_placed(bias, places, isa), *exact_fields(wide)), isa)
    halves = wide.view(np.int32).reshape(-1, 2, isa.f32)
    return _fields((_placed(bias, places, isa), halves[:, 0].reshape(-1), halves[:, 1].reshape(-1)), isa)


def exact_fields(reals: Array) -> tuple[Array, ...]:
    """Multipliers as `Scaling.EXACT` stores them. Clipping is harmless: beyond 2**19 every sum but 0 leaves the range
    of a byte, below 2**-43 every sum becomes zero."""
    fraction, exponent = np.frexp(np.clip(reals, 0.0, 2.0**19))
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    return mantissa & 0xFFFFFFFF, mantissa >> 32, np.clip(21 - exponent, 1, 63)


def per_column(multipliers: Multipliers, n: int) -> tuple[Array, Array]:
    """Mantissas and shifts of n columns; the shift of a zero multiplier is irrelevant."""
    mantissas, shifts = (np.broadcast_to(np.asarray(m, np.int64), (n,)) for m in multipliers)
    return mantissas, np.where(mantissas == 0, -1, shifts)


def _placed(values: Array, places: Array | None, isa: Isa) -> Array:
    """Each value in its lane, zeros in lanes without a column."""
    found = np.arange(isa.whole(len(values))) if places is None else places
    wide = np.float64 if values.dtype.kind == "f" else np.int64
    return np.where(found < len(values), values.astype(wide)[np.minimum(found, len(values) - 1)], wide(0))


def _fields(rows: Sequence[Array], isa: Isa) -> Array:
    """Rows of 32-bit values per column, interleaved register by register."""
    fields = np.stack([(row.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32) for row in rows])
    out = np.ascontiguousarray(fields.reshape(len(rows), -1, isa.f32).transpose(1, 0, 2)).reshape(-1)
    return out.view(np.int32)


def folded_bias(weights: Array, bias: Array | None, input_zero: int, weight_zero: int, isa: Isa, signed: bool) -> Array:
    """The bias that corrects the kernels' sums for the true zero points, in int32 (wrapping as the sums do).

    `weights[taps, k, n]` or `[k, n]` are signed bytes as packed, `weight_zero` their zero point in that domain and
    `input_zero` the stored zero point of the activations. The kernel only has to subtract `weight_zero` times the sum
    of the activations in the domain of the dot product.
    """
    w = weights.reshape(-1, weights.shape[-1])
    moved = input_zero + offset(isa, signed)
    total = moved * (w.shape[0] * weight_zero - w.sum(0, dtype=np.int64))
    wrapped = total + (0 if bias is None else bias.astype(np.int64))
    out: Array = (wrapped & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return out


def sum_bounds(weights: Array, bias: Array | None, input_zero: int, weight_zero: int, signed: bool) -> Array:
    """The largest possible magnitude of each column's sum, bias included; arguments as in `folded_bias`."""
    w = weights.reshape(-1, weights.shape[-1])
    centred = np.subtract(w, weight_zero, dtype=np.int16) if weight_zero else w
    w = np.abs(centred, dtype=np.int16).sum(0, dtype=np.int64)
    low, high = (-128, 127) if signed else (0, 255)
    out: Array = w * max(input_zero - low, high - input_zero)
    return out if bias is None else out + np.abs(bias.astype(np.int64))


def channel_order(channels: int, wide: int, isa: Isa) -> Array:
    """The channel in each lane of the registers of channels, interleaved while `wide` registers remain.

    The last register overlaps the previous one. If there is only one, lanes beyond `channels` are unused.
    """
    lanes = isa.f32
    places = np.arange(isa.whole(channels), dtype=np.int64)
    places[-lanes:] -= min(places[-lanes], -channels % lanes)
    if wide:
        interleave = channels // (lanes * wide) * lanes * wide
        places[:interleave] = places[:interleave].reshape(-1, lanes * wide)[:, order(isa, wide)].reshape(-1)
    return places


def pack_depthwise(weights: Array, places: Array, isa: Isa, group: int, wide: int = 0) -> Array:
    """Signed bytes `weights[height, width, channels]` as `[register, ceil(height / group), width, lane, group]`.

    `places` gives the channel in each lane (`channel_order`); rows are padded with zeros to whole groups. If registers
    are computed in pairs (`wide`), the numbers are widened to 16 bits.
    """
    height, width, channels = weights.shape
    steps = -(-height // group)
    packed = np.zeros((steps * group, width, len(places)), np.int16 if wide == PAIR else np.int8)
    inside = np.flatnonzero(places < channels)
    packed[:height, :, inside] = weights[:, :, places[inside]]
    registers = packed.reshape(steps, group, width, -1, isa.f32)
    return np.ascontiguousarray(registers.transpose(3, 0, 2, 4, 1)).reshape(-1)
