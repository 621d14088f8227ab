"""The integer LSTM cell whose gates are int16 before their activations (LiteRT's 8x8_16 kernel).

Source: TFLite's kernels/lstm.cc (PopulateQuantizedLstmParams8x8_16), kernels/lstm_eval.cc (LstmStepInteger8x8_16) and
kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import field, frozen

from onert.ir.dtype import Array
from onert.ir.op import require
from onert.ir.ops.arithmetic.fixed_point import (
    Multiplier,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from onert.ir.ops.arithmetic.fixed_point_functions import inverse_square_root
from onert.ir.ops.arithmetic.rescale import exact
from onert.ir.types import TensorType

from .lstm_functions import logistic, tanh
from .lstm_parts import CELL, FORGET, INPUT, OUTPUT, Parts, needed
from .recurrent import require_per_tensor, scan

GATE_SCALE = 2.0**-12
"""The scale of the gates' sums without normalisation: Q3, the input format of the activations."""


def power_of_two(scale: float) -> int | None:
    """The exponent of a scale that is nearly a power of two, else None; as TFLite's CheckedLog2."""
    exponent = math.log2(scale)
    return round(exponent) if abs(exponent - round(exponent)) < 1e-3 else None


def multiplier(real: float | np.float32) -> Multiplier:
    """The fixed-point form of an effective scale, which the kernels hold in float32."""
    return quantize_multiplier(float(np.float32(real)))


def scaled(x: Array, by: Multiplier) -> Array:
    return multiply_by_quantized_multiplier(x, by.mantissa, by.shift)


def sums(x: Array, zero: int, weight: Array, bias: Array | None = None) -> Array:
    """`(x - zero) · weightᵀ + bias` in wrapping int32, held in int64."""
    left, right = exact(x, zero, weight, 0, weight.shape[1])
    total = (left @ right.T).astype(np.int64)
    return (total if bias is None else total + bias).astype(np.int32).astype(np.int64)


