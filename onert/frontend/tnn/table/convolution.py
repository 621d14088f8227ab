"""Convolutions and deconvolutions.

Filters are stored [outputs, inputs / groups, height, width]; those of deconvolutions [groups, inputs / groups,
outputs / groups, height, width]. Source: TNN's conv_layer_interpreter.cc, naive_compute.cc, cpu_conv_layer_acc.cc and
cpu_deconv_layer_acc.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.site import Site
from onert.ir import Array, ModelError, Op, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding, Window
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.value import Value

from .spans import EXPLICIT, LARGEST, SAME, VALID, Span, conv_span, pad_input, truncated_half

_FULL, _SAME_WITH_OUTPUT_PADDING = 2, 3
_SIGMOID_MUL = 256
FUSED = {0: Activation.NONE, 1: Activation.RELU, 2: Activation.RELU6, _SIGMOID_MUL: Activation.NONE}


@frozen
class Parameters(Value):
    """The parameters of a convolution; pairs are (height, width)."""

    groups: int
    channels: int
    outputs: int
    size: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    bias: bool
    pad_type: int
    dilation: tuple[int, int]
    activation: int


def _parameters(site: Site, channels: int) -> Parameters:
    def pair(what: str, low: int, default: int | None = None) -> tuple[int, int]:
        first = site.integer(f"{what} height", default, low, LARGEST)
        return first, site.integer(f"{what} width", default, low, LARGEST)

    groups, inputs, outputs = (site.integer(what, None, 0, LARGEST) for what in ("groups", "inputs", "outputs"))
    p = Parameters(
        groups,
        inputs,
        outputs,
        pair("kernel", 1),
        pair("stride", 1),
        pair("padding", 0),
        site.flag("bias"),
        site.integer("padding type", None),
        pair("dilation", 1, 1),
        site.integer("activation", 0),
    )
    check_parameters(groups, channels, outputs, p.activation)
    return p


def check_parameters(groups: int, channels: int, outputs: int, activation: int) -> None:
    """Raise ModelError unless these parameters are valid."""
    if activation not in FUSED:
        raise ModelError(f"the activation is {activation}, expected one of {', '.join(map(str, FUSED))}")
    if not groups or not outputs or channels % groups or outputs % groups:
        raise ModelError(f"{channels} channels and {outputs} outputs are not divisible into {groups} groups")


def _spans(p: Parameters, height: int, width: int) -> tuple[Span, Span]:
    sides = zip((height, width), p.size, p.stride, p.dilation, p.pad, strict=True)
    down, across = (
        conv_span(inputs, size, stride, dilation, (pad, pad), p.pad_type)
        for inputs, size, stride, dilation, pad in sides
    )
    return down, across


def _kernel(weight: Array, p: Parameters, padding: Padding, activation: Activation) -> tuple[Op, Array]:
    """The operation, and the filter [outputs, inputs / groups, height, width] in the layout that it requires."""
    fields = (padding, *p.stride, *p.dilation, activation)
    if p.groups > 1 and weight.shape[1] == 1:
        return DepthwiseConv2D(*fields), weight.transpose(1, 2, 3, 0)
    return Conv2D(*fields), weight.transpose(0, 2, 3, 1)


def activated(site: Site, x: int, code: int) -> int:
    """Apply an activation that no operation can fuse."""
    g = site.graph
    if code == _SIGMOID_MUL:
        return g.binary(BinaryKind.MUL, x, g.add(Unary(UnaryKind.LOGISTIC), x))
    return x


def _convolution(site: Site) -> Sequence[int]:
    g = site.graph
    _, channels, height, width = g.shape(site.x, 4)
    p = _parameters(site, channels)
    shape = (p.outputs, channels // p.groups, *p.size)
    terms = shape[1] * shape[2] * shape[3]
    weight = site.real_weight(WeightRequest("weight", shape, terms), p.outputs)
    x, padding = pad_input(g, g.nhwc(site.x), _spans(p, height, width))
    op, filters = _kernel(weight, p, padding, FUSED[p.activation])
    y = g.add(op, x, g.constant(np.ascontiguousarray(filters)), *_bias(site, p))
    return [activated(site, g.nchw(y), p.activation)]


def _bias(site: Site, p: Parameters) -> tuple[int, ...]:
    if not p.bias:
        return ()
    return (site.graph.constant(site.required_buffer(WeightRequest("bias", (p.outputs,))).real()),)


def _quantized_convolution(site: Site) -> Sequence[int]:
    """An integer convolution. The weight's scales in the file are those of the accumulator."""
    g = site.graph
    x = g.quantized(site.blob(0))
    _, channels, height, width = g.shape(x, 4)
    p = _parameters(site, channels)
    if p.activation == _SIGMOID_MUL:
        raise ModelError("the activation is 256, which quantised convolutions do not support")
    shape = (p.outputs, channels // p.groups, *p.size)
    terms = shape[1] * shape[2] * shape[3]
    buffer = site.integer_weight(shape, terms)
    blob = site.layer.outputs[0]
    scales, _ = g.scales(blob)
    whole = len(scales) == 1
    quantized = product_scales(site, x, p.outputs, terms)
    padded, padding = pad_input(g, g.nhwc(x), _spans(p, height, width))
    fused = FUSED[p.activation] if whole or p.activation == 1 else Activation.NONE
    op, filters = _kernel(buffer.array().reshape(shape), p, padding, fused)
    axis = 3 if isinstance(op, DepthwiseConv2D) else 0
    weight = g.constant(np.ascontiguousarray(filters), Quantization(quantized, (0,) * p.outputs, axis))
    y = g.add(op, padded, weight, *integer_bias(site, p.outputs), quantization=g.quantization(blob))
    y = g.nchw(y)
    if p.activation == 2 and not whole:  # the integer for 6 differs per channel
        y = _clamp_activation(site, y, scales)
    return [y]


def _clamp_activation(site: Site, y: int, scales: Array) -> int:
    g = site.graph
    quantization = g.type(y).quantization
    zero = 0 if quantization is None else quantization.zero_point
    top = np.clip(np.floor(6 / scales + 0.5) + zero, -128, 127).astype(np.int8).reshape(1, -1, 1, 1)
    for kind, bound in ((BinaryKind.MINIMUM, top), (BinaryKind.MAXIMUM, np.full((1, 1, 1, 1), zero, np.int8))):
        y = g.clamp(kind, y, g.constant(bound, quantization))
    return y


def product_scales(site: Site, x: int, outputs: int, terms: int) -> tuple[float, ...]:
    """Weight scales such that, with the declared input and output scales, the accumulator has the file's scales."""
    g = site.graph
    sums = site.channel_scales(outputs, terms) * np.ones(outputs, np.float32)
    scales, _ = g.scales(site.layer.outputs[0])
    if len(scales) not in (1, outputs):
        raise ModelError(f"blob '{site.layer.outputs[0]}' has {len(scales)} scales for {outputs} channels")
    apart = scales if len(scales) > 1 else np.ones(1)
    quantization = g.type(x).quantization
    given = 1.0 if quantization is None else quantization.scale
    return tuple((sums.astype(np.float64) / apart / given).tolist())


def integer_bias(site: Site, outputs: int) -> tuple[int, ...]:
    found = site.buffer(WeightRequest("bias", (outputs,), integer=True))
    if found is None:
        return ()
    return (site.graph.constant(found.array().astype(np.int32, copy=False)),)


def _deconvolution_size(p: Parameters, inputs: int, axis: int) -> tuple[int, int]:
    """The output size of a deconvolution along an axis, and its padding in front."""
    stride, extent = p.stride[axis], (p.size[axis] - 1) * p.dilation[axis] + 1
    full = stride * (inputs - 1) + extent
    if p.pad_type == EXPLICIT:
        return full - 2 * p.pad[axis], p.pad[axis]
    if p.pad_type in (SAME, _SAME_WITH_OUTPUT_PADDING):
        outputs = inputs * stride
    elif p.pad_type == VALID:
        outputs = inputs * stride + max(extent - stride, 0)
    elif p.pad_type == _FULL:
        outputs = inputs * stride - (stride + extent - 2)
    else:
        raise ModelError(f"the padding type is {p.pad_type}, expected -1 to 3")
    if p.pad_type == _SAME_WITH_OUTPUT_PADDING:
        total = max(full - outputs, 0)
        return outputs, total - truncated_half(total)
    return outputs, truncated_half(full - outputs)


def _deconvolution(site: Site) -> Sequence[int]:
    g = site.graph
    batch, channels, height, width = g.shape(site.x, 4)
    p = _parameters(site, channels)
    inner, outer = channels // p.groups, p.outputs // p.groups
    shape = (p.groups, inner, outer, *p.size)
    terms = max(1, inner * p.size[0] * p.size[1] // (p.stride[0] * p.stride[1]))
    weight = site.real_weight(WeightRequest("weight", shape, terms), channels)
    rows, columns = _deconvolution_size(p, height, 0), _deconvolution_size(p, width, 1)
    if min(rows[0], columns[0]) < 1:
        raise ModelError(f"it has {rows[0]} by {columns[0]} outputs, expected at least 1 by 1")
    x = g.nhwc(site.x)
    bias = _bias(site, p)
    if p.groups == 1 and p.dilation == (1, 1):
        padding = _transposed_padding(p, ((height, *rows), (width, *columns)))
        if padding is not None:
            op = TransposeConv2D(padding, *p.stride, FUSED[p.activation])
            filters = g.constant(np.ascontiguousarray(weight[0].transpose(1, 2, 3, 0)))
            y = g.add(op, g.integers((batch, rows[0], columns[0], p.outputs)), filters, x, *bias)
            return [activated(site, g.nchw(y), p.activation)]
    y = _scatter_deconvolution(site, p, x, weight, (rows, columns), bias)
    return [activated(site, g.nchw(y), p.activation)]


def _transposed_padding(p: Parameters, axes: tuple[tuple[int, int, int], ...]) -> Padding | None:
    """The padding for which the forward convolution has these windows, if there is one."""
    for padding in (Padding.VALID, Padding.SAME):
        windows = [Window(size, stride, 1, padding) for size, stride in zip(p.size, p.stride, strict=True)]
        if all(
            (padding is Padding.SAME or outputs >= window.extent)
            and window.outputs(outputs) == inputs
            and (window.before(outputs) if padding is Padding.SAME else 0) == before
            for window, (inputs, outputs, before) in zip(windows, axes, strict=True)
        ):
            return padding
    return None


def _scatter_deconvolution(
    site: Site, p: Parameters, x: int, weight: Array, axes: tuple[tuple[int, int], ...], bias: tuple[int, ...]
) -> int:
    """A deconvolution as a convolution with flipped filters over inputs that are interleaved with zeros."""
    g = site.graph
    batch, height, width, channels = g.shape(x)
    if p.stride != (1, 1):
        x = g.add(Reshape((batch, height, 1, width, 1, channels)), x)
        margins = [(0, 0), (0, 0), (0, p.stride[0] - 1), (0, 0), (0, p.stride[1] - 1), (0, 0)]
        x = g.add(Pad(), x, g.constant(np.array(margins, np.int32)))
        x = g.add(Reshape((batch, height * p.stride[0], width * p.stride[1], channels)), x)
    spans = tuple(
        Span(inputs, outputs, size, 1, dilation, (size - 1) * dilation - before)
        for inputs, (outputs, before), size, dilation in zip(g.shape(x)[1:3], axes, p.size, p.dilation, strict=True)
    )
    x, padding = pad_input(g, x, (spans[0], spans[1]))
    inner = weight.shape[1]
    turned = weight[..., ::-1, ::-1].transpose(0, 2, 1, 3, 4).reshape(p.outputs, inner, *p.size)
    plain = Parameters(p.groups, channels, p.outputs, p.size, (1, 1), (0, 0), p.bias, VALID, p.dilation, p.activation)
    op, filters = _kernel(turned, plain, padding, FUSED[p.activation])
    return g.add(op, x, g.constant(np.ascontiguousarray(filters)), *bias)


LAYERS = {"Convolution": _convolution, "Deconvolution": _deconvolution}
QUANTIZED = {"Convolution": _quantized_convolution}
