"""Signal transforms as products with constant matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from onert.compiler.legalize.decomposition import Decomposition
from onert.compiler.legalize.draft import Draft
from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.convert import Bitcast
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.scan import RFFT, RFFT2D
from onert.ir.ops.vision_audio.audio import AudioSpectrogram, Mfcc
from onert.ir.ops.vision_audio.fourier import Fourier
from onert.ir.shape import normalize_axis, static
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.trace import is_symbolic

_MOST_FACTORS = 1 << 20
"""The most elements of a transform's matrix."""


def _times(d: Draft, rows: int, matrix: Array) -> int:
    """Rows times a matrix, in the type of the rows."""
    return d.add(BatchMatMul(), rows, d.constant(matrix.astype(d.dtype(rows).numpy)))


# ---- Fourier transforms


@of_lengths
def _matrix(op: Fourier, parts: int, dtype: DType, count: int, length: int) -> Array:
    """The transform's matrix [count * parts, bins * numbers per bin]: the transform of each unit vector."""
    units = np.eye(count * parts).reshape(count * parts, count, parts)
    found = op.evaluate(units, np.array(1), np.array(length))
    return found.reshape(count * parts, -1).astype(dtype.numpy)


def _lengths(types: CallTypes) -> tuple[int, int, int | None] | None:
    """The axis, its number of elements, and the requested length (None if not given); None if they are unknown."""
    x, axis, length = (*types.inputs, None)[:3]
    assert x is not None
    assert axis is not None
    if axis.value is None or (length is not None and length.value is None):
        return None
    at = normalize_axis(int(axis.value.reshape(-1)[0]), x.rank)
    size = static(x.shape)[at]
    requested = None if length is None or length.value is None else length.value.reshape(-1).tolist()[0]
    return at, size, requested


def _transform_length(op: Fourier, size: int, requested: int | None) -> int:
    """The length of the transform."""
    return requested if requested is not None else 2 * (size - 1) if op.inverse and op.half else size


def _why_no_matrix(op: Fourier, types: CallTypes) -> str | None:
    found = _lengths(types)
    if found is None:
        return "its axis or its length is not known before the run"
    x, out = types.input(0), types.output
    if x.dtype not in (DType.FLOAT32, DType.FLOAT64) or 0 in x.shape or _transform_length(op, *found[1:]) < 1:
        return f"{x} is not float32 or float64, or has no elements to transform"
    at, size, _ = found
    factors = size * static(x.shape)[-1] * static(out.shape)[at] * static(out.shape)[-1]
    return None if factors <= _MOST_FACTORS else f"its matrix would have {factors} elements"


_Transform = Callable[[Draft, Fourier, int, int, int | None, tuple[int, int]], int]
"""Appends the transform of an operand along its last axis but one, of this size, to the requested length. The result
has the given number of frequencies, and of numbers for each."""


def _along_axis(
    transform: _Transform, d: Draft, op: Fourier, types: CallTypes, operands: Sequence[int | None]
) -> Sequence[int]:
    """The transform along the operation's axis, which is moved next to the last one and back."""
    found, x, shape = _lengths(types), operands[0], static(types.output.shape)
    assert found is not None
    assert x is not None
    at, size, requested = found
    axes = range(len(shape))
    order = [*(axis for axis in axes[:-1] if axis != at), at, axes[-1]]
    moved = d.transposed(x, order)
    bins = shape[at], shape[-1]
    spectrum = d.reshaped(transform(d, op, moved, size, requested, bins), *d.shape(moved)[:-2], *bins)
    return [d.transposed(spectrum, [order.index(axis) for axis in axes])]


def _as_matrix(d: Draft, op: Fourier, x: int, size: int, requested: int | None, bins: tuple[int, int]) -> int:
    """Mul(x, matrix)"""
    *outer, _, parts = d.shape(x)
    rows, dtype = d.reshaped(x, math.prod(outer), size * parts), d.dtype(x)
    type_, length = TensorType(dtype, (size * parts, math.prod(bins))), _transform_length(op, size, requested)
    matrix = d.per_length(type_, partial(_matrix, op, parts, dtype), size, length)
    return d.add(BatchMatMul(), rows, matrix)


def _parts(length: int) -> tuple[int, int]:
    """The two factors of a length that are nearest to each other, the smaller one first."""
    small = next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)
    return small, length // small


