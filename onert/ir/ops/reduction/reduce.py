"""Reductions along axes."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.fixed_point import (
    Multiplier,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    quantize_multiplier,
)
from onert.ir.ops.arithmetic.rescale import rescale_exactly
from onert.ir.quant import dequantize, quantize
from onert.ir.shape import normalize_axes, normalize_axis
from onert.ir.types import CallTypes, TensorType, unranked


class Reduction(Enum):
    """How the elements along the axes are combined."""

    MEAN = "mean"
    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"


_LOGICAL = (Reduction.ANY, Reduction.ALL)
_ARITHMETIC = (Reduction.MEAN, Reduction.SUM, Reduction.PROD)


@frozen
class Reduce(Op):
    """Reduces `x` along axes: mean, sum, product, maximum, minimum, disjunction (ANY) or conjunction (ALL).

    Operands: `x`; `axes` (int32 or int64: any axes of `x`, negative ones count from the end, duplicates are ignored; if
    there are none, `x` is unchanged). Result: `x` without these axes, or with `keep_dims` with size 1 along them.

    Element types: booleans for ANY and ALL. Real numbers for the others, and booleans except for MEAN; integers wrap,
    and their mean truncates towards zero. Quantised int8, uint8 and int16: MEAN by TFLite's fixed-point multiplier that
    includes the count, PROD with rescaling after each factor, SUM by the real ratio of the scales, MAX and MIN on the
    stored integers. An empty sum is 0, an empty product 1, an empty mean NaN.

    Source: TFLite MEAN, SUM, REDUCE_*; kernels/reduce.cc and kernels/internal/reference/reduce.h.
    """

    kind: Reduction
    keep_dims: bool = False

    def infer(self, x: TensorType, axes: TensorType) -> TensorType:
        require(axes.dtype in (DType.INT32, DType.INT64), f"axes are {axes.dtype.text}, expected i32 or i64")
        if self.kind in _LOGICAL:
            require(x.dtype is DType.BOOL, f"input is {x.dtype.text}, expected bool")
        else:
            allowed = x.dtype.is_numeric or (x.dtype is DType.BOOL and self.kind is not Reduction.MEAN)
            require(allowed and not x.dtype.is_complex, f"input is {x.dtype.text}, expected real numbers")
        if axes.value is None:
            return x.result((None,) * x.rank) if self.keep_dims else unranked(x.dtype)
        reduced = axes_of(axes.value, x.rank)
        if self.keep_dims:
            return x.result(tuple(1 if i in reduced else d for i, d in enumerate(x.shape)))
        return x.result(tuple(d for i, d in enumerate(x.shape) if i not in reduced))

    def evaluate(self, x: Array, axes: Array) -> Array:
        at = axes_of(axes, x.ndim)
        if not at:
            return x.copy()
        if x.dtype == np.bool_:
            both = self.kind in (Reduction.ALL, Reduction.PROD, Reduction.MIN)
            return np.asarray((np.all if both else np.any)(x, axis=at, keepdims=self.keep_dims))
        return np.asarray(self._reduce(x, at))

    def _reduce(self, x: Array, at: tuple[int, ...]) -> Array:
        if self.kind is Reduction.MAX or self.kind is Reduction.MIN:
            function = np.max if self.kind is Reduction.MAX else np.min
            out: Array = function(x, axis=at, keepdims=self.keep_dims, initial=identity(self.kind, x.dtype))
            return out
        if self.kind is not Reduction.MEAN:
            return self._total(x, at, x.dtype)
        count = math.prod(x.shape[i] for i in at)
        if x.dtype.kind == "f":
            mean: Array = self._total(x, at, x.dtype) / x.dtype.type(count)
            return mean
        sums = self._total(x, at, np.dtype(np.int64))
        magnitude = np.abs(sums) // max(count, 1)
        cut: Array = np.where(sums < 0, -magnitude, magnitude).astype(x.dtype)
        return cut

    def _total(self, x: Array, at: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The sum (also for MEAN) or product, accumulated in `dtype`."""
        function = np.prod if self.kind is Reduction.PROD else np.sum
        return np.asarray(function(x, axis=at, dtype=dtype, keepdims=self.keep_dims))

    def evaluate_quantized(self, types: CallTypes, x: Array, axes: Array) -> Array:
        before, after = types.input(0), types.output
        at = axes_of(axes, x.ndim)
        count = math.prod(x.shape[i] for i in at)
        if before.quantization is None or after.quantization is None:
            return self.evaluate(x, axes)
        if self.kind not in _ARITHMETIC:
            if before.quantization == after.quantization:
                return self.evaluate(x, axes)
            real = self.evaluate(dequantize(x, before.quantization), axes)
            return quantize(real, after.quantization, after.dtype)
        if self.kind is Reduction.PROD:
            return self._product(before, after, x, at, count)
        sums = self._total(x, at, np.dtype(np.int64))
        if self.kind is Reduction.MEAN and not count:
            return np.zeros(sums.shape, x.dtype)
        centred = sums - before.zero_point * count
        if self.kind is Reduction.SUM:
            return rescale_exactly(centred, np.asarray(before.scale / after.scale), after, after.dtype.limits)
        multiplier = mean_multiplier(before, after, count)
        mean = multiply_by_quantized_multiplier(centred, multiplier.mantissa, multiplier.shift) + after.zero_point
        out: Array = np.clip(mean, *after.dtype.limits).astype(x.dtype)
        return out

    def _product(self, before: TensorType, after: TensorType, x: Array, at: tuple[int, ...], count: int) -> Array:
        """Factor by factor in storage order; each product is rescaled so that the last has the result's scale."""
        kept = [i for i in range(x.ndim) if i not in at]
        shape = tuple(1 if i in at else x.shape[i] for i in range(x.ndim) if self.keep_dims or i not in at)
        if not count:
            assert after.quantization is not None
            return quantize(np.ones(shape, np.float32), after.quantization, after.dtype)
        factors = x.transpose(*at, *kept).reshape(count, -1).astype(np.int64) - before.zero_point
        multiplier = quantize_multiplier(before.scale / after.scale ** (1.0 / count))
        product = factors[0]
        for factor in (*factors[1:], 1):
            scaled = multiply_by_quantized_multiplier_64(product * factor, multiplier.mantissa, multiplier.shift)
            product = scaled.astype(np.int32).astype(np.int64)  # TFLite's accumulator is int32 and wraps
        out: Array = np.clip(product + after.zero_point, *after.dtype.limits).astype(x.dtype)
        return out.reshape(shape)


