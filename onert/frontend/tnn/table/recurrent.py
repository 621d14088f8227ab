"""LSTM layers.

Source: TNN's lstm_layer_interpreter.cc, lstm_layer.cc and cpu_lstm_layer_acc.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.frontend.tnn.graph import Graph
from onert.frontend.tnn.site import Site
from onert.ir import ModelError
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.joining import Concat, Pack, SplitV
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.recurrent.lstm import LSTM

from .spans import LARGEST

_FORWARD, _BACKWARD, _BOTH = 0, 1, 2
_GATES = 4


def _parameters(site: Site) -> tuple[int, tuple[bool, ...]]:
    """The number of cells, and for each direction whether it is backward.

    TNN reads a clipping bound but does not apply it.
    """
    site.number("clip", 0.0)
    cells = site.integer("cells", None, 1, LARGEST)
    direction = site.integer("direction", _FORWARD, _FORWARD, _BOTH)
    return cells, (False, True) if direction == _BOTH else (direction == _BACKWARD,)


def weight_shape(site: Site, x: tuple[int, ...], at: int) -> tuple[int, ...] | None:
    """The shape of input `at` of a layer whose first input is `x`: weights, recurrent weights, biases, states."""
    cells, backwards = _parameters(site)
    ways, batch = len(backwards), x[1] if len(x) > 1 else 1
    shapes = {1: (_GATES * cells, math.prod(x[2:])), 2: (_GATES * cells, cells), 3: (2 * _GATES * cells,)}
    return (ways, *shapes.get(at, (batch, cells))) if at < 6 else None


def _lstm(site: Site) -> Sequence[int]:
    """LSTM over [time, batch, ...]: the outputs of all steps, with both directions concatenated, and the last states.

    Gates are stored in the order input, output, forget, cell.
    """
    g = site.graph
    cells, backwards = _parameters(site)
    shape = site.shape
    count = len(site.layer.inputs)
    if len(shape) < 3 or count not in (4, 6):
        raise ModelError(
            f"it has {count} inputs and the first has the shape {list(shape)}, expected 4 or 6 and [t, n, i]"
        )
    time, batch, *features = shape
    x = g.add(Reshape((time, batch, math.prod(features))), site.x)
    outputs, hs, cs = [], [], []
    for way, backward in enumerate(backwards):
        weights, recurrent = (_gates(g, _of(site, at, way, shape), cells, _GATES) for at in (1, 2))
        biases = _gates(g, _of(site, 3, way, shape), cells, 2 * _GATES)
        bi, bo, bf, bc = (g.binary(BinaryKind.ADD, biases[i], biases[_GATES + i]) for i in range(_GATES))
        h, c = (_of(site, at, way, shape) if count == 6 else _zeros(g, batch, cells) for at in (4, 5))
        wi, wo, wf, wc = weights
        ri, ro, rf, rc = recurrent
        turned = _reverse(g, x) if backward else x
        gates = (wi, wf, wc, wo, ri, rf, rc, ro, None, None, None, bi, bf, bc, bo, None, None)
        y, h, c = g.add_many(LSTM(Activation.TANH, time_major=True), turned, *gates, h, c)
        outputs.append(_reverse(g, y) if backward else y)
        hs.append(h)
        cs.append(c)
    found = [g.add(Concat(2), *outputs) if len(outputs) > 1 else outputs[0], g.add(Pack(0), *hs), g.add(Pack(0), *cs)]
    return found[: len(site.layer.outputs)]


def _of(site: Site, at: int, way: int, x: tuple[int, ...]) -> int:
    """The part of an input that belongs to one direction, reshaped."""
    g, operand = site.graph, site.input(at)
    whole = weight_shape(Site(g, site.layer), x, at)
    given = g.shape(operand)
    if whole is None or math.prod(given) != math.prod(whole):
        raise ModelError(f"input {at} has the shape {list(given)}, expected {list(whole or ())}")
    parted = g.add(Reshape(whole), operand)
    begin = (way, *(0,) * (len(whole) - 1))
    return g.add(Reshape(whole[1:]), g.add(Slice(), parted, g.integers(begin), g.integers((1, *whole[1:]))))


def _gates(g: Graph, operand: int, cells: int, count: int) -> tuple[int, ...]:
    return g.add_many(SplitV(count), operand, g.integers((cells,) * count), g.integers([0]))


def _zeros(g: Graph, batch: int, cells: int) -> int:
    return g.add(Fill(), g.integers((batch, cells)), g.constant(np.zeros((), np.float32)))


def _reverse(g: Graph, x: int) -> int:
    return g.add(Reverse(), x, g.integers([0]))


LAYERS = {"LSTMONNX": _lstm}
