"""Convolutions of integers less their zero points, whose sums are integers."""

from __future__ import annotations

import math

import numpy as np

from onert.frontend.onnx.building import binary, cast, reshape, to_back, to_front, transpose
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.movement import split
from onert.ir import Array, DType, Quantization
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.convert import Cast

from .convolution import convolved, convolved_rank
from .windows import Windows, windows

_HELD = 1 << 24
"""Whole numbers up to this are float32."""


def _conv_integer(node: Node) -> int:
    """Sums of products of 8-bit integers less their zero points, as 32-bit ones.

    Bytes are multiplied as such where the filters are constant and fit signed ones, and sums become float32 for as many
    channels at a time as that holds exactly; else all is done in float64.
    """
    d = node.draft
    rank = convolved_rank(d, node.input(0), node.input(1))
    kernel = tuple(k or 0 for k in d.type(node.input(1)).shape[2:])
    over = windows(node, kernel, d.type(node.input(0)).shape[2:])
    groups, zero, filters = node.integer("group", 1), _only(node, 2), _signed(node)
    if rank == 4 and groups == 1 and zero is not None and filters is not None:
        found = _of_bytes(d, node.input(0), zero, filters, over)
        if found is not None:
            return found
    x, weight = (_centred(node, at, at + 2) for at in (0, 1))
    return d.add(Cast(DType.INT32), convolved(d, x, weight, None, over, groups, rank))


def _only(node: Node, at: int) -> int | None:
    """A zero point that is one known number; 0 where it is absent."""
    if not node.has(at):
        return 0
    value = node.value(at)
    return None if value is None or value.size != 1 else int(value.reshape(()))


def _signed(node: Node) -> Array | None:
    """The filters less their zero points as signed bytes; None where they are not known, or do not fit."""
    weight = node.value(1)
    zero = node.value(3) if node.has(3) else np.zeros((), np.int8)
    if weight is None or zero is None or not weight.size or zero.size not in (1, len(weight)):
        return None
    found = weight.astype(np.int32) - zero.astype(np.int32).reshape(-1, *(1,) * (weight.ndim - 1))
    return found.astype(np.int8) if found.min() >= -128 and found.max() <= 127 else None


def _of_bytes(d: Draft, x: int, zero: int, filters: Array, over: Windows) -> int | None:
    """`x` [batch, channels, height, width]; None where one channel has more products than float32 holds the sum of."""
    channels, taps = filters.shape[1], math.prod(filters.shape[2:])
    largest = 255 * max(int(np.abs(filters.astype(np.int32)).max()), 1)
    most = _HELD // largest // taps
    if not most or d.type(x).shape[1] not in (channels, None):
        return None
    sizes = [min(most, channels - at) for at in range(0, channels, most)]
    images = split(d, x, sizes, 1) if len(sizes) > 1 else (x,)
    parts = np.split(filters, np.cumsum(sizes)[:-1], 1)
    sums = [_part(d, image, zero, part, over) for image, part in zip(images, parts, strict=True)]
    total = sums[0]
    for more in sums[1:]:
        total = binary(d, BinaryKind.ADD, total, more)
    return transpose(d, total, to_back(4))


def _part(d: Draft, x: int, zero: int, filters: Array, over: Windows) -> int:
    """The sums of some channels, as int32 with channels last."""
    image = d.quantized(transpose(d, x, to_front(4)), Quantization((1.0,), (zero,)))
    image, padding = over.applied(d, image, 2)
    weight = d.constant(np.ascontiguousarray(filters.transpose(to_front(4))), DType.INT8)
    steps, apart = over.strides, over.dilations
    op = Conv2D(padding, steps[0], steps[1], apart[0], apart[1], output=DType.FLOAT32)
    return cast(d, d.add(op, image, d.quantized(weight, Quantization((1.0,), (0,)))), DType.INT32)


def _centred(node: Node, at: int, zero: int) -> int:
    d = node.draft
    x = d.add(Cast(DType.FLOAT64), node.input(at))
    if not node.has(zero):
        return x
    offset = d.add(Cast(DType.FLOAT64), node.input(zero))
    if d.type(offset).rank == 1 and d.type(offset).shape[0] not in (1, None):
        offset = reshape(d, offset, (d.type(offset).shape[0], *(1,) * (d.type(x).rank - 1)))
    return binary(d, BinaryKind.SUB, x, offset)


_IMPORTERS: dict[str, Importer] = {"ConvInteger": _conv_integer}
TABLE = {("", name): importer for name, importer in _IMPORTERS.items()}
