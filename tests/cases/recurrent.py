"""Cases of recurrent layers, and of filters over features and time (SVDF)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from onert.ir import Array, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.rnn import RNN, BidirectionalRNN
from onert.ir.ops.recurrent.svdf import SVDF
from onert.ir.ops.recurrent.tanh_of_sum import TanhOfSum

from .case import Case

_RNG = np.random.default_rng(6)


def _some(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


def _q(scale: float, zero: int = 0) -> Quantization:
    return Quantization((scale,), (zero,))


def _dot(matrix: Array, vector: Array, row: int) -> float:
    return sum(float(w) * float(v) for w, v in zip(matrix[row], vector, strict=True))


def _run(
    parts: tuple[Array, Array, Array],
    x: Array,
    h: Array,
    act: Callable[[float], float],
    more: tuple[Array, Array] | None = None,
    *,
    backward: bool = False,
) -> tuple[Array, Array]:
    """Outputs [batch, time, units] and the last of them, for sequences [batch, time, features]."""
    weights, recurrent, bias = parts
    outputs, h = np.zeros((*x.shape[:2], len(bias)), np.float32), h.copy()
    for item in range(len(x)):
        for at in reversed(range(x.shape[1])) if backward else range(x.shape[1]):
            z = [_dot(weights, x[item, at], u) + _dot(recurrent, h[item], u) + float(b) for u, b in enumerate(bias)]
            if more is not None:
                z = [v + _dot(more[1], more[0][item, at], u) for u, v in enumerate(z)]
            h[item] = outputs[item, at] = [act(v) for v in z]
    return outputs, h


def _layer(features: int, units: int) -> tuple[Array, Array, Array]:
    return _some(units, features), _some(units, units), _some(units)


def _relu(x: float) -> float:
    return max(x, 0.0)


def _sequence(name: str, *, major: bool, steps: int = 3) -> Case:
    parts, x, h = _layer(2, 3), _some(2, steps, 2), _some(2, 3)
    y, last = _run(parts, x, h, math.tanh)
    if major:
        x, y = x.transpose(1, 0, 2), y.transpose(1, 0, 2)
    return Case(name, RNN(Activation.TANH, major), (x, *parts, h), (y, last))


def _one_step() -> Case:
    parts, x, h = _layer(2, 3), _some(4, 1, 2), _some(4, 3)
    y, last = _run(parts, x, h, _relu)
    return Case("one step", RNN(Activation.RELU), (x[:, 0], *parts, h), (y[:, 0], last))


def _integers(name: str, x: Array, *, asymmetric: bool) -> Case:
    """Inputs that are exact in 8 bits, with a zero state."""
    weights, recurrent, bias = np.int8([[3, -100], [127, 5]]), np.int8([[1, 2], [3, 4]]), np.float32([0.5, -0.25])
    z = np.float32([[sum(float(w) / 8 * float(v) for w, v in zip(r, row, strict=True)) for r in weights] for row in x])
    y = z + bias
    zero = np.zeros((len(x), 2), np.float32)
    op = RNN(asymmetric_inputs=asymmetric)
    return Case(name, op, (x, weights, recurrent, bias, zero), (y, y), (None, _q(1 / 8), _q(1 / 8)))


def _both(name: str, *, major: bool, merge: bool, aux: str) -> Case:
    x, more = _some(2, 3, 2), _some(2, 3, 2)
    layers, states = (_layer(2, 3), _layer(2, 4)), (_some(2, 3), _some(2, 4))
    across = (_some(3, 2), _some(4, 2)) if aux == "linked" else (None, None)
    extra = [None if a is None else (more, a) for a in across]
    first, first_h = _run(layers[0], x, states[0], math.tanh, extra[0])
    read = more if aux == "stacked" else x
    second, second_h = _run(layers[1], read, states[1], math.tanh, extra[1], backward=True)
    results = [np.concatenate([first, second], -1)] if merge else [first, second]
    if major:
        x, more, results = x.transpose(1, 0, 2), more.transpose(1, 0, 2), [r.transpose(1, 0, 2) for r in results]
    last = (None, None, None) if aux == "none" else (more, *across)
    op = BidirectionalRNN(Activation.TANH, major, merge)
    return Case(name, op, (x, *layers[0], states[0], *layers[1], states[1], *last), (*results, first_h, second_h))


def _gru(name: str, *, sequences: bool, biased: bool) -> Case:
    units, x, h = 2, _some(3, 2, 4), _some(2, 2)
    weights, state_weights = _some(3 * units, 4), _some(3 * units, units)
    bias, state_bias = (_some(3 * units), _some(3 * units)) if biased else (None, None)
    outputs, state = np.zeros((3, 2, units), np.float32), h.copy()

    def logistic(v: float) -> float:
        return 1 / (1 + math.exp(-v))

    for at, item in np.ndindex(3, 2):
        given = [_dot(weights, x[at, item], r) + (0 if bias is None else float(bias[r])) for r in range(6)]
        before = [
            _dot(state_weights, state[item], r) + (0 if state_bias is None else float(state_bias[r])) for r in range(6)
        ]
        for unit in range(units):
            z, r = (logistic(given[gate + unit] + before[gate + unit]) for gate in (0, units))
            candidate = math.tanh(given[2 * units + unit] + r * before[2 * units + unit])
            outputs[at, item, unit] = z * float(state[item, unit]) + (1 - z) * candidate
        state[item] = outputs[at, item]
    expected = outputs if sequences else outputs[-1:]
    return Case(name, GRU(sequences), (x, weights, bias, state_weights, state_bias, h), (expected,))


def _svdf(name: str, rank: int, activation: Activation, *, bias: bool) -> Case:
    batch, features, units, memory = 2, 3, 2, 3
    filters = rank * units
    x, feature, time, state = _some(batch, features), _some(filters, features), _some(filters, memory), _some(2, 9)
    state = _some(batch, memory * filters)
    offset = _some(units) if bias else None
    after, y = np.zeros_like(state), np.zeros((batch, units), np.float32)
    for item, f in np.ndindex(batch, filters):
        kept = [float(v) for v in state[item, f * memory + 1 : (f + 1) * memory]]
        kept.append(_dot(feature, x[item], f))
        after[item, f * memory : (f + 1) * memory] = kept
        y[item, f // rank] += sum(k * float(t) for k, t in zip(kept, time[f], strict=True))
    y = y if offset is None else y + offset
    y = np.maximum(y, 0) if activation is Activation.RELU else y
    return Case(name, SVDF(rank, activation), (x, feature, time, offset, state), (y, after))


def _svdf_integers(dtype: type[np.int8] | type[np.int16], zero: int, newest: int, stored: int) -> Case:
    """10 * 2 is 20; with the previous value, time weights 1 and 2, and bias 3, in eighths."""
    return Case(
        f"state of {dtype.__name__}",
        SVDF(1, Activation.RELU),
        (np.int8([[10]]), np.int8([[2]]), np.array([[1, 2]], dtype), np.int32([3]), np.array([[3, 7]], dtype)),
        (np.int8([[stored]]), np.array([[7, newest]], dtype)),
        (_q(0.5), _q(0.5), _q(0.25), None, _q(0.25, zero)),
        (_q(0.5, -128), _q(0.25, zero)),
    )


CASES = [
    _one_step(),
    _sequence("batch first", major=False),
    _sequence("time first", major=True),
    _sequence("one step of a sequence", major=False, steps=1),
    _integers("integer weights", np.float32([[127, -50], [0, 0], [-127, 1]]) / 16, asymmetric=False),
    _integers("integer weights, inputs above 0", np.float32([[255, 100], [0, 0]]) / 16, asymmetric=True),
    _both("in both directions", major=False, merge=False, aux="none"),
    _both("in both directions, one result", major=True, merge=True, aux="none"),
    _both("in both directions, a second sequence for both", major=False, merge=True, aux="linked"),
    _both("in both directions, a second sequence for one", major=False, merge=False, aux="stacked"),
    _gru("last state", sequences=False, biased=True),
    _gru("all states, no biases", sequences=True, biased=False),
    _svdf("one filter a unit", 1, Activation.NONE, bias=False),
    _svdf("two filters a unit", 2, Activation.RELU, bias=True),
    _svdf_integers(np.int16, 0, 20, -122),
    _svdf_integers(np.int8, 1, 21, -122),
    Case(
        "integer weights and a float state",
        SVDF(1),
        (np.float32([[127, -10]]) / 16, np.int8([[1, 2]]), np.int8([[4, 8]]), None, np.float32([[0, 3]])),
        (np.float32([[3 * 2 + (127 - 20) / 16 / 2 * 4]]), np.float32([[3, (127 - 20) / 16 / 2]])),
        (None, _q(0.5), _q(0.5)),
    ),
    Case(
        "saturates",
        TanhOfSum(),
        (np.float32([[0.25, -40.0, 3.0]]), np.float32([[0.25, 20.0, 40.0]])),
        (np.float32([[math.tanh(0.5), -1, 1]]),),
        tolerance=1e-6,
    ),
]
