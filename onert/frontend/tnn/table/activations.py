"""Elementwise functions of one input.

Source: TNN's layer_interpreter/*.cc and device/cpu/acc/*.cc; formulas that would overflow are replaced by equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.graph import Graph
from onert.frontend.tnn.site import Site, Writer
from onert.ir import ModelError
from onert.ir.ops.data_movement.joining import SplitV
from onert.ir.ops.elementwise.binary import BinaryKind, PRelu
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind, unary_kinds

_MOST = float(np.finfo(np.float32).max)
_SELU_ALPHA, _SELU_GAMMA = 1.6732632, 1.0507010


def _unary(kind: UnaryKind) -> Writer:
    return lambda site: [site.graph.add(Unary(kind), site.x)]


def _formula(write: Callable[[Graph, int], int]) -> Writer:
    """A function composed of several operations."""
    return lambda site: [write(site.graph, site.x)]


def _one(g: Graph, kind: UnaryKind, x: int) -> int:
    return g.add(Unary(kind), x)


def _softplus(g: Graph, x: int) -> int:
    """max(x, 0) + log(1 + exp(-|x|))"""
    tail = _one(g, UnaryKind.EXP, _one(g, UnaryKind.NEG, _one(g, UnaryKind.ABS, x)))
    tail = _one(g, UnaryKind.LOG, g.binary(BinaryKind.ADD, tail, 1.0))
    return g.binary(BinaryKind.ADD, _one(g, UnaryKind.RELU, x), tail)


def _softsign(g: Graph, x: int) -> int:
    return g.binary(BinaryKind.DIV, x, g.binary(BinaryKind.ADD, _one(g, UnaryKind.ABS, x), 1.0))


def _reciprocal(g: Graph, x: int) -> int:
    ones = g.constant(np.ones((), np.float32))
    return g.binary(BinaryKind.DIV, ones, x)


def _other_leg(g: Graph, x: int) -> int:
    """sqrt(1 - x * x)"""
    ones = g.constant(np.ones((), np.float32))
    return _one(g, UnaryKind.SQRT, g.binary(BinaryKind.SUB, ones, _one(g, UnaryKind.SQUARE, x)))


def _clipped(g: Graph, x: int, low: float, high: float) -> int:
    return g.binary(BinaryKind.MINIMUM, g.binary(BinaryKind.MAXIMUM, x, low), high)


def _clip(site: Site) -> Sequence[int]:
    low, high = site.number("minimum", -_MOST), site.number("maximum", _MOST)
    return [_clipped(site.graph, site.x, low, high)]


def _sloped(site: Site) -> tuple[float, float]:
    return site.number("alpha"), site.number("beta")


def _hard(site: Site, x: int, alpha: float, beta: float) -> int:
    """x * alpha + beta, clipped to 0 and 1."""
    g = site.graph
    return _clipped(g, g.binary(BinaryKind.ADD, g.binary(BinaryKind.MUL, x, alpha), beta), 0.0, 1.0)


def _exponential(site: Site, alpha: float) -> int:
    """max(x, 0) + alpha * (exp(min(x, 0)) - 1)"""
    g = site.graph
    below = _one(g, UnaryKind.EXP, g.binary(BinaryKind.MINIMUM, site.x, 0.0))
    below = g.binary(BinaryKind.MUL, g.binary(BinaryKind.SUB, below, 1.0), alpha)
    return g.binary(BinaryKind.ADD, _one(g, UnaryKind.RELU, site.x), below)


def _elu(site: Site) -> Sequence[int]:
    alpha = site.number("alpha", 1.0)
    return _unary(UnaryKind.ELU)(site) if alpha == 1 else [_exponential(site, alpha)]


def _selu(site: Site) -> Sequence[int]:
    alpha, gamma = site.number("alpha", _SELU_ALPHA), site.number("gamma", _SELU_GAMMA)
    return [site.graph.binary(BinaryKind.MUL, _exponential(site, alpha), gamma)]


def _power(site: Site) -> Sequence[int]:
    """(scale * x + shift) ** exponent"""
    g = site.graph
    exponent, scale, shift = (site.number(what, default) for what, default in _POWER)
    inner = g.binary(BinaryKind.ADD, g.binary(BinaryKind.MUL, site.x, scale), shift)
    return [g.binary(BinaryKind.POW, inner, exponent)]


_POWER = (("exponent", 1.0), ("scale", 1.0), ("shift", 0.0))


def _prelu(site: Site) -> Sequence[int]:
    """PReLU with one slope in total or one per channel."""
    g = site.graph
    shape = site.shape
    channels = shape[1] if len(shape) > 1 else 1
    request = WeightRequest("slope", (1 if site.flag("shared", 0) else channels,))
    found = g.weights.buffer(site.layer, request)
    if found is not None and found.count in (1, channels):
        request = WeightRequest("slope", (found.count,))
    slope = site.required_buffer(request).real()
    if len(slope) == 1 and 0 <= slope[0] <= 1:
        return [g.add(LeakyRelu(float(slope[0])), site.x)]
    return [g.add(PRelu(), site.x, g.constant(slope.reshape(-1, *(1,) * (len(shape) - 2)) if channels > 1 else slope))]


def _gated(site: Site) -> Sequence[int]:
    """The first half along an axis multiplied by the sigmoid of the second."""
    g = site.graph
    shape = site.shape
    axis = site.axis("axis", len(shape), -1)
    if shape[axis] % 2:
        raise ModelError(f"axis {axis} of {list(shape)} cannot be split into halves")
    x, y = g.add_many(SplitV(2), site.x, g.integers((shape[axis] // 2,) * 2), g.integers([axis]))
    return [g.binary(BinaryKind.MUL, x, _one(g, UnaryKind.LOGISTIC, y))]


def _identity(site: Site) -> Sequence[int]:
    return [site.x] * len(site.layer.outputs)


def _quantized_relu(site: Site) -> Sequence[int]:
    """ReLU of stored integers; input and output have the same scale."""
    g = site.graph
    x = g.quantized(site.blob(0))
    return [g.move(Unary(UnaryKind.RELU), x)]


_UNARY = unary_kinds("ReLU ReLU6 Tanh Abs Neg Square Sqrt Rsqrt Exp Log Sin Cos Sign Floor Ceil Erf GELU")
LAYERS: dict[str, Writer] = {
    **{name: _unary(kind) for name, kind in _UNARY.items()},
    "Sigmoid": _unary(UnaryKind.LOGISTIC),
    "Tan": _formula(lambda g, x: g.binary(BinaryKind.DIV, _one(g, UnaryKind.SIN, x), _one(g, UnaryKind.COS, x))),
    "Asin": _formula(lambda g, x: g.binary(BinaryKind.ATAN2, x, _other_leg(g, x))),
    "Acos": _formula(lambda g, x: g.binary(BinaryKind.ATAN2, _other_leg(g, x), x)),
    "Atan": _formula(lambda g, x: g.binary(BinaryKind.ATAN2, x, 1.0)),
    "Softplus": _formula(_softplus),
    "Softsign": _formula(_softsign),
    "LogSigmoid": _formula(lambda g, x: _one(g, UnaryKind.NEG, _softplus(g, _one(g, UnaryKind.NEG, x)))),
    "Reciprocal": _formula(_reciprocal),
    "Clip": _clip,
    "HardSigmoid": lambda site: [_hard(site, site.x, *_sloped(site))],
    "HardSwish": lambda site: [site.graph.binary(BinaryKind.MUL, site.x, _hard(site, site.inputs[-1], *_sloped(site)))],
    "Elu": _elu,
    "Selu": _selu,
    "LeakyRelu": lambda site: [site.graph.add(LeakyRelu(site.number("alpha", 0.01)), site.x)],
    "Power": _power,
    "PReLU": _prelu,
    "GLU": _gated,
    "Identity": _identity,
    "Split": _identity,
}
QUANTIZED = {"ReLU": _quantized_relu}
