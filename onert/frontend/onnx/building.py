"""Small graphs shared by many importers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.frontend.format import UnknownRankError
from onert.ir import DType, ModelError, Shape, TensorType
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Bitcast, Cast
from onert.ir.shape import normalize_axis

from .draft import Draft

Entry = int | None


def ints(d: Draft, values: Sequence[int], dtype: DType = DType.INT64) -> int:
    """A constant vector of integers."""
    return d.constant(np.array(list(values), dtype.numpy), dtype)


def like(d: Draft, x: int, value: float) -> int:
    """A constant scalar with the element type of an operand."""
    dtype = d.type(x).dtype
    return d.constant(np.array(value).astype(dtype.numpy), dtype)


def binary(d: Draft, kind: BinaryKind, x: int, y: int) -> int:
    return d.add(Binary(kind), x, y)


def times(d: Draft, x: int, factor: float) -> int:
    """The operand multiplied by a number; unchanged if that is 1."""
    return x if factor == 1 else binary(d, BinaryKind.MUL, x, like(d, x, factor))


def cast(d: Draft, x: int, to: DType) -> int:
    """The operand cast to an element type; unchanged if it already has it."""
    return x if d.type(x).dtype is to else d.add(Cast(to), x)


_LARGEST = {
    DType.FLOAT8_E4M3FN: 448.0,
    DType.FLOAT8_E5M2: 57344.0,
    DType.FLOAT8_E4M3FNUZ: 240.0,
    DType.FLOAT8_E5M2FNUZ: 57344.0,
}
_NARROW = (DType.INT2, DType.UINT2, DType.INT4, DType.UINT4)


def convert(d: Draft, x: int, to: DType, *, saturate: bool = True, rounding: str = "up") -> int:
    """The operand converted by ONNX's rules: integers narrower than a byte wrap, 8-bit floats saturate.

    `rounding` to powers of two (E8M0) is "up", "down" or "nearest".
    """
    source = d.type(x).dtype
    if source is to:
        return x
    if to is DType.FLOAT8_E8M0FNU:
        return _power_of_two(d, cast(d, x, DType.FLOAT32), rounding, saturate=saturate)
    if to in _NARROW:
        wide = binary(d, BinaryKind.BITWISE_AND, cast(d, x, DType.INT32), d.constant((1 << to.bits) - 1, DType.INT32))
        if to.limits[0] < 0:
            half = d.constant(-to.limits[0], DType.INT32)
            wide = binary(d, BinaryKind.SUB, binary(d, BinaryKind.BITWISE_XOR, wide, half), half)
        return cast(d, wide, to)
    if saturate and to in _LARGEST and source.is_float:
        x = x if source.bits >= 32 else cast(d, x, DType.FLOAT32)
        x = binary(d, BinaryKind.MAXIMUM, x, like(d, x, -_LARGEST[to]))
        x = binary(d, BinaryKind.MINIMUM, x, like(d, x, _LARGEST[to]))
    return cast(d, x, to)


def _power_of_two(d: Draft, x: int, rounding: str, *, saturate: bool) -> int:
    """The E8M0 value of a float32: its exponent, incremented if the fraction rounds up."""
    if rounding not in ("up", "down", "nearest"):
        raise ModelError(f"round_mode is {rounding!r}, expected up, down or nearest")
    bits = d.add(Bitcast(DType.INT32), x)
    shifted = binary(d, BinaryKind.SHIFT_RIGHT, bits, like(d, bits, 23))
    exponent = binary(d, BinaryKind.BITWISE_AND, shifted, like(d, bits, 0xFF))
    fraction = binary(d, BinaryKind.BITWISE_AND, bits, like(d, bits, 0x7FFFFF))
    if rounding != "down":
        above = d.add(Comparison(ComparisonKind.GREATER), fraction, like(d, bits, 0 if rounding == "up" else 0x400000))
        if rounding == "nearest":  # ties round up, except from exponent 0
            half = d.add(Comparison(ComparisonKind.EQUAL), fraction, like(d, bits, 0x400000))
            normal = d.add(Comparison(ComparisonKind.GREATER), exponent, like(d, bits, 0))
            above = binary(d, BinaryKind.LOGICAL_OR, above, binary(d, BinaryKind.LOGICAL_AND, half, normal))
        room = d.add(Comparison(ComparisonKind.LESS), exponent, like(d, bits, 254 if saturate else 255))
        more = cast(d, binary(d, BinaryKind.LOGICAL_AND, above, room), DType.INT32)
        exponent = binary(d, BinaryKind.ADD, exponent, more)
    return d.add(Bitcast(DType.FLOAT8_E8M0FNU), cast(d, exponent, DType.UINT8))


def transpose(d: Draft, x: int, permutation: Sequence[int]) -> int:
    """The operand with its axes permuted; unchanged for the identity."""
    order = tuple(permutation)
    return x if order == tuple(range(len(order))) else d.add(Transpose(), x, ints(d, order, DType.INT32))


def shape_of(d: Draft, x: int) -> int:
    """The shape as an int64 vector; a constant if it is known."""
    return d.add(ShapeOf(DType.INT64), x)


def dimension(d: Draft, x: int, axis: int) -> int:
    """One dimension as an int64 vector of one element. Raises ModelError if it does not exist."""
    require_rank(d, x, axis + 1)
    size = d.type(x).shape[axis]
    return ints(d, [size]) if size is not None else d.add(Gather(0), shape_of(d, x), ints(d, [axis]))


def reshape(d: Draft, x: int, dims: Sequence[int | None]) -> int:
    """The operand reshaped. At most one dimension may be None, which is inferred from the others."""
    wanted = tuple(-1 if s is None else s for s in dims)
    if d.type(x).shape == tuple(dims) and None not in dims:
        return x
    return d.add(Reshape(wanted), x)


def reshape_by(d: Draft, x: int, shape: int) -> int:
    """The operand reshaped to the dimensions in an int64 operand, where -1 is inferred from the others.

    If exactly one dimension is unknown and all others are positive, the reshape infers it instead of reading it.
    """
    known = d.known_elements(shape)
    if known is not None:
        entries = [None if v is None else int(v) for v in known.reshape(-1)]
        if None not in entries or (entries.count(None) == 1 and all(v is None or v > 0 for v in entries)):
            return d.add(Reshape(tuple(-1 if v is None else v for v in entries)), x)
    found = d.add(Reshape(), x, shape)
    if known is not None:  # declare the sizes that are known
        sizes = tuple(int(v) if v is not None and v > 0 else None for v in known.reshape(-1))
        d.declare(found, TensorType(d.type(found).dtype, sizes))
    return found


def concat(d: Draft, parts: Sequence[int]) -> int:
    """The concatenation of int64 vectors."""
    return parts[0] if len(parts) == 1 else d.add(Concat(0), *parts)


def require_rank(d: Draft, x: int, least: int = 0) -> int:
    """The rank of an operand. Raises ModelError if it is unknown or too small."""
    type_ = d.type(x)
    if not type_.ranked:
        raise UnknownRankError("has an input of unknown rank")
    if type_.rank < least:
        raise ModelError(f"has input {type_}, expected at least {least} dimensions")
    return type_.rank


def to_channels_last(rank: int) -> tuple[int, ...]:
    """The permutation that moves the channel axis from 1 to the end."""
    return (0, *range(2, rank), 1)


def to_channels_first(rank: int) -> tuple[int, ...]:
    """The inverse of `to_channels_last`."""
    return (0, rank - 1, *range(1, rank - 1))


def axis_last(rank: int, axis: int) -> tuple[int, ...]:
    """The permutation that swaps an axis with the last; it is its own inverse."""
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return tuple(order)


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in the given order. Raises ModelError if one occurs twice."""
    found = tuple(normalize_axis(int(a), rank) for a in axes)
    if len(set(found)) != len(found):
        raise ModelError(f"axes {list(axes)} repeat an axis")
    return found


def known_shape(d: Draft, x: int, what: str) -> tuple[int, ...]:
    """The shape of an operand. Raises ModelError if it is not static."""
    shape: Shape = d.type(x).shape
    if not d.type(x).is_static:
        raise ModelError(f"{what} is {d.type(x)}, expected a known shape")
    return tuple(s for s in shape if s is not None)
