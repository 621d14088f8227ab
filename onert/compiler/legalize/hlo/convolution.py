"""StableHLO's convolution, with dimensions in any order, as TFLite's convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.compiler.legalize.decomposition import Decomposition, only_float32
from onert.compiler.legalize.draft import Draft
from onert.compiler.legalize.products import inexact
from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic.window import MAX_STEP, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.stablehlo.products import HloConvolution
from onert.ir.ops.stablehlo.sliding import Sliding
from onert.ir.shape import static

from .shapes import padded


def _spatial(op: HloConvolution) -> Sliding:
    """How the kernel slides along two or three spatial axes; missing axes have size 1."""
    return op.sliding.after(max(0, 2 - len(op.reversal)))


def _why_not_steps(op: HloConvolution, types: CallTypes) -> str | None:
    space = len(op.reversal)
    if space > 3:
        return f"there are {space} spatial dimensions, expected at most 3"
    if space == 3 and op.feature_groups * op.batch_groups > 1:
        return "groups in three dimensions have no counterpart"
    if max((*op.sliding.strides, *op.sliding.window_dilations), default=1) > 1 << 20:
        return "a stride or a dilation is above 2**20"
    window = math.prod(static(types.input(1).shape)[axis] for axis in op.kernel_places.spatial)
    return None if window <= MAX_STEP else "the window is too large"


def _why_not(op: HloConvolution, types: CallTypes) -> str | None:
    return only_float32(op, types) or _why_not_steps(op, types)


def _images(d: Draft, op: HloConvolution, x: int) -> int:
    """`x` as [batch, space.., features], with batch groups moved into the features."""
    places = op.x_places
    x = d.transposed(x, (places.batch, *places.spatial, places.feature))
    batch, *space, features = d.shape(x)
    space = [1] * max(0, 2 - len(space)) + space
    groups = op.batch_groups
    if groups == 1:
        return d.reshaped(x, batch, *space, features)
    split = d.reshaped(x, groups, batch // groups, *space, features)
    last = len(space) + 2
    order = (*range(1, last), 0, last)
    return d.reshaped(d.transposed(split, order), batch // groups, *space, groups * features)


def _filters(d: Draft, op: HloConvolution, kernel: int) -> int:
    """The kernel as [outputs, space.., inputs], reversed along the axes that the operation reverses."""
    places = op.kernel_places
    reversed_axes = [places.spatial[i] for i, is_reversed in enumerate(op.reversal) if is_reversed]
    if reversed_axes:
        kernel = d.moved(Reverse(), kernel, d.integers(*reversed_axes))
    kernel = d.transposed(kernel, (places.feature, *places.spatial, places.batch))
    outputs, *space, inputs = d.shape(kernel)
    return d.reshaped(kernel, outputs, *([1] * max(0, 2 - len(space)) + space), inputs)


def _laid_out(d: Draft, op: HloConvolution, y: int) -> int:
    """`y` [batch, space.., features] with the dimensions in the order of the result."""
    places = op.result_places
    batch, *space, features = d.shape(y)
    y = d.reshaped(y, batch, *space[len(space) - len(places.spatial) :], features)
    order = (places.batch, *places.spatial, places.feature)
    return d.transposed(y, [order.index(axis) for axis in range(len(order))])


def _convolution(d: Draft, op: HloConvolution, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Transpose(Conv2D(Pad(Transpose(x)), Transpose(kernel))), or DepthwiseConv2D or Conv3D"""
    result = static(types.output.shape)
    if 0 in (*result, *d.shape(operands[0]), *d.shape(operands[1])):
        return [d.nothing(types.output) if 0 in result else d.broadcast(d.like(operands[0], 0), result)]
    x, kernel = _images(d, op, operands[0]), _filters(d, op, operands[1])
    s = _spatial(op)
    image = padded(d, x, d.like(x, 0), (0, *s.low, 0), (0, *s.high, 0), (0, *(step - 1 for step in s.dilations), 0))
    return [_laid_out(d, op, _products(d, image, kernel, s))]


