"""Cases of LSTMs: steps written out cell by cell, and integers small enough to calculate by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from onert.ir import Array, DType, Quantization, TensorType
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_basic import BasicLSTM
from onert.ir.ops.recurrent.lstm_bidirectional import BidirectionalLSTM

from .case import Case

_RNG = np.random.default_rng(5)


def _some(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


@frozen(eq=False)
class _Layer:
    """The weights of a layer, one for each gate (input, forget, cell, output); None for those it does not have."""

    inputs: Sequence[Array | None]
    recurrent: Sequence[Array | None]
    bias: Sequence[Array | None]
    peephole: Sequence[Array | None] = (None,) * 4
    norm: Sequence[Array | None] = (None,) * 4
    aux: Sequence[Array | None] = (None,) * 4
    projection: Array | None = None
    projection_bias: Array | None = None
    cell_clip: float = field(default=math.inf)
    projection_clip: float = field(default=math.inf)

    @property
    def operands(self) -> tuple[Array | None, ...]:
        peephole = (self.peephole[0], self.peephole[1], self.peephole[3])
        return (*self.inputs, *self.recurrent, *peephole, *self.bias, self.projection, self.projection_bias)


def _layer(inputs: int, cells: int, outputs: int, *parts: str, aux: int = 0, **clips: float) -> _Layer:
    first = 1 if "coupled" in parts else 0

    def gates(*shape: int, there: bool = True, cell: bool = True) -> list[Array | None]:
        return [_some(*shape) if there and at >= first and (cell or at != 2) else None for at in range(4)]

    projected = "projection" in parts
    return _Layer(
        gates(cells, inputs),
        gates(cells, outputs),
        gates(cells),
        gates(cells, there="peephole" in parts, cell=False),
        gates(cells, there="norm" in parts),
        gates(cells, aux, there=aux > 0),
        _some(outputs, cells) if projected else None,
        _some(outputs) if projected else None,
        **clips,
    )


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _dot(matrix: Array | None, vector: Sequence[float], row: int) -> float:
    return 0.0 if matrix is None else sum(float(w) * v for w, v in zip(matrix[row], vector, strict=True))


def _gate(layer: _Layer, at: int, x: Sequence[float], more: Sequence[float], h: list[float], c: list[float]) -> Any:
    """All cells of one gate, before the activation."""
    bias, norm, peephole = layer.bias[at], layer.norm[at], layer.peephole[at]
    assert bias is not None
    z = []
    for cell in range(len(bias)):
        value = _dot(layer.inputs[at], x, cell) + _dot(layer.recurrent[at], h, cell) + _dot(layer.aux[at], more, cell)
        z.append(value + (0.0 if peephole is None else float(peephole[cell]) * c[cell]))
    if norm is None:
        return [v + float(b) for v, b in zip(z, bias, strict=True)]
    mean = sum(z) / len(z)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in z) / len(z) + 1e-8)
    return [(v - mean) / deviation * float(n) + float(b) for v, n, b in zip(z, norm, bias, strict=True)]


def _step(layer: _Layer, x: Sequence[float], more: Sequence[float], h: list[float], c: list[float]) -> Any:
    forget = [_logistic(v) for v in _gate(layer, 1, x, more, h, c)]
    coupled = layer.inputs[0] is None
    entry = [1 - f for f in forget] if coupled else [_logistic(v) for v in _gate(layer, 0, x, more, h, c)]
    update = [math.tanh(v) for v in _gate(layer, 2, x, more, h, c)]
    c = [f * s + e * u for f, s, e, u in zip(forget, c, entry, update, strict=True)]
    c = [min(max(s, -layer.cell_clip), layer.cell_clip) for s in c]
    out = [_logistic(v) * math.tanh(s) for v, s in zip(_gate(layer, 3, x, more, h, c), c, strict=True)]
    if layer.projection is not None:
        assert layer.projection_bias is not None
        out = [_dot(layer.projection, out, at) + float(b) for at, b in enumerate(layer.projection_bias)]
        out = [min(max(v, -layer.projection_clip), layer.projection_clip) for v in out]
    return out, c


def _run(layer: _Layer, x: Array, more: Array | None, h: Array, c: Array, *, backward: bool = False) -> Any:
    """Outputs [batch, time, outputs] and the last states, for sequences [batch, time, inputs]."""
    outputs = np.zeros((*x.shape[:2], h.shape[1]), np.float32)
    last_h, last_c = np.zeros_like(h), np.zeros_like(c)
    for item in range(len(x)):
        state = ([float(v) for v in h[item]], [float(v) for v in c[item]])
        for at in reversed(range(x.shape[1])) if backward else range(x.shape[1]):
            extra = [] if more is None else [float(v) for v in more[item, at]]
            state = _step(layer, [float(v) for v in x[item, at]], extra, *state)
            outputs[item, at] = state[0]
        last_h[item], last_c[item] = state
    return outputs, last_h, last_c


def _floats(name: str, op: LSTM, layer: _Layer, *, flat: bool = False, steps: int = 3) -> Case:
    bias = layer.bias[3]
    assert bias is not None
    inputs, cells = next(w for w in layer.inputs if w is not None).shape[1], len(bias)
    outputs = next(r for r in layer.recurrent if r is not None).shape[1]
    x, h, c = _some(2, steps, inputs), _some(2, outputs), _some(2, cells)
    y, last_h, last_c = _run(layer, x, None, h, c)
    if op.time_major:
        x, y = x.transpose(1, 0, 2), y.transpose(1, 0, 2)
    if flat:
        x, y, h, c, last_h, last_c = x[:, 0], y[:, 0], *(a.reshape(-1) for a in (h, c, last_h, last_c))
    return Case(name, op, (x, *layer.operands, h, c, *layer.norm), (y, last_h, last_c))


def _both(name: str, *, merge: bool, major: bool, aux: str) -> Case:
    layers = [_layer(2, 3, size, "projection", aux=4 if aux == "linked" else 0) for size in (3, 2)]
    x, more = _some(2, 3, 2), _some(2, 3, 4 if aux == "linked" else 2)
    states = [(_some(2, size), _some(2, 3)) for size in (3, 2)]
    linked = more if aux == "linked" else None
    first = _run(layers[0], x, linked, *states[0])
    second = _run(layers[1], more if aux == "stacked" else x, linked, *states[1], backward=True)
    results = [np.concatenate([first[0], second[0]], -1)] if merge else [first[0], second[0]]
    if major:
        x, more = x.transpose(1, 0, 2), more.transpose(1, 0, 2)
        results = [r.transpose(1, 0, 2) for r in results]
    last = (None,) * 9 if aux == "none" else (more, *layers[0].aux, *layers[1].aux)
    return Case(
        name,
        BidirectionalLSTM(time_major=major, merge_outputs=merge),
        (x, *layers[0].operands, *layers[1].operands, *states[0], *states[1], *last),
        (*results, first[1], first[2], second[1], second[2]),
    )


def _q(scale: float, zero: int = 0) -> Quantization:
    return Quantization((scale,), (zero,))


def _dynamic_range(name: str, x: Array, *, asymmetric: bool) -> Case:
    """One step from a zero state, with inputs that are exact in 8 bits."""
    layer, zero = _layer(2, 2, 2), np.zeros((1, 2), np.float32)
    scale = 1 / 64
    stored = [np.round(w / scale).astype(np.int8) for w in (*layer.inputs, *layer.recurrent) if w is not None]
    exact = [(s * np.float32(scale)).astype(np.float32) for s in stored]
    y, h, c = _run(_Layer(exact[:4], exact[4:], layer.bias), x[:, None], None, zero, zero)
    rest = (None, None, None, *layer.bias, None, None, zero, zero)
    op = LSTM(asymmetric_inputs=asymmetric)
    return Case(name, op, (x, *stored, *rest), (y[:, 0], h, c), (None, *(_q(scale),) * 8))


def _wide(
    name: str, x: Array, gates: int, expected: tuple[Array, ...], scale: float = 2.0**-11, **attributes: Any
) -> Case:
    """One cell with zero weights, so each gate is half open and the update is zero. Its state has this scale."""
    none, zero, bias = np.zeros((1, 1), np.int8), np.zeros((1, 1), np.int8), np.zeros(1, np.int32)
    first = 4 - gates
    weights = (*(None,) * first, *(none,) * gates)
    biases = (*(None,) * first, *(bias,) * gates)
    hidden = TensorType(DType.INT8, (1,), _q(1 / 128, 10))
    sums = TensorType(DType.INT16, (1,))
    w = (*(None,) * first, *(_q(0.5),) * gates)
    return Case(
        name,
        LSTM(intermediates=(sums, sums, sums, sums, hidden), **attributes),
        (x, *weights, *weights, None, None, None, *biases, None, None, zero, np.full((1, 1), 8192, np.int16)),
        expected,
        (_q(0.5), *w, *w, None, None, None, *(None,) * 6, _q(1 / 128, 10), _q(scale)),
        (_q(1 / 128, 10), _q(1 / 128, 10), _q(scale)),
    )


def _narrow() -> Case:
    """A cell state of 0.5 is halved; tanh(0.25) is 8025 / 2**15, halved 4013, projected 64 * 4013 / 2**14."""
    zero, bias, norm = np.zeros((1, 1), np.int8), np.zeros(1, np.int32), np.ones(1, np.int16)
    weights = (None, zero, zero, zero)
    kinds = (None, *(_q(0.5),) * 3)
    return Case(
        "narrow gates",
        LSTM(intermediates=(TensorType(DType.INT8, (1,), _q(0.25, 2)),) * 12),
        (
            *(np.int8([[5]]), *weights, *weights, None, None, None, None, bias, bias, bias),
            *(np.full((1, 1), 64, np.int8), bias, zero, np.full((1, 1), 16384, np.int16), None, norm, norm, norm),
        ),
        (np.int8([[19]]), np.int8([[19]]), np.int16([[8192]])),
        (
            *(_q(0.5), *kinds, *kinds, *(None,) * 7, _q(1 / 64), None, _q(1 / 128, 3), _q(2.0**-15)),
            *(None, *(_q(2.0**-12),) * 3),
        ),
        (_q(1 / 128, 3), _q(1 / 128, 3), _q(2.0**-15)),
    )


def _basic() -> Case:
    x, h, c, weights, bias = _some(2, 3), _some(2, 2), _some(2, 2), _some(8, 5), _some(8)
    both = np.concatenate([x, h], 1)
    gates = np.float32([[_dot(weights, row.tolist(), at) + float(bias[at]) for at in range(8)] for row in both])
    state, y = np.zeros_like(c), np.zeros_like(c)
    for item, cell in np.ndindex(2, 2):
        entry, update, forget, output = (float(gates[item, 2 * gate + cell]) for gate in range(4))
        kept = _logistic(forget) * float(c[item, cell])
        state[item, cell] = kept + _logistic(entry) * math.tanh(update)
        y[item, cell] = _logistic(output) * math.tanh(state[item, cell])
    return Case("one matrix of floats", BasicLSTM(), (x, h, weights, bias, c), (y, state, both, gates, y, state))


def _basic_integers() -> Case:
    """Weights equal to their zero point: half-open gates halve the state 2 to 1, and half of tanh(1) is 49 / 128."""
    unit, state = _q(1 / 128, 128), _q(2.0**-11)
    x, h = np.uint8([[200, 3]]), np.uint8([[128]])
    y, kept = np.uint8([[128 + 49]]), np.int16([[2048]])
    return Case(
        "one matrix of integers",
        BasicLSTM(),
        (x, h, np.full((4, 3), 99, np.uint8), np.zeros(4, np.int32), np.int16([[4096]])),
        (y, kept, np.uint8([[200, 3, 128]]), np.zeros((1, 4), np.int16), y, kept),
        (unit, unit, _q(0.02, 99), _q(0.02 / 128), state),
        (unit, state, unit, _q(2.0**-12), unit, state),
    )


# Half of tanh(2) is 61.7 / 128, and the zero point of the hidden state is 10.
_HALF_OPEN = (np.int8([[72]]), np.int16([[4096]]))
# With a scale of 2**-16 the state 4096 is 1/16: half of its tanh is 4.0 / 128.
_FINE = (np.int8([[14]]), np.int16([[4096]]))

CASES = [
    _floats("batch first", LSTM(), _layer(2, 3, 3)),
    _floats("time first", LSTM(time_major=True), _layer(2, 3, 3)),
    _floats("coupled input and forget gates", LSTM(), _layer(3, 2, 2, "coupled")),
    _floats("peepholes", LSTM(), _layer(1, 2, 2, "peephole")),
    _floats("projection", LSTM(), _layer(2, 4, 3, "projection")),
    _floats("normalised", LSTM(), _layer(2, 5, 5, "norm", "coupled"), steps=1),
    _floats("one step, flat states", LSTM(), _layer(2, 3, 3), flat=True, steps=1),
    _floats(
        "bounded",
        LSTM(cell_clip=0.2, projection_clip=0.1),
        _layer(2, 3, 3, "projection", cell_clip=0.2, projection_clip=0.1),
    ),
    _dynamic_range("integer weights", np.float32([[127, -50]]) / 64, asymmetric=False),
    _dynamic_range("integer weights, inputs above 0", np.float32([[255, 100]]) / 64, asymmetric=True),
    _wide("integers", np.int8([[5]]), 4, (_HALF_OPEN[0], *_HALF_OPEN)),
    _wide("integers, with a state finer than Q0", np.int8([[5]]), 4, (_FINE[0], *_FINE), scale=2.0**-16),
    _wide("coupled integers", np.int8([[[5]]]), 3, (_HALF_OPEN[0][None], *_HALF_OPEN), time_major=True),
    _wide("bounded integers", np.int8([[5]]), 4, (np.int8([[40]]), np.int8([[40]]), np.int16([[1024]])), cell_clip=0.5),
    _narrow(),
    _basic(),
    _basic_integers(),
    _both("in both directions", merge=False, major=False, aux="none"),
    _both("in both directions, one result", merge=True, major=True, aux="none"),
    _both("in both directions, a second sequence for both", merge=True, major=False, aux="linked"),
    _both("in both directions, a second sequence for one", merge=False, major=True, aux="stacked"),
]
