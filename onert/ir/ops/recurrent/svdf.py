"""The SVDF layer: filters that are products of a filter over features and one over time."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from onert.ir.ops.arithmetic.rescale import exact
from onert.ir.types import CallTypes, TensorType

from .recurrent import (
    EIGHT_BITS,
    Quantizer,
    Weights,
    real,
    require_dtype,
    require_kind,
    require_per_tensor,
    require_shape,
    weights,
)


@frozen
class SVDF(Op):
    """A singular value decomposition filter: each unit is a sum of `rank` filters, each a product of a filter over the
    features of a step and one over the last `memory` steps.

    Operands: `x` [batch, features]; `feature_weights` [filters, features]; `time_weights` [filters, memory]; optional
    `bias` [units], where units are filters / rank; `state` [batch, memory * filters]: the last `memory` activations of
    each filter, the newest last. Results: [batch, units], and the next state.

    Element types: float32; float32 `x` and state with int8 or uint8 weights, for which each row of `x` is quantised at
    run time, symmetrically or with `asymmetric_inputs`; int8 `x` and feature weights with an int32 bias and either
    int16 state and time weights (the state's zero point 0), or int8 ones. Integer layers support only the activations
    RELU and NONE, and clamp only to the range of the result's type: a rectified result has its minimum as zero point.

    Source: Nakkiran et al. 2015; TFLite SVDF, kernels/internal/reference/svdf.h, for int8 state TFLite Micro's
    kernels/svdf_common.cc.
    """

    rank: int = 1
    activation: Activation = Activation.NONE
    asymmetric_inputs: bool = False

    carries: ClassVar[tuple[str, ...]] = ("state",)

    def infer(
        self,
        x: TensorType,
        feature_weights: TensorType,
        time_weights: TensorType,
        bias: TensorType | None,
        state: TensorType,
    ) -> tuple[TensorType, TensorType]:
        require(self.rank >= 1, f"rank is {self.rank}, expected at least 1")
        for name, operand in (("x", x), ("feature weights", feature_weights), ("time weights", time_weights)):
            require(operand.rank == 2, f"{name} are {operand}, expected 2 dimensions")
        (filters, _), memory = feature_weights.shape, time_weights.shape[1]
        units = None
        if filters is not None:
            require(
                filters % self.rank == 0, f"there are {filters} filters, expected a multiple of the rank {self.rank}"
            )
            units = filters // self.rank
        require(memory is None or memory >= 1, "time weights cover 0 steps, expected at least 1")
        require_shape(feature_weights, (filters, x.shape[1]), "feature weights")
        require_shape(time_weights, (filters, memory), "time weights")
        require_shape(bias, (units,), "bias")
        held = None if memory is None or filters is None else memory * filters
        require_shape(state, (x.shape[0], held), "state")
        self._require_types(x, feature_weights, time_weights, bias, state)
        return x.result((x.shape[0], units)), state.result(state.shape)

    def _require_types(
        self, x: TensorType, feature: TensorType, time: TensorType, bias: TensorType | None, state: TensorType
    ) -> None:
        if x.dtype is not DType.INT8:
            require_dtype(x, DType.FLOAT32, "x")
            require_kind(feature)
            require_dtype(time, feature.dtype, "time weights")
            require_dtype(bias, DType.FLOAT32, "bias")
            require_dtype(state, DType.FLOAT32, "state")
            quantized = [("feature weights", feature), ("time weights", time)] if feature.dtype in EIGHT_BITS else []
        else:
            require_dtype(feature, DType.INT8, "feature weights")
            require(state.dtype in (DType.INT8, DType.INT16), f"state holds {state.dtype.text}, expected i8 or i16")
            require_dtype(time, state.dtype, "time weights")
            require_dtype(bias, DType.INT32, "bias")
            known = self.activation in (Activation.NONE, Activation.RELU)
            require(known, f"activation is {self.activation.name}, expected NONE or RELU for integers")
            quantized = [("x", x), ("feature weights", feature), ("time weights", time), ("state", state)]
        for name, operand in quantized:
            require_per_tensor(operand, name)
        if state.dtype is DType.INT16:
            require(state.zero_point == 0, f"state has zero point {state.zero_point}, expected 0")

    def flops(self, types: CallTypes) -> int:
        weights = sum(math.prod(d or 0 for d in types.input(at).shape) for at in (1, 2))
        return 2 * (types.input(0).shape[0] or 0) * weights

    def evaluate(
        self, x: Array, feature_weights: Array, time_weights: Array, bias: Array | None, state: Array
    ) -> tuple[Array, Array]:
        return self._floats(Quantizer(), x, Weights(feature_weights), time_weights, bias, state)

    def evaluate_quantized(
        self, types: CallTypes, x: Array, feature: Array, time: Array, bias: Array | None, state: Array
    ) -> tuple[Array, Array]:
        if x.dtype == np.int8:
            return self._integers(types, x, feature, time, bias, state)
        feature_type = types.input(1)
        quantizer = Quantizer(feature_type.dtype in EIGHT_BITS, self.asymmetric_inputs)
        return self._floats(quantizer, x, weights(feature, feature_type), real(time, types.input(2)), bias, state)

    def _floats(
        self, quantizer: Quantizer, x: Array, feature: Weights, time: Array, bias: Array | None, state: Array
    ) -> tuple[Array, Array]:
        memory = self._remember(state, feature.times(quantizer.rows(x)), time.shape)
        out = self._sum_ranks((memory * time).sum(axis=-1, dtype=np.float32))
        return self.activation.apply(out if bias is None else out + bias), memory.reshape(state.shape)

    def _integers(
        self, types: CallTypes, x: Array, feature: Array, time: Array, bias: Array | None, state: Array
    ) -> tuple[Array, Array]:
        x_type, feature_type, time_type, state_type = (types.input(at) for at in (0, 1, 2, 4))
        left, right = exact(x, x_type.zero_point, feature, 0, feature.shape[1])
        sums = (left @ right.T).astype(np.int64)
        newest = _rescale(sums, x_type.scale * feature_type.scale / state_type.scale, state_type)
        memory = self._remember(state, newest, time.shape)
        terms = (memory.astype(np.int64) - state_type.zero_point) * time
        total = self._sum_ranks(terms.sum(axis=-1))
        total = (total if bias is None else total + bias).astype(np.int32).astype(np.int64)
        out = _rescale(total, state_type.scale * time_type.scale / types.output.scale, types.output)
        return out, memory.reshape(state.shape)

    def _remember(self, state: Array, newest: Array, shape: tuple[int, ...]) -> Array:
        """The next state, [batch, filters, memory]."""
        before = state.reshape(len(newest), *shape)
        return np.concatenate([before[..., 1:], newest[..., None]], axis=-1)

    def _sum_ranks(self, filters: Array) -> Array:
        out: Array = filters.reshape(len(filters), filters.shape[1] // self.rank, self.rank).sum(axis=-1)
        return out.astype(filters.dtype, copy=False)


def _rescale(sums: Array, scale: float, result: TensorType) -> Array:
    multiplier = quantize_multiplier(scale)
    scaled = multiply_by_quantized_multiplier(sums, multiplier.mantissa, multiplier.shift) + result.zero_point
    low, high = result.dtype.limits
    out: Array = np.clip(scaled, low, high).astype(result.dtype.numpy)
    return out
