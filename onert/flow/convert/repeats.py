"""Conversion of padding, tiling and leaky activations to operations of flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from onert.flow.builder.parts import padded
from onert.flow.graph import Variable
from onert.ir import DType, Op, RuleError
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.slicing import Pad, Tile
from onert.ir.ops.elementwise.binary import PRelu
from onert.ir.ops.elementwise.convert import Dequantize
from onert.ir.ops.elementwise.unary import LeakyRelu

from .translations import Given, Rule


def _pad(g: Given, op: Pad) -> Sequence[Variable]:
    """Pad by concatenating constants to the tensor, axis by axis."""
    x, element = g[0], g.elements(2).reshape(-1)[0] if g.has(2) else 0
    for axis, (before, after) in enumerate(g.elements(1).reshape(-1, 2).tolist()):
        if before < 0 or after < 0:
            raise RuleError(f"padding of {before} and {after}")
        if (before or after) and -1 in (*x.shape[:axis], *x.shape[axis + 1 :]):
            raise RuleError("padding of a tensor with another open size")
        x = padded(g.f, x, axis, before, after, element)
    return (x if x is not g[0] else g.f.identity(x),)


def _tile(g: Given, op: Tile) -> Sequence[Variable]:
    """The tensor concatenated to itself, axis by axis."""
    x, times = g[0], g.elements(1).reshape(-1).tolist()
    if 0 in times:
        return (g.f.const(np.zeros(g.shape, g.types.output.dtype.numpy)),)
    for axis, count in enumerate(times):
        x = g.f.concat([x] * count, axis=axis) if count > 1 else x
    return (x if x is not g[0] else g.f.identity(x),)


def _scaled_below_zero(g: Given, slope: Variable | float) -> Sequence[Variable]:
    """`x` if it is at least 0, else `x · slope`."""
    x = g[0]
    return (g.f.cond(g.f.less(x, 0.0), g.f.mul(x, slope), x),)


def _dequantize(g: Given, op: Dequantize) -> Sequence[Variable]:
    """From float16, which has no scale: a constant becomes one of the result's type."""
    given = g.types.input(0)
    if given.dtype is not DType.FLOAT16:
        raise RuleError(op.label)
    if given.value is not None:
        return (g.f.const(given.value.astype(g.types.output.dtype.numpy)),)
    return (g.add("Cast", g[0]),)


RULES: Mapping[type[Op], Rule] = {
    Dequantize: _dequantize,
    Fill: lambda g, op: (g.f.broadcast(g.f.reshape(g[1], [1] * len(g.shape)), g.shape),),
    LeakyRelu: lambda g, op: _scaled_below_zero(g, op.alpha),
    PRelu: lambda g, op: _scaled_below_zero(g, g[1]),
    Pad: _pad,
    Tile: _tile,
}
"""Further conversions to operations of flows."""
