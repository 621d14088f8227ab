"""One step of the LSTM cell with a single weight matrix (TFLite's basic kernel)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.fixed_point import quantize_multiplier, rounding_divide_by_pot
from onert.ir.ops.arithmetic.rescale import exact
from onert.ir.types import CallTypes, TensorType

from .lstm_functions import logistic, multiply, rescale, tanh
from .lstm_integer import power_of_two, saturate, scaled
from .recurrent import require_dtype, require_per_tensor, require_shape
from .recurrent_functions import EXACT

_STATE_BITS = 4
"""The number of integer bits of the quantised cell state: its scale is 2**-11."""


@frozen
class BasicLSTM(Op):
    """One step of a long short-term memory cell with all weights in one matrix.

    Operands: `x` [batch, inputs]; `h` [batch, cells], state: the last output; `weights` [4 * cells, inputs + cells],
    for the input gate, the cell update, the forget gate and the output gate; `bias` [4 * cells]; `c` [batch, cells],
    state: the cell state. Results: the output; the cell state; x and h concatenated; the gates before their
    activations, [batch, 4 * cells]; then the output and the cell state again, as the next states.

    Element types: float32; or uint8 `x`, `h` (zero points 128) and weights with int32 biases, whose scale is that of
    the products, and an int16 `c` of scale 2**-11; the gates are then int16 of scale 2**-12.

    Source: TFLite LSTM, kernel type BASIC; kernels/internal/reference/reference_ops.h (LstmCell).
    """

    carries: ClassVar[tuple[str, ...]] = ("h", "c")

    def infer(
        self, x: TensorType, h: TensorType, weights: TensorType, bias: TensorType, c: TensorType
    ) -> tuple[TensorType, ...]:
        for name, operand in (("x", x), ("output state", h), ("weights", weights)):
            require(operand.rank == 2, f"{name} is {operand}, expected 2 dimensions")
        batch, inputs = x.shape
        cells = h.shape[1]
        gates = None if cells is None else 4 * cells
        depth = None if cells is None or inputs is None else inputs + cells
        require_shape(h, (batch, cells), "output state")
        require_shape(weights, (gates, depth), "weights")
        require_shape(bias, (gates,), "bias")
        require_shape(c, (batch, cells), "cell state")
        if x.dtype is DType.UINT8:
            self._require_integers(x, h, weights, bias, c)
        else:
            for name, operand in (("x", x), ("output state", h), ("weights", weights), ("bias", bias), ("cell", c)):
                require_dtype(operand, DType.FLOAT32, name)
        y, state = h.result(h.shape), c.result(c.shape)
        return y, state, x.result((batch, depth)), c.result((batch, gates)), y, state

    @staticmethod
    def _require_integers(x: TensorType, h: TensorType, weights: TensorType, bias: TensorType, c: TensorType) -> None:
        named = (("output state", h, DType.UINT8), ("weights", weights, DType.UINT8), ("bias", bias, DType.INT32))
        for name, operand, dtype in (("x", x, DType.UINT8), *named, ("cell state", c, DType.INT16)):
            require_dtype(operand, dtype, name)
            require_per_tensor(operand, name)
        for name, operand in (("x", x), ("output state", h)):
            zero = operand.zero_point
            require(zero == 128, f"{name} has zero point {zero}, expected 128")
        require(power_of_two(c.scale) == _STATE_BITS - 15, f"cell state has scale {c.scale}, expected 2**-11")

    def evaluate(self, x: Array, h: Array, weights: Array, bias: Array, c: Array) -> tuple[Array, ...]:
        both = np.concatenate([x, h], axis=1)
        gates = both @ weights.T + bias
        entry, update, forget, output = np.split(gates, 4, axis=1)
        state = EXACT.logistic(entry) * np.tanh(update) + EXACT.logistic(forget) * c
        y = EXACT.logistic(output) * np.tanh(state)
        return y, state, both, gates, y, state

    def evaluate_quantized(
        self, types: CallTypes, x: Array, h: Array, weights: Array, bias: Array, c: Array
    ) -> tuple[Array, ...]:
        if x.dtype != np.uint8:
            return self.evaluate(x, h, weights, bias, c)
        both = np.concatenate([x, h], axis=1)
        left, right = exact(both, 128, weights, types.input(2).zero_point, both.shape[1])
        total = ((left @ right.T).astype(np.int64) + bias).astype(np.int32).astype(np.int64)
        to_gates = quantize_multiplier(float(np.float32(4096) * np.float32(types.input(3).scale)))
        gates = saturate(scaled(total, to_gates), 16)
        entry, update, forget, output = np.split(gates, 4, axis=1)
        added = rescale(multiply(logistic(entry), tanh(update, 3)), 0, _STATE_BITS)
        state = saturate(added + multiply(logistic(forget), c), 16)
        y = multiply(logistic(output), tanh(rescale(state, _STATE_BITS, 3), 3))
        stored = (saturate(rounding_divide_by_pot(y, 8), 8) + 128).astype(np.uint8)
        kept = state.astype(np.int16)
        return stored, kept, both, gates.astype(np.int16), stored, kept
