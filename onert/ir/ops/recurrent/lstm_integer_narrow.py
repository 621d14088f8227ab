"""The integer LSTM cell with int8 products (LiteRT's 8x8_8 kernel): coupled, normalised, projected.

Source: TFLite's kernels/lstm.cc (PopulateQuantizedLstmParams8x8_8), kernels/lstm_eval.cc (LstmStepInteger8x8_8) and
kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.op import require
from onert.ir.ops.arithmetic.fixed_point import Multiplier, multiply_by_quantized_multiplier_64, rounding_divide_by_pot
from onert.ir.quant import round_half_away
from onert.ir.types import TensorType

from .lstm_integer import clipped, multiplier, next_cell, power_of_two, saturate, scaled, stored_clip, sums
from .lstm_parts import CELL, FORGET, INPUT, OUTPUT, Parts, needed
from .recurrent import require_per_tensor, scan

_EXPONENT = -15
"""The exponent of the cell state's scale."""


@frozen(eq=False)
class _Product:
    """`(x - zero) · weightᵀ` as int8, and its contribution to the gate's sum."""

    weights: Array
    zero: int
    to_product: Multiplier
    product_zero: int
    to_sum: Multiplier

    def of(self, x: Array) -> Array:
        product = saturate(scaled(sums(x, self.zero, self.weights), self.to_product) + self.product_zero, 8)
        return scaled(product - self.product_zero, self.to_sum)


@frozen(eq=False)
class _Gate:
    given: _Product
    recurrent: _Product
    norm: Array
    scale: np.float32
    bias: Array

    def value(self, x: Array, h: Array) -> Array:
        """The gate before its activation, in Q3; normalised in float32, with sums from the first element on."""
        z = saturate(self.given.of(x) + self.recurrent.of(h), 16).astype(np.float32)
        count = np.float32(z.shape[-1])
        mean = np.cumsum(z, -1, dtype=np.float32)[..., -1:] / count
        variance = np.cumsum(z * z, -1, dtype=np.float32)[..., -1:] / count - mean * mean
        inverse = np.float32(1) / np.sqrt(np.where(variance == 0, np.float32(1e-8), variance))
        weighted = (z - mean) * inverse * self.norm * self.scale + self.bias * (np.float32(2.0**-10) * self.scale)
        return _stored(round_half_away(weighted * np.float32(4096)))


def _stored(x: Array) -> Array:
    """Integral floats as int16; NaN becomes the smallest number, as in x86 conversions."""
    return saturate(np.nan_to_num(x, nan=-32768.0), 16).astype(np.int64)


def _logistic(x: Array) -> Array:
    """The logistic function of numbers in Q3, in Q0."""
    real = x.astype(np.float32) * np.float32(2.0**-12)
    power = np.exp(-real.astype(np.float64)).astype(np.float32)
    return _stored(np.trunc(np.float32(1) / (np.float32(1) + power) * np.float32(32768)))


def _tanh(x: Array, exponent: int) -> Array:
    """tanh of integers with the scale 2**exponent, in Q0."""
    real = (x * 2.0**exponent).astype(np.float32)
    return _stored(np.trunc(np.tanh(real.astype(np.float64)).astype(np.float32) * np.float32(32768)))


@frozen(eq=False)
class NarrowGates:
    """The layer: its operands' elements and types, and the types of input, output state, cell state and result.

    `intermediates` are, for each gate, its sum, its product with the input and its product with the state.
    """

    elements: Parts[Array]
    kinds: Parts[TensorType]
    ends: tuple[TensorType, TensorType, TensorType, TensorType]
    intermediates: tuple[TensorType, ...]
    clips: tuple[float, float]

    @staticmethod
    def check(kinds: Parts[TensorType], c: TensorType, intermediates: tuple[TensorType, ...]) -> None:
        """Raises RuleError if this form cannot compute a layer whose operand types are otherwise valid."""
        require(power_of_two(c.scale) == _EXPONENT, f"cell state has scale {c.scale}, expected 2**-15")
        require(kinds.coupled, "there is an input gate, expected none with twelve intermediates")
        require(kinds.norm[OUTPUT] is not None, "there is no normalisation, expected one with twelve intermediates")
        require(kinds.peephole[OUTPUT] is None, "there are peepholes, expected none with twelve intermediates")
        whole = kinds.projection is not None and kinds.projection_bias is not None
        require(whole, "there is no projection with a bias, expected one with twelve intermediates")
        for at in range(3 * FORGET, 12):
            require_per_tensor(intermediates[at], f"intermediate {at}")
            zero = intermediates[at].zero_point
            require(-128 <= zero <= 127, f"intermediate {at} has zero point {zero}, expected one of i8")

    def run(self, x: Array, h: Array, c: Array) -> tuple[Array, Array, Array]:
        """Outputs [time, batch, outputs], the last output and the cell state, for `x` [time, batch, inputs]."""
        gates = {at: self._gate(at) for at in (FORGET, CELL, OUTPUT)}
        cell_clip = self.clips[0] if self.clips[0] < 1 else 0.0
        clip = stored_clip(cell_clip, self.ends[2].scale, 16)

        def step(at: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
            h, c = state[0], state[1].astype(np.int64)
            forget = _logistic(gates[FORGET].value(x[at], h))
            update = _tanh(gates[CELL].value(x[at], h), -12)
            c = next_cell(forget, None, update, c, _EXPONENT, clip)
            hidden = _logistic(gates[OUTPUT].value(x[at], h)) * _tanh(c, _EXPONENT)
            return self._project(rounding_divide_by_pot(hidden, 15)), c.astype(np.int16)

        outputs, (last, state) = scan(step, len(x), (h, c))
        return outputs, last, state

    def _project(self, hidden: Array) -> Array:
        weights = needed(self.elements.projection).astype(np.float64)
        total = (hidden.astype(np.float64) @ weights.T).astype(np.int64) + needed(self.elements.projection_bias)
        kind, h = needed(self.kinds.projection), self.ends[1]
        by = multiplier(float(np.float32(kind.scale)) * 2.0**-15 / float(np.float32(h.scale)))
        out = saturate(multiply_by_quantized_multiplier_64(total, by.mantissa, by.shift) + h.zero_point, 8)
        bound = stored_clip(self.clips[1], self.ends[3].scale, 8)
        return clipped(out, bound).astype(np.int8)

    def _gate(self, at: int) -> _Gate:
        assert at != INPUT
        norm = multiplier(needed(self.kinds.norm[at]).scale)
        return _Gate(
            self._product(needed(self.elements.weights[at]), needed(self.kinds.weights[at]), self.ends[0], 3 * at, 1),
            self._product(
                needed(self.elements.recurrent[at]), needed(self.kinds.recurrent[at]), self.ends[1], 3 * at, 2
            ),
            needed(self.elements.norm[at]).astype(np.float32),
            np.float32(norm.mantissa * 2.0 ** (norm.shift - 31)),
            needed(self.elements.bias[at]).astype(np.float32),
        )

    def _product(self, weights: Array, kind: TensorType, end: TensorType, first: int, which: int) -> _Product:
        total, product = self.intermediates[first], self.intermediates[first + which]
        scale = np.float32(product.scale)
        return _Product(
            weights,
            end.zero_point,
            multiplier(np.float32(kind.scale) * np.float32(end.scale) / scale),
            product.zero_point,
            multiplier(scale / np.float32(total.scale)),
        )
