"""Normalisations as reductions and element-wise operations, in float32 or float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.convert import Bitcast
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.norm import BatchNorm, InstanceNorm, L2Normalization, LocalResponseNormalization, RmsNorm
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax

from .decomposition import Decomposition, only_floats
from .draft import Draft

_SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)


def _why_not(op: BatchNorm | InstanceNorm | RmsNorm, types: CallTypes) -> str | None:
    if 0 < op.epsilon < _SMALLEST_NORMAL:
        return f"epsilon is {op.epsilon}, below the smallest normal float32"
    return only_floats(op, types)


def _scaled(d: Draft, x: int, variance: int, epsilon: float) -> int:
    """`x / sqrt(variance + epsilon)`."""
    return d.product(x, d.unary(UnaryKind.RSQRT, d.sum(variance, d.like(x, epsilon))))


def _batch_norm(d: Draft, op: BatchNorm, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Add(Mul(Sub(x, mean), factor), offset); the factor is constant if scale and variance are"""
    x, scale, offset, mean, variance = operands
    centred = d.difference(x, mean)
    known = [d.type(i).value for i in (scale, variance)]
    if known[0] is not None and known[1] is not None:
        with np.errstate(all="ignore"):
            factor = known[0] / np.sqrt(known[1].astype(np.float64) + op.epsilon)
            narrow = factor.astype(known[0].dtype)
        if np.array_equal(np.isfinite(factor), np.isfinite(narrow)):
            return [d.sum(d.product(centred, d.constant(narrow)), offset)]
    return [d.sum(d.product(_scaled(d, centred, variance, op.epsilon), scale), offset)]