def _products(d: Draft, x: int, kernel: int, s: Sliding) -> int:
    """`x` [batch, space.., features] convolved with filters [outputs, space.., features / groups], without padding."""
    features, (outputs, *_, inputs) = d.shape(x)[-1], d.shape(kernel)
    if len(s.strides) == 3:
        filters = d.transposed(kernel, (1, 2, 3, 4, 0))
        (depth, high, wide), (a, b, c) = s.strides, s.window_dilations
        return d.add(Conv3D(Padding.VALID, depth, high, wide, a, b, c), x, filters)
    (down, across), (rows, columns) = s.strides, s.window_dilations
    if inputs == 1 and features > 1:
        window = d.shape(kernel)[1:3]
        depthwise = d.reshaped(d.transposed(kernel, (3, 1, 2, 0)), 1, *window, outputs)
        return d.add(DepthwiseConv2D(Padding.VALID, down, across, rows, columns), x, depthwise)
    return d.add(Conv2D(Padding.VALID, down, across, rows, columns), x, kernel)


# ---- dilated inputs (transposed convolutions)


def _why_not_transposed(op: HloConvolution, types: CallTypes) -> str | None:
    kernel = types.input(1).value
    if len(op.reversal) > 2 or max(op.sliding.dilations, default=1) == 1:
        return "its inputs are not dilated in one or two dimensions"
    if {*op.sliding.strides, *op.sliding.window_dilations} - {1} or op.feature_groups * op.batch_groups > 1:
        return "it has strides, a dilated kernel, or groups"
    if kernel is None or not np.isfinite(kernel).all():
        return "the kernel, which multiplies the zeros between inputs, is not known to be finite"
    if 0 in (*types.output.shape, *types.input(0).shape, *types.input(1).shape):
        return "a tensor has no elements"
    return _why_not(op, types)


def _transposed(d: Draft, op: HloConvolution, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Transpose(Pad(Slice(TransposeConv2D(x, Reverse(kernel)))))

    Input i reaches outputs `i * dilation + low - tap`. With a reversed kernel these are windows starting at `i *
    dilation`, and the result starts at their element `window - 1 - low`.
    """
    x, kernel = _images(d, op, operands[0]), _filters(d, op, operands[1])
    s = _spatial(op)
    filters = d.moved(Reverse(), kernel, d.integers(1, 2))
    (batch, *sizes, _), (outputs, *window, _) = d.shape(x), d.shape(kernel)
    full = [(n - 1) * step + w for n, step, w in zip(sizes, s.dilations, window, strict=True)]
    down, across = s.dilations
    y = d.add(TransposeConv2D(Padding.VALID, down, across), d.integers(batch, *full, outputs), filters, x)
    low, high = ([side - (w - 1) for side, w in zip(sides, window, strict=True)] for sides in (s.low, s.high))
    return [_laid_out(d, op, padded(d, y, d.like(x, 0), (0, *low, 0), (0, *high, 0), (0, 0, 0, 0)))]


# ---- bytes


def _why_not_exact(op: HloConvolution, types: CallTypes) -> str | None:
    kernel = types.input(1).shape
    terms = math.prod(d or 0 for axis, d in enumerate(kernel) if axis != op.kernel_places.feature)
    return inexact(types, terms) or _why_not_steps(op, types)


def _exact(d: Draft, op: HloConvolution, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Cast(Conv2D(Cast(x), Cast(kernel))), whose sums float32 holds exactly"""
    (found,) = _convolution(d, op, types, [d.cast(operand, DType.FLOAT32) for operand in operands])
    return [d.cast(found, DType.INT32)]


DECOMPOSITIONS = {
    HloConvolution: (
        Decomposition(_why_not_transposed, _transposed),
        Decomposition(_why_not, _convolution),
        Decomposition(_why_not_exact, _exact),
    ),
}
