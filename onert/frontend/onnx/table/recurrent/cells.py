"""Recurrent layers as the IR's operations: gates are reordered, and each direction becomes a layer."""

from __future__ import annotations

from functools import partial

import numpy as np
from attrs import evolve

from onert.frontend.onnx.building import binary, cast, dimension, ints
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node, Results, Value
from onert.ir import DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Squeeze
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.rnn import RNN

from .layer import Layer
from .steps import activation_names, as_loop


def _is_plain(layer: Layer, expected: tuple[str, ...]) -> bool:
    """Whether the IR's operation matches: no clipping, and the expected activations."""
    functions = activation_names(layer, expected)
    return not layer.node.has_attribute("clip") and functions == expected * len(layer.backwards)


def _lstm(node: Node) -> tuple[int, ...]:
    layer = Layer(node, 4)
    if not _is_plain(layer, ("sigmoid", "tanh", "tanh")) or node.flag("input_forget"):
        return as_loop(layer, "LSTM")
    d = layer.d
    steps, hs, cs = [], [], []
    for at in range(len(layer.backwards)):
        wi, wo, wf, wc = layer.gate_parts(node.input(1), at, 4)
        ri, ro, rf, rc = layer.gate_parts(node.input(2), at, 4)
        own, theirs = layer.biases(at)
        bi, bo, bf, bc = (binary(d, BinaryKind.ADD, a, b) for a, b in zip(own, theirs, strict=True))
        pi, po, pf = layer.gate_parts(node.input(7), at, 3) if node.has(7) else (None, None, None)
        x, initial = layer.time_ordered(layer.x, at), layer.state(5, at)
        if layer.lengths is not None:
            x = layer.marked(x)
            wi, wf, wc, wo = (_with_column(layer, w, n) for w, n in ((wi, -_SHUT), (wf, _SHUT), (wc, 0.0), (wo, 0.0)))
        inputs = (wi, wf, wc, wo, ri, rf, rc, ro, pi, pf, po, bi, bf, bc, bo, None, None)
        op = LSTM(Activation.TANH, time_major=True)
        y, h, c = d.add_many(op, x, *inputs, initial, layer.state(6, at))
        if layer.lengths is not None:
            y, h = layer.until_end(y, initial)
        steps.append(layer.time_ordered(y, at))
        hs.append(h)
        cs.append(c)
    return layer.results(steps, hs, cs)


_SHUT = 1e4
"""Added to a gate's sum, this closes it completely, or opens it: the logistic function is 0 or 1."""


def _with_column(layer: Layer, weights: int, value: float) -> int:
    """Weights [units, features] with another column. After the end of a sequence it shuts the input gate of an LSTM and
    opens its forget gate, so that the cells stay as they are."""
    column = layer.d.constant(np.full((layer.units, 1), value, layer.dtype.numpy), layer.dtype)
    return layer.d.add(Concat(1), weights, column)


def _gru(node: Node) -> tuple[int, ...]:
    layer = Layer(node, 3)
    if not _is_plain(layer, ("sigmoid", "tanh")) or not node.flag("linear_before_reset"):
        return as_loop(layer, "GRU")
    d = layer.d
    steps, hs = [], []
    for at in range(len(layer.backwards)):
        own, theirs = (d.add(Concat(0), *part) for part in layer.biases(at))
        weights, recurrent = layer.of(node.input(1), at), layer.of(node.input(2), at)
        x = layer.time_ordered(layer.x, at)
        initial = layer.state(5, at)
        y = d.add(GRU(return_sequences=True), x, weights, own, recurrent, theirs, initial)
        y, h = (y, _last(d, y)) if layer.lengths is None else layer.until_end(y, initial)
        hs.append(h)
        steps.append(layer.time_ordered(y, at))
    return layer.results(steps, hs)


def _last(d: Draft, y: int) -> int:
    """The last step of outputs [time, batch, units]."""
    last = binary(d, BinaryKind.SUB, dimension(d, y, 0), ints(d, [1]))
    return d.add(Squeeze((0,)), d.add(Gather(0), y, last))


_ACTIVATIONS = {"tanh": Activation.TANH, "relu": Activation.RELU}


def _rnn(node: Node) -> tuple[int, ...]:
    layer = Layer(node, 1)
    d = layer.d
    functions = activation_names(layer, ("tanh",))
    if node.has_attribute("clip") or not all(f in _ACTIVATIONS for f in functions):
        return as_loop(layer, "RNN")
    steps, hs = [], []
    for at in range(len(layer.backwards)):
        kind = _ACTIVATIONS[functions[at]]
        (own,), (theirs,) = layer.biases(at)
        bias = binary(d, BinaryKind.ADD, own, theirs)
        weights, recurrent = layer.of(node.input(1), at), layer.of(node.input(2), at)
        x = layer.time_ordered(layer.x, at)
        initial = layer.state(5, at)
        y, h = d.add_many(RNN(kind, time_major=True), x, weights, recurrent, bias, initial)
        if layer.lengths is not None:
            y, h = layer.until_end(y, initial)
        hs.append(h)
        steps.append(layer.time_ordered(y, at))
    return layer.results(steps, hs)


def _in_float32(layer: Importer, node: Node) -> Results:
    """A layer; for 16-bit floats, computed in float32 with rounded results."""
    d, dtype = node.draft, node.draft.type(node.input(0)).dtype
    if dtype not in (DType.FLOAT16, DType.BFLOAT16):
        return layer(node)

    def wide(value: Value | None) -> Value | None:
        narrow = isinstance(value, int) and d.type(value).dtype is dtype
        return cast(d, value, DType.FLOAT32) if isinstance(value, int) and narrow else value

    found = layer(evolve(node, inputs=tuple(map(wide, node.inputs))))
    assert isinstance(found, tuple)
    return tuple(cast(d, each, dtype) if isinstance(each, int) else each for each in found)


_IMPORTERS: dict[str, Importer] = {"GRU": _gru, "LSTM": _lstm, "RNN": _rnn}
TABLE = {name: partial(_in_float32, importer) for name, importer in _IMPORTERS.items()}
