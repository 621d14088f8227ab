"""Quantisation: how stored integers represent real numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

import numpy as np
from attrs import field, frozen

from .dtype import Array, DType
from .errors import RuleError
from .value import Value

NumberT = TypeVar("NumberT", int, float)


@frozen(eq=False, repr=False)
class Numbers(Sequence[NumberT], Generic[NumberT]):
    """An immutable sequence of 64-bit numbers, equal to others with the same content.

    A tuple would need five times the memory and, for the millions of scales of blockwise quantised weights, seconds.
    `stored` is a read-only one-dimensional array of all `length` numbers, or of one number if all are equal.
    """

    stored: Array
    length: int

    @property
    def array(self) -> Array:
        """All numbers, as a read-only array."""
        return self.stored if len(self.stored) == self.length else np.broadcast_to(self.stored, self.length)

    def __array__(self, dtype: np.dtype[np.generic] | None = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype, copy=True) if copy else np.asarray(self.array, dtype)

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, at: int) -> NumberT: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[NumberT]: ...
    def __getitem__(self, at: int | slice) -> NumberT | Sequence[NumberT]:
        found: NumberT | Sequence[NumberT] = self.array[at].tolist()
        return found

    def __iter__(self) -> Iterator[NumberT]:
        return iter(self.array.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers):
            return NotImplemented
        return self is other or (self.length == other.length and np.array_equal(self.stored, other.stored))

    def __hash__(self) -> int:
        return hash((self.length, *self.stored[:1].tolist(), *self.stored[-1:].tolist()))

    def __repr__(self) -> str:
        return repr(tuple(self))


def floats(values: Sequence[float] | Array) -> Numbers[float]:
    """The numbers as float64."""
    return _numbers(values, np.float64)


def integers(values: Sequence[int] | Array) -> Numbers[int]:
    """The numbers as int64. Raises RuleError if one does not fit."""
    try:
        return _numbers(values, np.int64)
    except OverflowError as error:
        raise RuleError("quantisation has a zero point of more than 64 bits") from error


def _numbers(values: Sequence[float] | Array, dtype: type[np.generic]) -> Numbers[NumberT]:
    if isinstance(values, Numbers) and values.stored.dtype == dtype:
        return values
    found = np.array(values, dtype).reshape(-1)
    stored = found[:1].copy() if len(found) > 1 and (found == found[0]).all() else found
    stored.flags.writeable = False
    return Numbers(stored, len(found))


@frozen
class Quantization(Value):
    """Quantisation parameters: `real = scale * (stored - zero_point)`.

    Per tensor: one scale and one zero point. Per axis: one of each for every index along `axis`.
    Blockwise: along `axis`, each block of `block_size` elements has its own scale and zero point; the scales are
    then in the row-major order of the tensor's shape with the length along `axis` divided by `block_size`.
    Source: the TFLite quantisation specification (`scale`, `zero_point`, `quantized_dimension`) and the schema's
    BlockwiseQuantization.
    """

    scales: Numbers[float] = field(converter=floats)
    zero_points: Numbers[int] = field(converter=integers)
    axis: int | None = None
    block_size: int | None = None

    def __attrs_post_init__(self) -> None:
        if not self.scales:
            raise RuleError("quantisation has no scale, expected at least one")
        if len(self.scales) != len(self.zero_points):
            raise RuleError(
                f"quantisation has {len(self.scales)} scales and {len(self.zero_points)} zero points, "
                "expected as many of each"
            )
        fine = (self.scales.stored > 0) & (self.scales.stored < math.inf)
        if not fine.all():
            wrong = self.scales.stored[~fine][0]
            raise RuleError(f"quantisation scale is {wrong}, expected a positive finite number")

    @property
    def per_tensor(self) -> bool:
        return self.axis is None

    @property
    def scale(self) -> float:
        """The scale of a per-tensor quantisation. Raises RuleError if it is per axis."""
        self._require_per_tensor()
        return float(self.scales.stored[0])

    @property
    def zero_point(self) -> int:
        """The zero point of a per-tensor quantisation. Raises RuleError if it is per axis."""
        self._require_per_tensor()
        return int(self.zero_points.stored[0])

    def _require_per_tensor(self) -> None:
        if self.axis is not None:
            raise RuleError(f"quantisation is per axis {self.axis}, expected per tensor")

    def parameters(self, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Scales (float32) and zero points (int64) that broadcast against a tensor of `shape`.

        Raises RuleError if their number does not match the shape.
        """
        scales = np.asarray(self.scales, np.float32)
        zeros = np.asarray(self.zero_points, np.int64)
        if self.axis is None:
            return scales.reshape(()), zeros.reshape(())
        self._require_fit(shape)
        if self.block_size is None:
            across = tuple(-1 if i == self.axis else 1 for i in range(len(shape)))
            return scales.reshape(across), zeros.reshape(across)
        if len(self.scales) == 1:
            return scales.reshape(()), zeros.reshape(())
        blocks = tuple(-(-d // self.block_size) if i == self.axis else d for i, d in enumerate(shape))
        spread = (np.repeat(a.reshape(blocks), self.block_size, self.axis) for a in (scales, zeros))
        cut = tuple(slice(0, d) for d in shape)
        wide_scales, wide_zeros = (a[cut] for a in spread)
        return wide_scales, wide_zeros

    def _require_fit(self, shape: tuple[int, ...]) -> None:
        """Raises RuleError unless there is one scale, or one for each index or block of indices along the axis."""
        axis = self.axis or 0
        if not 0 <= axis < len(shape):
            raise RuleError(f"quantisation is per axis {axis}, expected an axis of the shape {list(shape)}")
        count = shape[axis]
        if self.block_size is not None:
            if self.block_size < 1:
                raise RuleError(f"quantisation has blocks of {self.block_size} elements, expected at least 1")
            count = math.prod(-(-d // self.block_size) if i == axis else d for i, d in enumerate(shape))
        if len(self.scales) not in (1, count):
            raise RuleError(f"quantisation has {len(self.scales)} scales, expected {count} for the shape {list(shape)}")


def dequantize(stored: Array, quantization: Quantization) -> Array:
    """The float32 numbers that `stored` represents."""
    scales, zeros = quantization.parameters(stored.shape)
    centred = (stored.astype(np.int64) - zeros).astype(np.float32)
    out: Array = scales * centred
    return out


def quantize(real: Array, quantization: Quantization, dtype: DType) -> Array:
    """`real` as integers of `dtype`: divided by the scale in float32, rounded half away from zero, saturated.

    Source: TFLite reference_ops::AffineQuantize (`TfLiteRound`, clamp). NaN becomes the zero point.
    """
    scales, zeros = quantization.parameters(real.shape)
    ratio = np.nan_to_num(real.astype(np.float32) / scales, nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = dtype.limits
    rounded = np.clip(round_half_away(ratio.astype(np.float64)) + zeros, low, high)
    out: Array = rounded.astype(dtype.numpy)
    return out


def round_half_away(x: Array) -> Array:
    """Rounds to the nearest integer, halves away from zero, like C's `round`; exact for every float."""
    whole = np.trunc(x)
    out: Array = whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)
    return out
