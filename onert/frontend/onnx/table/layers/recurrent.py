"""Recurrent layers: gates are put into the order of our operations, each direction is a layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.frontend.onnx.building import binary, dimension, ints, joined, require_rank, transpose
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.movement import split
from onert.ir import DType, ModelError
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.data_movement.reshape import Squeeze
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.rnn import RNN

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class _Layer:
    """Operands that all layers have: the sequence [time, batch, features], and for each direction its weights."""

    def __init__(self, node: Node, gates: int) -> None:
        d = self.d = node.draft
        self.node = node
        direction = node.text("direction", "forward")
        if direction not in _DIRECTIONS:
            raise ModelError(f"direction is {direction!r}, expected {', '.join(_DIRECTIONS)}")
        self.backwards = _DIRECTIONS[direction]
        self.gates = gates
        self.batch_first = node.version >= 14 and node.flag("layout")
        x = node.input(0)
        if require_rank(d, x) != 3:
            raise ModelError(f"is given {d.type(x)}, expected 3 dimensions")
        self.x = transpose(d, x, (1, 0, 2)) if self.batch_first else x
        self.dtype = d.type(x).dtype
        units = d.type(node.input(2)).shape[-1]
        if units is None:
            raise ModelError(f"the recurrent weights are {d.type(node.input(2))}, expected a known shape")
        self.units = units
        if node.given("clip"):
            raise ModelError("attribute clip is not supported")
        self._check_lengths(node)

    def _check_lengths(self, node: Node) -> None:
        """Lengths must be those of the whole sequence."""
        if not node.has(4):
            return
        lengths, time = node.value(4), self.d.type(self.x).shape[0]
        if lengths is None or time is None or not (lengths == time).all():
            raise ModelError("sequence_lens (input 4) are not those of whole sequences, which is not supported")

    def of(self, operand: int, direction: int) -> int:
        """The part of an operand for one direction."""
        if len(self.backwards) == 1:
            return self.d.add(Squeeze((0,)), operand)
        return self.d.add(Gather(0), operand, self.d.constant(direction, DType.INT32))

    def parts(self, operand: int, direction: int, count: int) -> tuple[int, ...]:
        """The rows of each gate."""
        return split(self.d, self.of(operand, direction), [self.units] * count, 0)

    def biases(self, direction: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Those beside the input's weights and those beside the state's, zeros where there are none."""
        if self.node.has(3):
            found = self.parts(self.node.input(3), direction, 2 * self.gates)
            return found[: self.gates], found[self.gates :]
        zeros = (self.d.constant(np.zeros(self.units, self.dtype.numpy), self.dtype),) * self.gates
        return zeros, zeros

    def state(self, index: int, direction: int) -> int:
        """A first state [batch, units]; zeros where none is given."""
        d = self.d
        if self.node.has(index):
            given = self.node.input(index)
            given = transpose(d, given, (1, 0, 2)) if self.batch_first else given
            return self.of(given, direction)
        shape = joined(d, [dimension(d, self.x, 1), ints(d, [self.units])])
        return d.add(Fill(), shape, d.constant(np.zeros((), self.dtype.numpy), self.dtype))

    def turned(self, x: int, direction: int) -> int:
        return self.d.add(Reverse(), x, ints(self.d, [0], DType.INT32)) if self.backwards[direction] else x

    def results(self, steps: Sequence[int], *lasts: Sequence[int]) -> tuple[int, ...]:
        """Y of [time, directions, batch, units], and last states of [directions, batch, units]."""
        d = self.d
        y = d.add(Pack(1), *steps)
        states = [d.add(Pack(0), *each) for each in lasts]
        if self.batch_first:
            return transpose(d, y, (2, 0, 1, 3)), *(transpose(d, s, (1, 0, 2)) for s in states)
        return y, *states

    def activations(self, expected: Sequence[str]) -> None:
        given = self.node.texts("activations")
        wanted = tuple(expected) * len(self.backwards)
        if given and tuple(g.lower() for g in given) != tuple(w.lower() for w in wanted):
            raise ModelError(f"activations are {', '.join(given)}, expected {', '.join(wanted)}")


def _lstm(node: Node) -> tuple[int, ...]:
    layer = _Layer(node, 4)
    layer.activations(("Sigmoid", "Tanh", "Tanh"))
    if node.flag("input_forget"):
        raise ModelError("attribute input_forget is not supported")
    d = layer.d
    steps, hs, cs = [], [], []
    for at in range(len(layer.backwards)):
        wi, wo, wf, wc = layer.parts(node.input(1), at, 4)
        ri, ro, rf, rc = layer.parts(node.input(2), at, 4)
        own, theirs = layer.biases(at)
        bi, bo, bf, bc = (binary(d, BinaryKind.ADD, a, b) for a, b in zip(own, theirs, strict=True))
        pi, po, pf = layer.parts(node.input(7), at, 3) if node.has(7) else (None, None, None)
        inputs = (wi, wf, wc, wo, ri, rf, rc, ro, pi, pf, po, bi, bf, bc, bo, None, None)
        op = LSTM(Activation.TANH, time_major=True)
        y, h, c = d.add_many(op, layer.turned(layer.x, at), *inputs, layer.state(5, at), layer.state(6, at))
        steps.append(layer.turned(y, at))
        hs.append(h)
        cs.append(c)
    return layer.results(steps, hs, cs)


def _gru(node: Node) -> tuple[int, ...]:
    layer = _Layer(node, 3)
    layer.activations(("Sigmoid", "Tanh"))
    if not node.flag("linear_before_reset"):
        raise ModelError("attribute linear_before_reset is 0, which is not supported")
    d = layer.d
    steps, hs = [], []
    for at in range(len(layer.backwards)):
        own, theirs = (d.add(Concat(0), *part) for part in layer.biases(at))
        weights, recurrent = layer.of(node.input(1), at), layer.of(node.input(2), at)
        x = layer.turned(layer.x, at)
        y = d.add(GRU(return_sequences=True), x, weights, own, recurrent, theirs, layer.state(5, at))
        hs.append(_last(d, y))
        steps.append(layer.turned(y, at))
    return layer.results(steps, hs)


def _last(d: Draft, y: int) -> int:
    """The last of the outputs [time, batch, units]."""
    last = binary(d, BinaryKind.SUB, dimension(d, y, 0), ints(d, [1]))
    return d.add(Squeeze((0,)), d.add(Gather(0), y, last))


_ACTIVATIONS = {"tanh": Activation.TANH, "relu": Activation.RELU}


def _rnn(node: Node) -> tuple[int, ...]:
    layer = _Layer(node, 1)
    d = layer.d
    named = node.texts("activations") or ("Tanh",) * len(layer.backwards)
    steps, hs = [], []
    for at in range(len(layer.backwards)):
        kind = _ACTIVATIONS.get(named[at].lower()) if at < len(named) else None
        if kind is None:
            raise ModelError(f"activations are {', '.join(named)}, expected Tanh or Relu")
        (own,), (theirs,) = layer.biases(at)
        bias = binary(d, BinaryKind.ADD, own, theirs)
        weights, recurrent = layer.of(node.input(1), at), layer.of(node.input(2), at)
        x = layer.turned(layer.x, at)
        y, h = d.add_many(RNN(kind, time_major=True), x, weights, recurrent, bias, layer.state(5, at))
        hs.append(h)
        steps.append(layer.turned(y, at))
    return layer.results(steps, hs)


_IMPORTERS: dict[str, Importer] = {"GRU": _gru, "LSTM": _lstm, "RNN": _rnn}
TABLE = {("", name): importer for name, importer in _IMPORTERS.items()}
