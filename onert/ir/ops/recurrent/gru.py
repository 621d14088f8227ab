"""The gated recurrent unit."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import require
from onert.ir.shape import Dim
from onert.ir.types import TensorType

from .recurrent import Recurrent, require_dtype, require_shape, scan
from .recurrent_functions import EXACT


@frozen
class GRU(Recurrent):
    """A gated recurrent unit over a sequence, with its reset gate applied after the product (Keras's `reset_after`).

    Operands, float32: `x` [time, batch, features]; `input_weights` [3 * units, features] and optional `input_bias`
    [3 * units], for the update gate, the reset gate and the candidate; `state_weights` [3 * units, units] and optional
    `state_bias` [3 * units] likewise; `h` [batch, units], the initial state. Result: the state after the last step,
    [1, batch, units], or with `return_sequences` after every step, [time, batch, units].

    `z = logistic(x_z + h_z)`, `r = logistic(x_r + h_r)`, the next h is `z * h + (1 - z) * tanh(x_c + r * h_c)`.

    In circle files the input's weights are called hidden_hidden and the state's hidden_input. Time is the first axis
    whatever `time_major` says: ONE's writer does not set it, nor the activation.

    Source: Cho et al. 2014; circle GRU, luci-interpreter's kernel.
    """

    return_sequences: bool = False

    def infer(
        self,
        x: TensorType,
        input_weights: TensorType,
        input_bias: TensorType | None,
        state_weights: TensorType,
        state_bias: TensorType | None,
        h: TensorType,
    ) -> TensorType:
        require(x.rank == 3, f"x has rank {x.rank}, expected 3")
        require(h.rank in (2, 3), f"state has rank {h.rank}, expected 2 or 3")
        require(state_weights.rank == 2, f"state weights are {state_weights}, expected 2 dimensions")
        time, batch, features = x.shape
        units = state_weights.shape[1]
        gates = None if units is None else 3 * units
        named = (
            (input_weights, (gates, features), "input weights"),
            (input_bias, (gates,), "input bias"),
            (state_weights, (gates, units), "state weights"),
            (state_bias, (gates,), "state bias"),
            (h, (batch, units) if h.rank == 2 else (1, batch, units), "state"),
        )
        for operand, shape, name in named:
            require_shape(operand, shape, name)
            require_dtype(operand, DType.FLOAT32, name)
        require_dtype(x, DType.FLOAT32, "x")
        steps: Dim = time if self.return_sequences else 1
        return x.result((steps, batch, units))

    def evaluate(
        self,
        x: Array,
        input_weights: Array,
        input_bias: Array | None,
        state_weights: Array,
        state_bias: Array | None,
        h: Array,
    ) -> Array:
        given = x @ input_weights.T
        given = given if input_bias is None else given + input_bias

        def step(at: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
            before = state[0] @ state_weights.T
            before = before if state_bias is None else before + state_bias
            (x_z, x_r, x_c), (h_z, h_r, h_c) = np.split(given[at], 3, axis=-1), np.split(before, 3, axis=-1)
            update = EXACT.logistic(x_z + h_z)
            return (state[0] * update + (1 - update) * np.tanh(x_c + EXACT.logistic(x_r + h_r) * h_c),)

        outputs, (last,) = scan(step, len(x), (h.reshape(x.shape[1], state_weights.shape[1]),))
        return outputs if self.return_sequences else last[None]