def _instance_norm(d: Draft, op: InstanceNorm, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Add(Mul(Mul(Sub(x, mean), Rsqrt(variance)), gamma), beta)

    The mean sums scaled elements, so it overflows only if the mean itself does. Squares above 1e38 are infinite.
    """
    x, gamma, beta = operands
    shape = d.shape(x)
    axes = (1, 2) if len(shape) == 4 else (2,)
    reciprocal = d.binary(BinaryKind.DIV, d.like(x, 1), d.like(x, math.prod(shape[axis] for axis in axes)))
    mean = d.reduced(Reduction.SUM, d.product(x, reciprocal), axes, keep_dims=True)
    centred = d.difference(x, mean)
    variance = d.reduced(Reduction.MEAN, d.unary(UnaryKind.SQUARE, centred), axes, keep_dims=True)
    if len(shape) == 3:
        gamma, beta = (d.reshaped(i, math.prod(d.shape(i)), 1) for i in (gamma, beta))
    out = d.product(_scaled(d, centred, variance, op.epsilon), gamma)
    return [d.activated(out, beta, op.activation)]


def _why_no_broadcast(op: RmsNorm, types: CallTypes) -> str | None:
    channels = types.output.shape[-1:]
    if all(t is None or t.shape == channels for t in types.inputs[1:]):
        return "its factors already have the length of the last axis"
    return only_floats(op, types)


def _broadcast_factors(d: Draft, op: RmsNorm, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """RmsNorm(x, BroadcastTo(gamma), BroadcastTo(beta))"""
    x, *factors = operands
    assert x is not None
    size = d.shape(x)[-1:]
    wide = [None if i is None else d.broadcast(d.reshaped(i, *(d.shape(i) or (1,))), size) for i in factors]
    return [d.add(op, x, *wide)]


def _rms_norm(d: Draft, op: RmsNorm, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """Add(Mul(Mul(x, Rsqrt(Mean(Mul(x, x)))), gamma), beta)"""
    x, gamma, beta = [*operands, None, None][:3]
    assert x is not None
    last = len(d.shape(x)) - 1
    squares = d.reduced(Reduction.MEAN, d.unary(UnaryKind.SQUARE, x), (last,), keep_dims=True)
    out = _scaled(d, x, squares, op.epsilon)
    out = out if gamma is None else d.product(out, gamma)
    return [out if beta is None else d.sum(out, beta)]


def _why_not_activated(op: L2Normalization, types: CallTypes) -> str | None:
    if op.activation is Activation.NONE or op.activation.value.function is not None:
        return "it has no activation that is a clamp"
    return only_floats(op, types)


def _activated(d: Draft, op: L2Normalization, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Add(L2Normalization(x), 0), followed by the activation"""
    return [d.activated(d.add(evolve(op, activation=Activation.NONE), operands[0]), None, op.activation)]


def _l2_normalization(d: Draft, op: L2Normalization, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Div(x, Maximum(Sqrt(Sum(Mul(x, x))), 1e-6)), followed by the activation"""
    (x,) = operands
    squares = d.reduced(Reduction.SUM, d.product(x, x), (len(d.shape(x)) - 1,), keep_dims=True)
    length = d.binary(BinaryKind.MAXIMUM, d.unary(UnaryKind.SQRT, squares), d.like(x, 1e-6))
    return [d.bounded(d.binary(BinaryKind.DIV, x, length), op.activation)]


def _why_no_l2_normalization(op: L2Normalization, types: CallTypes) -> str | None:
    return "its activation is SIGN_BIT" if op.activation is Activation.SIGN_BIT else only_floats(op, types)


# ---- unit vectors of bytes

_MOST_SQUARES = ((1 << 29) - 1) // (255 * 255)
"""How many squares of bytes less their zero point have a sum that TFLite does not halve before it takes the root."""

_ONE_HALF_ROOT, _THREE_HALVES = 1518500250, (1 << 28) + (1 << 27)
_LIMITS = -(1 << 31), (1 << 31) - 1


def _why_no_bytes(op: L2Normalization, types: CallTypes) -> str | None:
    x = types.input(0)
    if x.dtype not in (DType.INT8, DType.UINT8):
        return "only vectors of bytes have a norm in fixed point"
    if not op.is_in_fixed_point(types) or x.quantization is None or not x.quantization.per_tensor:
        return "its result has no fixed point, or a tensor has several scales"
    if 0 in x.shape or (x.shape[-1] or 0) > _MOST_SQUARES:
        return f"its vectors have {x.shape[-1]} elements, expected 1 to {_MOST_SQUARES}"
    return None


def _unit_bytes(d: Draft, op: L2Normalization, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """The integers of `L2Normalization.evaluate_quantized`, step by step in int64"""
    x, out = types.input(0), types.output
    stored = _Wide(d, d.cast(d.add(Bitcast(x.dtype), operands[0]), DType.INT64))
    centred = stored - x.zero_point
    total = _Wide(d, d.reduced(Reduction.SUM, (centred * centred).operand, (len(d.shape(operands[0])) - 1,), True))
    small = d.compared(ComparisonKind.LESS_EQUAL, total.operand, d.like(total.operand, 1))
    mantissa, right = _inverse_root(total.clamped(2, None))
    mantissa, right = (
        _Wide(d, d.chosen(small, d.like(total.operand, known), found.operand))
        for known, found in ((_LIMITS[1], mantissa), (0, right))
    )
    if out.dtype is DType.INT8:  # seven bits of the result are part of the shift
        left, right = (right * -1 + 7).clamped(0, None), (right + -7).clamped(0, None)
        scaled = (centred << left).times(mantissa)
    else:
        scaled = (centred * 128).times(mantissa)
    one = _Wide(d, d.like(right.operand, 1))
    away = (scaled >> 63) * right.clamped(None, 1)  # -1 if it is negative and divided
    whole = ((scaled + ((one << right) >> 1)) + away) >> right
    found = d.cast((whole + out.zero_point).clamped(*out.dtype.limits).operand, out.dtype)
    return [d.add(Bitcast(out.dtype), found, quantization=(out.quantization,))]


@frozen(eq=False)
class _Wide:
    """An operand of int64, with operators that add operations."""

    draft: Draft
    operand: int

    def _with(self, kind: BinaryKind, other: _Wide | int) -> _Wide:
        second = other.operand if isinstance(other, _Wide) else self.draft.like(self.operand, other)
        return _Wide(self.draft, self.draft.binary(kind, self.operand, second))

    def __add__(self, other: _Wide | int) -> _Wide:
        return self._with(BinaryKind.ADD, other)

    def __sub__(self, other: _Wide | int) -> _Wide:
        return self._with(BinaryKind.SUB, other)

    def __mul__(self, other: _Wide | int) -> _Wide:
        return self._with(BinaryKind.MUL, other)

    def __lshift__(self, other: _Wide | int) -> _Wide:
        return self._with(BinaryKind.SHIFT_LEFT, other)

    def __rshift__(self, other: _Wide | int) -> _Wide:
        return self._with(BinaryKind.SHIFT_RIGHT, other)

    def times(self, other: _Wide | int) -> _Wide:
        """Half of the upper half of a product of 32-bit numbers, rounded."""
        return (self * other + (1 << 30)) >> 31

    def clamped(self, low: int | None, high: int | None) -> _Wide:
        found = self if low is None else self._with(BinaryKind.MAXIMUM, low)
        return found if high is None else found._with(BinaryKind.MINIMUM, high)


def _inverse_root(x: _Wide) -> tuple[_Wide, _Wide]:
    """The mantissa of 1 / sqrt(x) for x from 2 to 2**29, and the shift to the right (`inverse_square_root`)."""
    d = x.draft
    bits = d.add(Bitcast(DType.INT64), d.cast(x.operand, DType.FLOAT64))
    exponent = (_Wide(d, bits) >> 52) - 1023
    pairs = ((exponent * -1 + 30) >> 1) - 1
    half = (((x << (pairs * 2)) >> 1) + 1) >> 1
    root = x * 0 + (1 << 28)
    for _ in range(5):
        cube = (root.times(root).times(root) << 6).clamped(*_LIMITS)
        root = ((root.times(_THREE_HALVES) - half.times(cube)) << 3).clamped(*_LIMITS)
    return root.times(_ONE_HALF_ROOT) << (pairs - 11).clamped(0, None), (pairs * -1 + 11).clamped(0, None)


# ---- neighbouring channels


def _local_response(
    d: Draft, op: LocalResponseNormalization, types: CallTypes, operands: Sequence[int]
) -> Sequence[int]:
    """Mul(x, Pow(Add(Mul(AveragePool(Pad(Mul(x, x))), ..), bias), -beta)); square roots if beta is 0.5 or 0.75

    Squares above 1e38 are infinite.
    """
    (x,) = operands
    shape = d.shape(x)
    channels, rows = shape[-1], math.prod(shape[:-1])
    squares = d.unary(UnaryKind.SQUARE, x)
    if op.radius >= channels - 1:
        sums = d.reduced(Reduction.SUM, squares, (len(shape) - 1,), keep_dims=True)
        factor = op.alpha
    else:
        window = 2 * op.radius + 1
        plane = d.reshaped(squares, 1, rows, channels, 1)
        margins = d.constant(np.array([[0, 0], [0, 0], [op.radius, op.radius], [0, 0]], np.int32))
        means = d.add(Pool2D(Pooling.AVERAGE, 1, window), d.add(Pad(), plane, margins))
        sums, factor = d.reshaped(means, *shape), op.alpha * window
    base = d.sum(d.product(sums, d.like(x, factor)), d.like(x, op.bias))
    return [d.product(x, _power(d, base, op.beta))]


def _power(d: Draft, x: int, beta: float) -> int:
    """`x ** -beta`."""
    if beta == 1:
        return d.binary(BinaryKind.DIV, d.like(x, 1), x)
    if beta not in (0.5, 0.75):
        return d.binary(BinaryKind.POW, x, d.like(x, -beta))
    root = d.unary(UnaryKind.RSQRT, x)
    return root if beta == 0.5 else d.product(root, d.unary(UnaryKind.SQRT, root))


# ---- softmax


def _minus_largest(d: Draft, x: int) -> int:
    """Elements minus the largest along the last axis, so that no exponential overflows."""
    return d.difference(x, d.reduced(Reduction.MAX, x, (len(d.shape(x)) - 1,), keep_dims=True))


def _row_sums(d: Draft, exponentials: int) -> int:
    return d.reduced(Reduction.SUM, exponentials, (len(d.shape(exponentials)) - 1,), keep_dims=True)


def _softmax(d: Draft, op: Softmax, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Div(exponentials, Sum(exponentials)) with exponentials = Exp(Mul(Sub(x, Max(x)), beta))"""
    shifted = _minus_largest(d, operands[0])
    exponentials = d.unary(UnaryKind.EXP, shifted if op.beta == 1 else d.product(shifted, d.like(shifted, op.beta)))
    return [d.binary(BinaryKind.DIV, exponentials, _row_sums(d, exponentials))]


def _log_softmax(d: Draft, op: LogSoftmax, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Sub(shifted, Log(Sum(Exp(shifted)))) with shifted = Sub(x, Max(x))"""
    shifted = _minus_largest(d, operands[0])
    return [d.difference(shifted, d.unary(UnaryKind.LOG, _row_sums(d, d.unary(UnaryKind.EXP, shifted))))]


DECOMPOSITIONS = {
    BatchNorm: (Decomposition(_why_not, _batch_norm),),
    InstanceNorm: (Decomposition(_why_not, _instance_norm),),
    RmsNorm: (Decomposition(_why_no_broadcast, _broadcast_factors), Decomposition(_why_not, _rms_norm)),
    L2Normalization: (
        Decomposition(_why_not_activated, _activated),
        Decomposition(_why_no_l2_normalization, _l2_normalization),
        Decomposition(_why_no_bytes, _unit_bytes),
    ),
    LocalResponseNormalization: (Decomposition(only_floats, _local_response),),
    Softmax: (Decomposition(only_floats, _softmax),),
    LogSoftmax: (Decomposition(only_floats, _log_softmax),),
}
