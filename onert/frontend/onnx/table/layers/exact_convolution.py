"""Exact convolutions of bytes by constant integers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen

from onert.frontend.onnx.building import binary, cast, ints, to_channels_first, to_channels_last, transpose
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.table.elements.movement import padded, split
from onert.ir import Array, DType, Quantization
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.value import Value

from .windows import Windows

MAX_EXACT_FLOAT32 = 1 << 24
"""Integers up to this are exact in float32."""
_WIDE = 16
"""The number of channels that fill registers; groups with fewer are multiplied together."""


@frozen
class Sums(Value):
    """Sums [batch, filters, ...] as float32 or int32, and their maximum possible magnitude."""

    operand: int
    bound: int


def convolve_exactly(
    d: Draft, x: int, filters: Array, over: Windows, groups: int, zero: int, *, known: bool
) -> Sums | None:
    """The sums of `x` [batch, channels, height, width] minus its zero point, a number or an operand, multiplied by
    int32 filters [filters, channels of a group, height, width] from -255 to 255.

    Padding is 0. None if the products of a single channel exceed the exact range of float32.
    """
    image = transpose(d, x, to_channels_last(4))
    if not known:  # pad with the zero point, and subtract its contribution afterwards
        image = padded(d, image, [(0, 0), *over.margins, (0, 0)], zero)
        over = evolve(over, margins=((0, 0), (0, 0)), padding=Padding.VALID)
    point = zero if known else 0
    blocks = list(_blocks(filters, groups))
    parts = split(d, image, [block.shape[1] for block in blocks], 3) if len(blocks) > 1 else (image,)
    found = [_convolve_dense(d, part, block, over, point) for part, block in zip(parts, blocks, strict=True)]
    sums = [operand for operand in found if operand is not None]
    if len(sums) < len(found):
        return None
    total = sums[0] if len(sums) == 1 else d.add(Concat(3), *(cast(d, s, DType.INT32) for s in sums))
    if not known:
        columns = d.constant(filters.reshape(len(filters), -1).sum(axis=1).astype(np.int32))
        share = binary(d, BinaryKind.MUL, columns, cast(d, zero, DType.INT32))
        total = binary(d, BinaryKind.SUB, cast(d, total, DType.INT32), share)
    most = 255 * int(np.abs(filters).reshape(len(filters), -1).sum(axis=1).max())
    return Sums(transpose(d, total, to_channels_first(4)), most)


def _blocks(filters: Array, groups: int) -> Iterator[Array]:
    """Yield the filters of enough groups to fill registers, with zeros for the channels of other groups."""
    inner, each = filters.shape[1], len(filters) // groups
    together = next(n for n in range(1, groups + 1) if groups % n == 0 and (n * inner >= _WIDE or n == groups))
    for first in range(0, groups, together):
        block = np.zeros((together * each, together * inner, *filters.shape[2:]), np.int32)
        for group in range(together):
            rows = slice(group * each, (group + 1) * each)
            own = filters[(first + group) * each : (first + group + 1) * each]
            block[rows, group * inner : (group + 1) * inner] = own
        yield block


def _convolve_dense(d: Draft, image: int, filters: Array, over: Windows, zero: int) -> int | None:
    """The sums over all channels of bytes minus a zero point, channels last: float32 if exact, otherwise int32.

    Filters outside the int8 range are shifted, each by one number, whose product with the sum of all elements of a
    window is added afterwards. None if a channel's products exceed the exact range of float32, or such a sum.
    """
    flat = filters.reshape(len(filters), -1)
    low, high = flat.min(axis=1), flat.max(axis=1)
    less = np.where((low < -128) | (high > 127), (low + high + 1) // 2, 0)
    stored = filters - less.reshape(-1, 1, 1, 1)
    if less.any() and 255 * flat.shape[1] > MAX_EXACT_FLOAT32:
        return None
    sizes = _sizes(255 * np.abs(stored).sum(axis=(2, 3), dtype=np.int64))
    if sizes is None:
        return None
    images = split(d, image, sizes, 3) if len(sizes) > 1 else (image,)
    ends = np.cumsum(sizes)[:-1]
    sums = [_convolve_bytes(d, i, part, over, zero) for i, part in zip(images, np.split(stored, ends, 1), strict=True)]
    total = sums[0]
    for more in sums[1:]:
        total = binary(d, BinaryKind.ADD, cast(d, total, DType.INT32), cast(d, more, DType.INT32))
    if not less.any():
        return total
    windows = cast(d, _window_sums(d, image, filters.shape[1:], over, zero), DType.INT32)
    added = binary(d, BinaryKind.MUL, windows, d.constant(less.astype(np.int32)))
    return binary(d, BinaryKind.ADD, cast(d, total, DType.INT32), added)


def _window_sums(d: Draft, image: int, window: tuple[int, ...], over: Windows, zero: int) -> int:
    """The sums of all channels of bytes minus a zero point in a window [channels, height, width], as exact float32."""
    channels, *kernel = window
    sums = d.add(Reduce(Reduction.SUM, keep_dims=True), cast(d, image, DType.FLOAT32), ints(d, [3]))
    if zero:
        sums = binary(d, BinaryKind.SUB, sums, d.constant(float(zero * channels), DType.FLOAT32))
    if kernel == [1, 1] and over.strides == (1, 1) and not any(map(any, over.margins)):
        return sums
    sums, padding = over.apply(d, sums, 2)
    steps, apart = over.strides, over.dilations
    op = Conv2D(padding, steps[0], steps[1], apart[0], apart[1])
    return d.add(op, sums, d.constant(np.ones((1, *kernel, 1), np.float32)))


def _sizes(most: Array) -> list[int] | None:
    """Numbers of channels that float32 can sum exactly; `most` [filters, channels] is the maximum of each channel."""
    found, held = [0], np.zeros(len(most), np.int64)
    for share in most.T:
        if share.max() > MAX_EXACT_FLOAT32:
            return None
        if (held + share).max() > MAX_EXACT_FLOAT32:
            found.append(0)
            held = np.zeros_like(held)
        held, found[-1] = held + share, found[-1] + 1
    return found


def _convolve_bytes(d: Draft, image: int, filters: Array, over: Windows, zero: int) -> int:
    """The sums of some channels multiplied by int8 filters, as float32."""
    image, padding = over.apply(d, d.with_quantization(image, Quantization((1.0,), (zero,))), 2)
    weight = d.constant(np.ascontiguousarray(filters.transpose(to_channels_last(4)), np.int8), DType.INT8)
    steps, apart = over.strides, over.dilations
    op = Conv2D(padding, steps[0], steps[1], apart[0], apart[1], output=DType.FLOAT32)
    return d.add(op, image, d.with_quantization(weight, Quantization((1.0,), (0,))))
