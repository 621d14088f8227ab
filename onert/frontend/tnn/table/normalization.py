"""Layers that scale elements per channel or by their own statistics.

Source: TNN's batch_norm, scale, instance_norm, layer_norm, group_norm and lrn layer interpreters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.site import Site
from onert.ir import ModelError
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.norm import LocalResponseNormalization
from onert.ir.ops.reduction.reduce import Reduce, Reduction

_INSTANCE_EPSILON = 1e-5


def _scaled(site: Site, x: int, *, always_bias: bool = True) -> int:
    """`x * scale + bias`, each with one number in total or one per channel."""
    g = site.graph
    shape = g.shape(x)
    if len(shape) < 2:
        raise ModelError(f"its input has the shape {list(shape)}, expected at least 2 dimensions")
    for part, kind in (("scale", BinaryKind.MUL), ("bias", BinaryKind.ADD)):
        found = g.weights.buffer(site.layer, WeightRequest(part, (shape[1],)))
        if found is None:
            if part == "bias":
                continue
            raise ModelError("it has no scale")
        if found.count not in (1, shape[1]):
            raise ModelError(f"its {part} has {found.count} elements, expected 1 or {shape[1]}")
        if part == "scale" or always_bias:
            x = g.binary(kind, x, found.real().reshape(-1, *(1,) * (len(shape) - 2)))
    return x


def _batch_statistics(site: Site) -> Sequence[int]:
    """`(x - mean) / sqrt(variance + epsilon)`, with mean and variance stored multiplied by a factor."""
    g = site.graph
    shape = site.shape
    if len(shape) < 2:
        raise ModelError(f"its input has the shape {list(shape)}, expected at least 2 dimensions")
    parts = (("mean", shape[1]), ("variance", shape[1]), ("factor", 1))
    mean, variance, factor = (site.required_buffer(WeightRequest(part, (count,))).real() for part, count in parts)
    if not factor.all() or (variance / factor < 0).any():
        raise ModelError("the factor of its statistics is 0, or a variance is below 0")
    by = 1 / np.sqrt(variance / factor + np.float32(_INSTANCE_EPSILON))
    across = (-1, *(1,) * (len(shape) - 2))
    y = g.binary(BinaryKind.MUL, site.x, by.reshape(across))
    return [g.binary(BinaryKind.ADD, y, (-mean * by / factor).reshape(across))]


def _bias(site: Site) -> Sequence[int]:
    """Add one number per channel."""
    g = site.graph
    shape = site.shape
    channels = shape[1] if len(shape) > 1 else 1
    bias = site.required_buffer(WeightRequest("bias", (channels,))).real()
    return [g.binary(BinaryKind.ADD, site.x, bias.reshape(-1, *(1,) * max(0, len(shape) - 2)))]


def _scale(site: Site) -> Sequence[int]:
    axis = site.integer("axis", 1)
    site.integer("number of axes", 1)
    if axis != 1:
        raise ModelError(f"the axis is {axis}, expected 1")
    return [_scaled(site, site.x, always_bias=site.flag("bias", 1))]


def _standardized(site: Site, x: int, axes: Sequence[int], epsilon: float) -> int:
    """`(x - mean) / sqrt(variance + epsilon)` along axes."""
    g = site.graph
    at = g.integers(axes)
    centred = g.binary(BinaryKind.SUB, x, g.add(Reduce(Reduction.MEAN, True), x, at))
    variance = g.add(Reduce(Reduction.MEAN, True), g.add(Unary(UnaryKind.SQUARE), centred), at)
    root = g.add(Unary(UnaryKind.SQRT), g.binary(BinaryKind.ADD, variance, epsilon))
    return g.binary(BinaryKind.DIV, centred, root)


def _instance_norm(site: Site) -> Sequence[int]:
    rank = len(site.shape)
    return [_scaled(site, _standardized(site, site.x, range(2, rank), _INSTANCE_EPSILON))]


def _layer_norm(site: Site) -> Sequence[int]:
    """Normalise over the last dimensions; scale and bias are blobs of their shape."""
    g = site.graph
    rank = len(site.shape)
    count = site.integer("number of dimensions", 1, 1, rank)
    y = _standardized(site, site.x, range(rank - count, rank), site.number("epsilon", 1e-5))
    y = g.binary(BinaryKind.MUL, y, site.input(1))
    return [g.binary(BinaryKind.ADD, y, site.input(2))]


def _group_norm(site: Site) -> Sequence[int]:
    """Normalise over groups of channels; scale and bias are blobs with one number per channel."""
    g = site.graph
    shape = site.shape
    groups, epsilon = site.integer("groups", None, 1), site.number("epsilon", 1e-5)
    if len(shape) < 2 or shape[1] % groups:
        raise ModelError(f"the channels of {list(shape)} are not divisible into {groups} groups")
    x = g.add(Reshape((shape[0], groups, shape[1] // groups, *shape[2:])), site.x)
    y = g.add(Reshape(shape), _standardized(site, x, range(2, len(shape) + 1), epsilon))
    across = (shape[1], *(1,) * (len(shape) - 2))
    y = g.binary(BinaryKind.MUL, y, g.add(Reshape(across), site.input(1)))
    return [g.binary(BinaryKind.ADD, y, g.add(Reshape(across), site.input(2)))]


def _lrn(site: Site) -> Sequence[int]:
    """`x / (bias + alpha / size * s)**beta`, where s is the sum of squares over the `size` neighbouring channels."""
    g = site.graph
    alpha, beta, bias = (site.number(what) for what in ("alpha", "beta", "bias"))
    size = site.integer("size", None, 1, 1 << 16)
    op = LocalResponseNormalization((size - 1) // 2, bias, alpha / size, beta)
    if size % 2 == 0:
        raise ModelError(f"the size is {size}, expected an odd number")
    return [g.nchw(g.add(op, g.nhwc(site.x)))]


LAYERS = {
    "BatchNorm": _batch_statistics,
    "BiasAdd": _bias,
    "BatchNormCxx": lambda site: [_scaled(site, site.x)],
    "Scale": _scale,
    "InstBatchNormCxx": _instance_norm,
    "LayerNorm": _layer_norm,
    "GroupNorm": _group_norm,
    "LRN": _lrn,
}