class Extreme(Enum):
    """Whether the largest or the smallest element is located."""

    MAX = "max"
    MIN = "min"


@frozen
class ArgReduce(Op):
    """The index of the largest or smallest element along an axis, the first one of equals.

    As in TFLite's kernels, an element replaces the current one only if it compares greater (or less). NaN is therefore
    skipped, except as the first element, where its index is the result.

    Operands: `x`, at least one dimension; `axis` (one int32 or int64 element, negative counts from the end). Result:
    `x` without that axis, of element type `output` (int32 or int64). Quantised integers are compared as stored.

    Source: TFLite ARG_MAX and ARG_MIN, kernels/arg_min_max.cc.
    """

    stored = True

    kind: Extreme
    output: DType = DType.INT64

    def infer(self, x: TensorType, axis: TensorType) -> TensorType:
        require(self.output in (DType.INT32, DType.INT64), f"result is {self.output.text}, expected i32 or i64")
        allowed = (x.dtype.is_numeric and not x.dtype.is_complex) or x.dtype is DType.BOOL
        require(allowed, f"input is {x.dtype.text}, expected real numbers or bool")
        require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
        if axis.value is None:
            require_one_axis(axis)
            return TensorType(self.output, (None,) * (x.rank - 1))
        at = axis_of(axis, x.rank)
        require(x.shape[at] != 0, f"axis {at} of {x} is empty, expected at least one element")
        return TensorType(self.output, x.shape[:at] + x.shape[at + 1 :])

    def evaluate(self, x: Array, axis: Array) -> Array:
        at = normalize_axis(int(axis.reshape(-1)[0]), x.ndim)
        function = np.argmax if self.kind is Extreme.MAX else np.argmin
        if x.dtype.kind not in "iub":
            best = np.float32(np.inf if self.kind is Extreme.MAX else -np.inf)
            stays = np.isnan(x)
            x = np.where(stays, -best, x)
            stays[(slice(None),) * at + (slice(1, None),)] = False
            x[stays] = best
        return np.asarray(function(x, axis=at)).astype(self.output.numpy)


def mean_multiplier(before: TensorType, after: TensorType, count: int) -> Multiplier:
    """The multiplier from a sum of `count` stored integers, minus zero points, to the mean in the scale of `after`."""
    multiplier = quantize_multiplier(before.scale / after.scale)
    shift = max(min(count.bit_length() - 1, 32, 31 + multiplier.shift), 0)
    return Multiplier((multiplier.mantissa << shift) // count, multiplier.shift - shift)


def axes_of(elements: Array, rank: int) -> tuple[int, ...]:
    """The axes named by an operand, sorted, without duplicates; none for rank 0. RuleError if one is out of range."""
    return normalize_axes([int(a) for a in elements.reshape(-1)], rank) if rank else ()


def require_one_axis(axis: TensorType) -> None:
    """Raises RuleError unless an operand is one integer."""
    require(axis.dtype in (DType.INT32, DType.INT64), f"axis is {axis.dtype.text}, expected i32 or i64")
    one = axis.rank == 0 or all(d in (1, None) for d in axis.shape)
    require(one, f"axis is {axis}, expected one element")


def axis_of(axis: TensorType, rank: int) -> int:
    """The axis named by a known one-element operand, counted from the front."""
    require_one_axis(axis)
    assert axis.value is not None
    return normalize_axis(int(axis.value.reshape(-1)[0]), rank)


def identity(kind: Reduction, dtype: np.dtype[Any]) -> float | int:
    """The maximum or minimum of no elements."""
    if dtype.kind == "f":
        return -math.inf if kind is Reduction.MAX else math.inf
    info = np.iinfo(dtype)
    return int(info.min if kind is Reduction.MAX else info.max)