def _why_no_steps(op: Fourier, types: CallTypes) -> str | None:
    found = _lengths(types)
    if found is None:
        return "its axis or its length is not known before the run"
    x, length = types.input(0), _transform_length(op, *found[1:])
    if is_symbolic(length):
        return "its length varies"
    if op.half or x.dtype not in (DType.FLOAT32, DType.FLOAT64) or 0 in x.shape or length < 1:
        return f"it is one-sided, or {x} is not float32 or float64, or has no elements to transform"
    small, large = _parts(length)
    factors = max(2 * length * small * static(x.shape)[-1], 4 * large * large)
    if small == 1 or factors > _MOST_FACTORS:
        return f"its length {length} has no two factors whose matrices have at most {_MOST_FACTORS} elements"
    return None


def _in_steps(d: Draft, op: Fourier, x: int, size: int, requested: int | None, bins: tuple[int, int]) -> int:
    """Mul(Transpose(Mul(Transpose(x), matrices)), matrix): J. W. Cooley and J. W. Tukey's algorithm with two factors

    Element `i * large + j` of the input and `k + small * l` of the result meet in the product of three factors: the
    first two depend on i, j and k, and the last on j and l.
    """
    *outer, _, parts = d.shape(x)
    length, count = _transform_length(op, size, requested), math.prod(outer)
    small, large = _parts(length)
    x = d.part(d.reshaped(x, count, size, parts), (0, 0, 0), (count, min(size, length), parts))
    if size < length:
        x = d.add(Concat(1), x, d.broadcast(d.like(x, 0), (count, length - size, parts)))
    turn = (2j if op.inverse else -2j) * np.pi
    i, j, k = np.ogrid[:small, :large, :small]
    first = np.exp(turn * (i * k / small + j * k / length)).transpose(1, 0, 2)
    last = np.exp(turn * np.outer(np.arange(large), np.arange(large)) / large) / (length if op.inverse else 1)
    by_step = d.transposed(d.reshaped(x, count, small, large, parts), (2, 0, 1, 3))
    found = _times(d, d.reshaped(by_step, large, count, small * parts), _of_pairs(first, parts))
    by_result = d.transposed(d.reshaped(found, large, count, small, 2), (1, 2, 0, 3))
    found = _times(d, d.reshaped(by_result, count * small, large * 2), _of_pairs(last, 2))
    return d.transposed(d.reshaped(found, count, small, large, 2), (0, 2, 1, 3))


def _of_pairs(factors: Array, parts: int) -> Array:
    """Complex factors [..., rows, columns] as real ones, for 1 or 2 `parts` of an element and 2 of a result."""
    rows = np.stack([factors, 1j * factors][:parts], axis=-2)
    both = np.stack([rows.real, rows.imag], axis=-1)
    return both.reshape(*factors.shape[:-2], factors.shape[-2] * parts, factors.shape[-1] * 2)


def _why_no_rows(op: Fourier, types: CallTypes) -> str | None:
    x = types.input(0)
    if op.inverse or not op.half or x.dtype is not DType.FLOAT32 or x.shape[-1] != 1:
        return "it is not a one-sided transform of real float32 numbers"
    found = _lengths(types)
    if found is None:
        return "its axis or its length is not known before the run"
    return "its length varies" if any(map(is_symbolic, found)) else None


def _rows(d: Draft, op: Fourier, x: int, size: int, requested: int | None, bins: tuple[int, int]) -> int:
    """Pack(Real(RFFT2D(x)), Imag(RFFT2D(x)))"""
    *outer, _, _ = d.shape(x)
    spectrum = d.add(RFFT2D(), d.reshaped(x, *outer, 1, size), d.integers(1, requested or size))
    return d.add(Pack(len(d.shape(spectrum))), d.unary(UnaryKind.REAL, spectrum), d.unary(UnaryKind.IMAG, spectrum))


def _why_no_planes(op: RFFT, types: CallTypes) -> str | None:
    return "its length is not known before the run" if types.input(1).value is None else None


