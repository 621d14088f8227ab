"""The LSTM cell on floats, with float or integer weights.

Source: Hochreiter and Schmidhuber 1997; TFLite's kernels/lstm_eval.cc for the order in which peepholes, normalisation
and bias are added.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.types import TensorType

from .lstm_parts import CELL, FORGET, INPUT, OUTPUT, Parts, needed
from .recurrent import Quantizer, Rows, Weights, real, scan, weights

_EPSILON = np.float32(1e-8)


@frozen(eq=False)
class _Gate:
    """One gate before its activation: `bias + W·x + A·aux + R·h + peephole * c`, normalised before the bias."""

    weights: Weights
    recurrent: Weights
    bias: Array
    peephole: Array | None
    norm: Array | None
    aux: Weights | None

    def given(self, x: Rows, aux: Rows | None) -> Array:
        """The part that does not depend on the state."""
        z = self.weights.times(x)
        if self.norm is None:
            z = self.bias + z
        return z if aux is None or self.aux is None else z + self.aux.times(aux)

    def value(self, given: Array, h: Rows, c: Array) -> Array:
        z = given + self.recurrent.times(h)
        if self.peephole is not None:
            z = z + self.peephole * c
        if self.norm is None:
            return z
        centred = z - _mean(z)
        out: Array = centred * (np.float32(1) / np.sqrt(_mean(centred * centred) + _EPSILON)) * self.norm + self.bias
        return out


def _mean(x: Array) -> Array:
    """The mean along the last axis, summed from the first element on as in the kernels."""
    out: Array = np.cumsum(x, -1)[..., -1:] / np.float32(x.shape[-1])
    return out


@frozen(eq=False)
class Cell:
    """A cell that runs over sequences. `gates` are in the order of `Parts`; the input gate is None if it is coupled."""

    gates: tuple[_Gate | None, ...]
    projection: Weights | None
    projection_bias: Array | None
    quantizer: Quantizer
    activation: Activation
    cell_clip: float
    projection_clip: float

    def run(
        self, x: Array, aux: Array | None, h: Array, c: Array, *, backward: bool = False
    ) -> tuple[Array, Array, Array]:
        """Outputs [time, batch, outputs], the last output and the cell state, for `x` [time, batch, inputs]."""
        rows = self.quantizer.rows(x)
        more = None if aux is None else self.quantizer.rows(aux)
        given = [
            np.zeros(0, x.dtype) if g is None else g.given(rows, more).reshape(*x.shape[:2], len(g.bias))
            for g in self.gates
        ]

        def step(at: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
            return self._step([g[at] if g.ndim == 3 else g for g in given], *state)

        outputs, (h, c) = scan(step, len(x), (h, c), backward=backward)
        return outputs, h, c

    def _step(self, given: list[Array], h: Array, c: Array) -> tuple[Array, Array]:
        before, functions = self.quantizer.rows(h), self.quantizer.functions

        def gate(at: int) -> Array:
            return needed(self.gates[at]).value(given[at], before, c)

        forget = functions.logistic(gate(FORGET))
        entry = 1 - forget if self.gates[INPUT] is None else functions.logistic(gate(INPUT))
        c = forget * c + entry * functions.activate(self.activation, gate(CELL))
        c = _clip(c, self.cell_clip)
        h = functions.logistic(gate(OUTPUT)) * functions.activate(self.activation, c)
        if self.projection is not None:
            h = self.projection.times(self.quantizer.rows(h))
            h = h if self.projection_bias is None else self.projection_bias + h
            h = _clip(h, self.projection_clip)
        return h, c


def _clip(x: Array, bound: float) -> Array:
    return np.clip(x, -np.float32(bound), np.float32(bound)) if bound > 0 else x


def cell(
    elements: Parts[Array],
    types: Parts[TensorType] | None,
    quantizer: Quantizer,
    activation: Activation,
    clips: tuple[float, float],
) -> Cell:
    """The cell built from a layer's operands; `types` are given if its weights may be integers."""
    gates: list[_Gate | None] = []
    for at in (INPUT, FORGET, CELL, OUTPUT):
        if elements.weights[at] is None:
            gates.append(None)
            continue
        peephole, aux = elements.peephole[at], elements.aux[at]
        kinds = None if types is None else (types.weights[at], types.recurrent[at], types.peephole[at], types.aux[at])
        kind = kinds or (None,) * 4
        gates.append(
            _Gate(
                weights(needed(elements.weights[at]), kind[0]),
                weights(needed(elements.recurrent[at]), kind[1]),
                needed(elements.bias[at]),
                None if peephole is None else real(peephole, kind[2]),
                elements.norm[at],
                None if aux is None else weights(aux, kind[3]),
            )
        )
    projection = elements.projection
    return Cell(
        tuple(gates),
        None if projection is None else weights(projection, None if types is None else types.projection),
        elements.projection_bias,
        quantizer,
        activation,
        *clips,
    )
