"""Integer convolutions with zero points."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.frontend.onnx.building import binary, cast, reshape
from onert.frontend.onnx.node import Importer, Node
from onert.ir import Array, DType
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.data_movement.reshape import ExpandDims, Squeeze
from onert.ir.ops.elementwise.binary import BinaryKind

from .convolution import convolution_rank, convolve
from .exact_convolution import MAX_EXACT_FLOAT32, Sums, convolve_exactly
from .windows import Windows, windows

_FEW = 4
"""Groups with fewer channels are too small for 8-bit products."""


def _conv_integer(node: Node) -> int:
    """int32 sums of products of 8-bit integers minus their zero points."""
    return cast(node.draft, convolve_integers(node).operand, DType.INT32)


def convolve_integers(node: Node) -> Sums:
    """ConvInteger. Constant filters multiply bytes, or float32 in groups with few channels, in slices of as many
    channels as float32 can sum exactly; otherwise everything is computed in float64.
    """
    d, filters = node.draft, _filters(node)
    rank = convolution_rank(d, node.input(0), node.input(1))
    kernel = tuple(k or 0 for k in d.type(node.input(1)).shape[2:])
    over = windows(node, kernel, d.type(node.input(0)).shape[2:])
    groups = node.integer("group", 1)
    if filters is not None and rank in (3, 4) and d.type(node.input(0)).dtype in (DType.INT8, DType.UINT8):
        found = _convolve_known(node, filters, over, groups)
        if found is not None:
            return found
    x, weight = (_centred(node, at, at + 2, DType.FLOAT64) for at in (0, 1))
    return Sums(cast(d, convolve(d, x, weight, None, over, groups, rank), DType.INT32), 1 << 31)


def _filters(node: Node) -> Array | None:
    """The filters minus their zero points as int32; None if they are not constant."""
    weight = node.value(1)
    zero = node.value(3) if node.has(3) else np.zeros((), np.int8)
    if weight is None or zero is None or not weight.size or weight.ndim < 3 or zero.size not in (1, len(weight)):
        return None
    if weight.dtype not in (np.int8, np.uint8):
        return None
    return weight.astype(np.int32) - zero.astype(np.int32).reshape(-1, *(1,) * (weight.ndim - 1))


def _convolve_known(node: Node, filters: Array, over: Windows, groups: int) -> Sums | None:
    """The sums in one or two dimensions; None if a few channels already exceed the exact range of float32."""
    d, x, inner = node.draft, node.input(0), filters.shape[1]
    if groups < 1 or len(filters) % groups or d.type(x).shape[1] not in (inner * groups, None):
        return None
    most = 255 * int(np.abs(filters).reshape(len(filters), -1).sum(axis=1).max())
    if groups > 1 and inner < _FEW:
        weight = d.constant(filters.astype(np.float32))
        centred = _centred(node, 0, 2, DType.FLOAT32)
        return (
            Sums(convolve(d, centred, weight, None, over, groups, filters.ndim), most)
            if most <= MAX_EXACT_FLOAT32
            else None
        )
    zero = node.value(2) if node.has(2) else np.zeros((), np.int8)
    unknown = over.padding is Padding.SAME and None in d.type(x).shape[2:]
    if (zero is None and unknown) or (zero is not None and zero.size != 1):
        return None
    point = int(zero.reshape(())) if zero is not None else reshape(d, node.input(2), ())
    if filters.ndim == 4:
        return convolve_exactly(d, x, filters, over, groups, point, known=zero is not None)
    plane = evolve(
        over,
        kernel=(1, *over.kernel),
        strides=(1, *over.strides),
        dilations=(1, *over.dilations),
        margins=((0, 0), *over.margins),
    )
    image = d.add(ExpandDims(), x, d.constant(2, DType.INT32))
    found = convolve_exactly(d, image, filters[:, :, None], plane, groups, point, known=zero is not None)
    return None if found is None else Sums(d.add(Squeeze((2,)), found.operand), found.bound)


def _centred(node: Node, at: int, zero: int, dtype: DType) -> int:
    """An input minus its zero points as floats; several zero points apply along the first axis."""
    d = node.draft
    x = cast(d, node.input(at), dtype)
    if not node.has(zero):
        return x
    offset = cast(d, node.input(zero), dtype)
    if d.type(offset).rank == 1 and d.type(offset).shape[0] not in (1, None):
        offset = reshape(d, offset, (d.type(offset).shape[0], *(1,) * (d.type(x).rank - 1)))
    return binary(d, BinaryKind.SUB, x, offset)


TABLE: dict[str, Importer] = {"ConvInteger": _conv_integer}
