"""Convolutions and pooling in one and three dimensions.

One-dimensional ones are computed on images of width 1. Source: TNN's conv_1d, conv_3d, pooling_1d and pooling_3d
layer interpreters, conv1d_layer.cc, conv3d_layer.cc and pooling_3d_layer.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import frozen

from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.layer_types import base_type
from onert.frontend.tnn.site import Site, Writer
from onert.ir import Array, ModelError, Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.data_movement.joining import Concat, SplitV
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.value import Value

from .convolution import FUSED, activated, check_parameters
from .pooling import AVERAGE, MAX, pool_span, windows
from .spans import EXPLICIT, LARGEST, SAME, VALID, Span, conv_span, pad_input, require_windows

_ONE = Span(1, 1, 1, 1, 1, 0)
"""An axis of size 1."""


def _numbers(site: Site, what: str, count: int, low: int, default: int | None = None) -> list[int]:
    return [site.integer(what, default, low, LARGEST) for _ in range(count)]


def _sides(site: Site, x: int, axes: int) -> tuple[int, ...]:
    """The number of channels, followed by the spatial sizes."""
    return site.graph.shape(x, 2 + axes)[1:]


def _convolution(axes: int, site: Site) -> Sequence[int]:
    """A convolution; filters are stored [outputs, inputs / groups, ...]."""
    channels, *sides = _sides(site, site.x, axes)
    groups, _, outputs = (site.integer(what, None, 0, LARGEST) for what in ("groups", "inputs", "outputs"))
    size, stride = (_numbers(site, what, axes, 1) for what in ("kernel", "stride"))
    margins = _numbers(site, "padding", 2 if axes == 1 else axes, 0)
    has_bias, kind = site.flag("bias"), site.integer("padding type")
    dilation, code = _numbers(site, "dilation", axes, 1, 1), site.integer("activation", 0)
    check_parameters(groups, channels, outputs, code)
    pads = [(margins[1], margins[0])] if axes == 1 else [(margin, margin) for margin in margins]
    spans = [conv_span(*each, kind) for each in zip(sides, size, stride, dilation, pads, strict=True)]
    shape = (outputs, channels // groups, *size)
    if base_type(site.layer.type)[1]:
        weight, bias = _from_integers(site, shape, groups)
    else:
        weight = site.real_weight(WeightRequest("weight", shape, math.prod(shape[1:])), outputs)
        bias = site.required_buffer(WeightRequest("bias", (outputs,))).real() if has_bias else None
    written = _convolve_1d if axes == 1 else _convolve_3d
    return [activated(site, written(site, Filters(weight, bias, groups, FUSED[code]), spans), code)]


def _from_integers(site: Site, shape: tuple[int, ...], groups: int) -> tuple[Array, Array | None]:
    """The weight and bias of a quantised layer as real numbers.

    The file's scales apply to the accumulator, so they include those of the input.
    """
    outputs, inner, *size = shape
    terms = inner * math.prod(size)
    buffer = site.integer_weight(shape, terms)
    sums = site.channel_scales(outputs, terms) * np.ones(outputs, np.float32)
    found, _ = site.graph.scales(site.blob(0))
    if len(found) not in (1, groups * inner):
        raise ModelError(f"its input has {len(found)} scales for {groups * inner} channels")
    given = np.repeat((found * np.ones(groups * inner, np.float32)).reshape(groups, inner), outputs // groups, 0)
    factors = (sums[:, None] / given).reshape(outputs, inner, *(1,) * len(size))
    bias = site.buffer(WeightRequest("bias", (outputs,), integer=True))
    return buffer.real().reshape(shape) * factors, None if bias is None else bias.real() * sums


@frozen(eq=False)
class Filters(Value):
    """The constants of a convolution, and its activation."""

    weight: Array
    bias: Array | None
    groups: int
    activation: Activation

    def biases(self, site: Site, parts: int = 1) -> list[tuple[int, ...]]:
        """The bias in equal parts, each as a tuple with an operand or empty."""
        if self.bias is None:
            return [()] * parts
        return [(site.graph.constant(part),) for part in np.split(self.bias, parts)]


def _convolve_1d(site: Site, f: Filters, spans: Sequence[Span]) -> int:
    g, (along,) = site.graph, spans
    batch, channels, length = site.shape
    x, padding = pad_input(g, g.nhwc(g.add(Reshape((batch, channels, length, 1)), site.x)), (along, _ONE))
    fields = (padding, along.stride, 1, along.dilation, 1, f.activation)
    wide = f.weight[..., None]
    if f.groups > 1 and wide.shape[1] == 1:
        op: Op = DepthwiseConv2D(*fields)
        filters = wide.transpose(1, 2, 3, 0)
    else:
        op, filters = Conv2D(*fields), wide.transpose(0, 2, 3, 1)
    y = g.nchw(g.add(op, x, g.constant(np.ascontiguousarray(filters)), *f.biases(site)[0]))
    return g.add(Reshape((batch, len(f.weight), along.outputs)), y)


def _convolve_3d(site: Site, f: Filters, spans: Sequence[Span]) -> int:
    """A 3-D convolution, group by group."""
    g = site.graph
    x, padding = pad_input(g, g.transpose(site.x, (0, 2, 3, 4, 1)), tuple(spans))
    deep, down, across = spans
    strides = deep.stride, down.stride, across.stride
    op = Conv3D(padding, *strides, deep.dilation, down.dilation, across.dilation, f.activation)
    xs = [x]
    if f.groups > 1:
        sizes = g.integers((f.weight.shape[1],) * f.groups)
        xs = list(g.add_many(SplitV(f.groups), x, sizes, g.integers([4])))
    weights = [np.ascontiguousarray(w.transpose(2, 3, 4, 1, 0)) for w in np.split(f.weight, f.groups)]
    parts = [
        g.add(op, one, g.constant(w), *bias) for one, w, bias in zip(xs, weights, f.biases(site, f.groups), strict=True)
    ]
    return g.transpose(parts[0] if len(parts) == 1 else g.add(Concat(4), *parts), (0, 4, 1, 2, 3))


def _pool_1d(site: Site) -> Sequence[int]:
    g = site.graph
    channels, length = _sides(site, site.x, 1)
    kind = site.integer("type", None, MAX, AVERAGE)
    (size,), (stride,), (pad,) = (_numbers(site, what, 1, low) for what, low in _POOL)
    site.integer("kernel index", -1, -1, 2)
    index = site.integer("kernel index", -1, -1, 2)
    pad_type, ceil = site.integer("padding type", EXPLICIT), site.flag("ceil mode", 0)
    whole = site.shape[index] if index != -1 else size or length
    over = pool_span(length, whole, stride, pad, pad_type, ceil=ceil)
    batch = site.shape[0]
    y = windows(site, g.add(Reshape((batch, channels, length, 1)), site.x), kind, (over, _ONE))
    return [g.add(Reshape((batch, channels, over.outputs)), y)]


_POOL = (("kernel", 0), ("stride", 1), ("padding", 0))


def _pool_3d(site: Site) -> Sequence[int]:
    """3-D pooling, with parameters in the order width, height, depth: first over planes, then over depth."""
    g = site.graph
    channels, *sides = _sides(site, site.x, 3)
    shape = site.shape
    kind = site.integer("type", None, MAX, AVERAGE)
    size, stride, pad = (_numbers(site, what, 3, low)[::-1] for what, low in _POOL)
    indices = [site.integer("kernel index", -1, -1, 4) for _ in range(3)][::-1]
    indices = [index if index != -1 else indices[0] for index in indices]
    pad_type, ceil = site.integer("padding type", EXPLICIT), site.flag("ceil mode", 0)
    spans = []
    for axis, inputs in enumerate(sides):
        whole = size[axis] or inputs if indices[axis] == -1 else shape[indices[axis]]
        spans.append(_box_side(inputs, whole, stride[axis], stride[1], pad[axis], pad_type, ceil=ceil))
    deep, down, across = spans
    batch, depth = shape[0], sides[0]
    x = g.add(Reshape((batch, channels * depth, *sides[1:])), site.x)
    planes = windows(site, x, kind, (down, across))
    rows = g.add(Reshape((batch, channels, depth, down.outputs * across.outputs)), planes)
    flat = Span(down.outputs * across.outputs, down.outputs * across.outputs, 1, 1, 1, 0)
    found = windows(site, rows, kind, (deep, flat))
    return [g.add(Reshape((batch, channels, deep.outputs, down.outputs, across.outputs)), found)]


def _box_side(inputs: int, size: int, stride: int, down: int, pad: int, kind: int, *, ceil: bool) -> Span:
    """Like `pool_span`, but SAME may round down, and the padding in front depends on `down`, the height's stride."""
    if kind not in (SAME, VALID):
        return pool_span(inputs, size, stride, pad, kind, ceil=ceil)
    room = inputs - size + 1 if kind == VALID else inputs
    outputs = -(-room // stride) if ceil or kind == VALID else room // stride
    total = (outputs - 1) * stride + size - inputs
    return require_windows(Span(inputs, outputs, size, stride, 1, -(-total // down)))


LAYERS: dict[str, Writer] = {
    "Convolution1D": partial(_convolution, 1),
    "Convolution3D": partial(_convolution, 3),
    "Pooling1D": _pool_1d,
    "Pooling3D": _pool_3d,
}