def saturate(x: Array, bits: int) -> Array:
    return np.clip(x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def stored_clip(clip: float, scale: float, bits: int) -> int:
    """A clipping bound as a stored value; 0 for no bound."""
    if clip <= 0:
        return 0
    largest = (1 << (bits - 1)) - 1
    return int(min(np.float32(clip) / np.float32(scale), np.float32(largest)))


def clipped(x: Array, bound: int) -> Array:
    return np.clip(x, -bound, bound) if bound > 0 else x


def next_cell(forget: Array, entry: Array | None, update: Array, c: Array, exponent: int, clip: int) -> Array:
    """The next cell state: forget * c + entry * update; without `entry` the input gate is one minus forget."""
    kept = rounding_divide_by_pot(forget * c, 15)
    let_in = 32767 - forget if entry is None else entry
    added = rounding_divide_by_pot(let_in * update, 30 + exponent)
    return clipped(saturate(kept + added, 16), clip)


@frozen(eq=False)
class _Norm:
    """Layer normalisation of int16 sums, with a result in Q3."""

    weights: Array
    bias: Array
    scale: Multiplier
    guard: int

    def apply(self, z: Array) -> Array:
        count = z.shape[-1]
        total = z.sum(-1, keepdims=True)
        squares = (z * z).sum(-1, keepdims=True)
        mean = _towards_zero(total * 1024, count)
        variance = _towards_zero(squares * ((1 << 20) // count) - mean * mean, 1 << 20)
        mantissa, shift = inverse_square_root(np.where(variance < 1, self.guard, variance))
        normal = multiply_by_quantized_multiplier(1024 * z - mean, mantissa, shift)
        weighted = (normal * self.weights + self.bias).astype(np.int32).astype(np.int64)
        narrow = _towards_zero(np.where(weighted > 0, weighted + 512, weighted - 512), 1024)
        return saturate(
            multiply_by_quantized_multiplier(narrow, self.scale.mantissa, self.scale.shift + 12),
            16,
        )


def _towards_zero(x: Array, divisor: int) -> Array:
    """Integer division that truncates towards zero, as in C."""
    out: Array = np.sign(x) * (np.abs(x) // divisor)
    return out


@frozen(eq=False)
class _Gate:
    weights: Array
    recurrent: Array
    bias: Array | None
    weights_scale: Multiplier
    recurrent_scale: Multiplier
    peephole: Array | None
    peephole_scale: Multiplier
    norm: _Norm | None

    def value(self, x: Array, x_zero: int, h: Array, h_zero: int, c: Array) -> Array:
        """The gate before its activation, in Q3."""
        z = saturate(scaled(sums(x, x_zero, self.weights, self.bias), self.weights_scale), 16)
        z = saturate(scaled(sums(h, h_zero, self.recurrent), self.recurrent_scale) + z, 16)
        if self.peephole is not None:
            z = saturate(scaled(self.peephole * c, self.peephole_scale) + z, 16)
        return z if self.norm is None else self.norm.apply(z)


@frozen(eq=False)
class WideGates:
    """The layer: its operands' elements and types, and the types of input, output state, cell state and result."""

    elements: Parts[Array]
    kinds: Parts[TensorType]
    ends: tuple[TensorType, TensorType, TensorType, TensorType]
    intermediates: tuple[TensorType, ...]
    clips: tuple[float, float]
    exponent: int = field(init=False)

    @exponent.default
    def _exponent(self) -> int:
        return needed(power_of_two(self.ends[2].scale))

    @staticmethod
    def check(kinds: Parts[TensorType], c: TensorType, intermediates: tuple[TensorType, ...]) -> None:
        """Raises RuleError if this form cannot compute a layer whose operand types are otherwise valid."""
        exponent = power_of_two(c.scale)
        within = exponent is not None and -30 <= exponent <= -9
        require(within, f"cell state has scale {c.scale}, expected a power of two from 2**-30 to 2**-9")
        counted = range(5) if kinds.norm[OUTPUT] is not None else (4,)
        for at in counted:
            require_per_tensor(intermediates[at], f"intermediate {at}")

    def run(self, x: Array, h: Array, c: Array) -> tuple[Array, Array, Array]:
        """Outputs [time, batch, outputs], the last output and the cell state, for `x` [time, batch, inputs]."""
        gates = [None if w is None else self._gate(at) for at, w in enumerate(self.elements.weights)]
        x_zero, h_zero = self.ends[0].zero_point, self.ends[1].zero_point
        clip = stored_clip(self.clips[0], self.ends[2].scale, 16)

        def step(at: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
            h, c = state[0], state[1].astype(np.int64)

            def value(gate: int) -> Array:
                return needed(gates[gate]).value(x[at], x_zero, h, h_zero, c)

            forget = logistic(value(FORGET))
            entry = None if gates[INPUT] is None else logistic(value(INPUT))
            update = tanh(value(CELL), 3)
            c = next_cell(forget, entry, update, c, self.exponent, clip)
            hidden = logistic(value(OUTPUT)) * tanh(c, 15 + self.exponent)
            return self._output(hidden).astype(np.int8), c.astype(np.int16)

        outputs, (last, state) = scan(step, len(x), (h, c))
        return outputs, last, state

    def _output(self, hidden: Array) -> Array:
        """The output from products in squared Q0, through the projection if there is one."""
        between = self.intermediates[4]
        scale, zero = np.float32(between.scale), between.zero_point
        to_hidden = multiplier(2.0**-15 / float(scale) * 2.0**-15)
        if self.elements.projection is None:
            return saturate(scaled(hidden, to_hidden) + zero, 8)
        # The kernel stores the hidden state with its zero point negated, and corrects the bias accordingly.
        stored = saturate(scaled(hidden, to_hidden) - zero, 8)
        kind = needed(self.kinds.projection)
        to_output = multiplier(np.float32(kind.scale) * scale / np.float32(self.ends[1].scale))
        total = sums(stored, -zero, self.elements.projection, self.elements.projection_bias)
        out = saturate(scaled(total, to_output) + self.ends[1].zero_point, 8)
        return clipped(out, stored_clip(self.clips[1], self.ends[3].scale, 8))

    def _gate(self, at: int) -> _Gate:
        elements, kinds = self.elements, self.kinds
        norm, peephole = elements.norm[at], elements.peephole[at]
        between = np.float32(GATE_SCALE if norm is None else self.intermediates[at].scale)
        bias = needed(elements.bias[at])
        return _Gate(
            needed(elements.weights[at]),
            needed(elements.recurrent[at]),
            None if norm is not None else bias,
            multiplier(np.float32(needed(kinds.weights[at]).scale) * np.float32(self.ends[0].scale) / between),
            multiplier(np.float32(needed(kinds.recurrent[at]).scale) * np.float32(self.ends[1].scale) / between),
            None if peephole is None else peephole.astype(np.int64),
            multiplier(
                0.0
                if peephole is None
                else 2.0**self.exponent * float(np.float32(needed(kinds.peephole[at]).scale)) / float(between)
            ),
            None if norm is None else self._norm(norm, bias, needed(kinds.norm[at])),
        )

    def _norm(self, coefficients: Array, bias: Array, kind: TensorType) -> _Norm:
        guard = max(1, int(np.float32(10000) * np.float32(kind.scale)))
        return _Norm(coefficients.astype(np.int64), bias.astype(np.int64), multiplier(kind.scale), guard)