def _as_planes(d: Draft, op: RFFT, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Reshape(RFFT2D(Reshape(x), (1, length)))"""
    length = types.input(1).value
    assert length is not None
    *outer, size = d.shape(operands[0])
    planes = d.reshaped(operands[0], *outer, 1, size)
    return [d.reshaped(d.add(RFFT2D(), planes, d.integers(1, int(length.reshape(-1)[0]))), *static(types.output.shape))]


def _why_no_axes(op: RFFT2D, types: CallTypes) -> str | None:
    lengths = types.input(1).value
    if lengths is None:
        return "its lengths are not known before the run"
    return "it has a single row" if int(lengths.reshape(-1)[0]) == 1 else None


def _axis_by_axis(d: Draft, op: RFFT2D, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Bitcast(Fourier(Fourier(x, the last axis), the one before))"""
    lengths, x = types.input(1).value, operands[0]
    assert lengths is not None
    rows, columns = (int(n) for n in lengths.reshape(-1))
    *outer, height, width = d.shape(x)
    used = min(rows, height)
    x = d.reshaped(d.part(x, (0,) * (len(outer) + 2), (*outer, used, width)), *outer, used, width, 1)
    along = d.add(Fourier(half=True), x, d.number(len(outer) + 1), d.number(columns))
    return [d.add(Bitcast(DType.COMPLEX64), d.add(Fourier(), along, d.number(len(outer)), d.number(rows)))]


# ---- audio features


def _why_no_powers(op: AudioSpectrogram, types: CallTypes) -> str | None:
    if 0 in types.input(0).shape:
        return "a tensor has no elements"
    factors = op.window_size * static(types.output.shape)[2] * 2
    return None if factors <= _MOST_FACTORS else f"its matrix would have {factors} elements"


def _powers(d: Draft, op: AudioSpectrogram, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """The sum of squares of Mul(Gather(Transpose(x), frames), matrix), in float64"""
    channels, frames, bins = static(types.output.shape)
    places = TensorType(DType.INT32, (frames, op.window_size))
    indices = d.per_length(places, partial(_frames, op.stride, op.window_size), frames)
    cuts = d.gathered(d.transposed(operands[0], (1, 0)), indices, 1)
    rows = d.cast(d.reshaped(cuts, channels * frames, op.window_size), DType.FLOAT64)
    waves = np.fft.rfft(np.diag(op.window()), op.length)
    sides = [_times(d, rows, side) for side in (waves.real, waves.imag)]
    powers = d.sum(*(d.product(side, side) for side in sides))
    found = d.reshaped(d.cast(powers, DType.FLOAT32), channels, frames, bins)
    return [found if op.magnitude_squared else d.unary(UnaryKind.SQRT, found)]


@of_lengths
def _frames(stride: int, size: int, count: int) -> Array:
    """The indices of the elements of each frame."""
    return np.arange(count, dtype=np.int32)[:, None] * stride + np.arange(size, dtype=np.int32)


def _why_no_coefficients(op: Mfcc, types: CallTypes) -> str | None:
    rate = types.input(1).value
    return "the rate is not known before the run" if rate is None or int(rate.reshape(-1)[0]) < 1 else None


def _coefficients(d: Draft, op: Mfcc, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Mul(Log(Maximum(Mul(Sqrt(x), bands), least)), cosines), in float64"""
    shape, rate = d.shape(operands[0]), types.input(1).value
    assert rate is not None
    found = op.filters(int(rate.reshape(-1)[0]), shape[2])
    if found is None:
        return [d.constant(np.zeros(static(types.output.shape), np.float32))]
    first, filters = found
    part = d.part(operands[0], (0, 0, first), (*shape[:2], len(filters)))
    rows = d.reshaped(d.cast(part, DType.FLOAT64), shape[0] * shape[1], len(filters))
    energy = _times(d, d.unary(UnaryKind.SQRT, rows), filters)
    logarithms = d.unary(UnaryKind.LOG, d.binary(BinaryKind.MAXIMUM, energy, d.like(energy, op.least)))
    coefficients = d.cast(_times(d, logarithms, op.cosines().T), DType.FLOAT32)
    return [d.reshaped(coefficients, *static(types.output.shape))]


DECOMPOSITIONS = {
    Fourier: (
        Decomposition(_why_no_matrix, partial(_along_axis, _as_matrix)),
        Decomposition(_why_no_rows, partial(_along_axis, _rows)),
        Decomposition(_why_no_steps, partial(_along_axis, _in_steps)),
    ),
    RFFT: (Decomposition(_why_no_planes, _as_planes),),
    RFFT2D: (Decomposition(_why_no_axes, _axis_by_axis),),
    AudioSpectrogram: (Decomposition(_why_no_powers, _powers),),
    Mfcc: (Decomposition(_why_no_coefficients, _coefficients),),
}
