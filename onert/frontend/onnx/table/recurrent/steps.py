"""Recurrent layers as loops over time, which support all activations, sequence lengths, clipping and both resets."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.frontend.onnx.draft import Draft, capture
from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import EnclosingGraph
from onert.frontend.onnx.table.control import add_loop
from onert.frontend.onnx.table.elements.movement import split
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import LeakyRelu, UnaryKind

from .layer import Layer, Product

_DEFAULTS = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
}
"""Activations with one parameter, alpha, or two, alpha and beta, and their defaults."""
_PLAIN = {
    "relu": UnaryKind.RELU,
    "tanh": UnaryKind.TANH,
    "sigmoid": UnaryKind.LOGISTIC,
    "softplus": UnaryKind.SOFTPLUS,
}


def activation_names(layer: Layer, expected: tuple[str, ...]) -> tuple[str, ...]:
    """The activations of all directions in lower case. Raises ModelError for a wrong number or an unknown name.

    RNN's default is one for each of two directions. ONNX Runtime writes it to its files for a single direction too.
    """
    wanted = expected * len(layer.backwards)
    given = tuple(name.lower() for name in layer.node.texts("activations")) or wanted
    if layer.node.op_type == "RNN":
        given = given[: len(wanted)]
    if len(given) != len(wanted):
        raise ModelError(f"there are {len(given)} activations, expected {len(wanted)}")
    unknown = next((name for name in given if name not in (*_PLAIN, *_DEFAULTS, "softsign")), None)
    if unknown is not None:
        raise ModelError(f"the activation {unknown!r} is not one of ONNX's")
    return given


@frozen
class _Function:
    """An activation with its parameters."""

    name: str
    numbers: tuple[float, ...] = ()

    def __call__(self, x: Expression) -> Expression:
        if self.name in _PLAIN:
            return x.unary(_PLAIN[self.name])
        if self.name == "softsign":
            return x / (x.unary(UnaryKind.ABS) + 1)
        alpha, *rest = self.numbers
        if self.name == "affine":
            return x * alpha + rest[0]
        if self.name == "leakyrelu":
            return x.of(x.draft.add(LeakyRelu(alpha), x.operand))
        if self.name == "thresholdedrelu":
            return (x >= alpha).select(x, 0.0)
        if self.name == "scaledtanh":
            return (x * rest[0]).unary(UnaryKind.TANH) * alpha
        if self.name == "hardsigmoid":
            return (x * alpha + rest[0]).unary(UnaryKind.RELU_0_TO_1)
        return (x < 0).select((x.unary(UnaryKind.EXP) - 1) * alpha, x)


def _functions(layer: Layer, count: int) -> list[_Function]:
    """All activations in order, each taking the next of the remaining parameters."""
    expected = {1: ("tanh",), 2: ("sigmoid", "tanh"), 3: ("sigmoid", "tanh", "tanh")}[count]
    alphas = list(layer.node.numbers("activation_alpha") or ())
    betas = list(layer.node.numbers("activation_beta") or ())
    found = []
    for name in activation_names(layer, expected):
        defaults = _DEFAULTS.get(name, ())
        numbers = tuple(
            kind.pop(0) if kind else default for kind, default in zip((alphas, betas), defaults, strict=False)
        )
        found.append(_Function(name, numbers))
    return found


@frozen(eq=False)
class _Cell:
    """One direction's activations, and the operands used in every step.

    `clip` bounds the arguments of the gates' activations. An LSTM's cell is not bounded where it becomes the state, as
    in ONNX Runtime.
    """

    kind: str
    functions: list[_Function]
    clip: float | None
    couple: bool
    after: bool
    units: int

    def bounded(self, x: Expression) -> Expression:
        return x if self.clip is None else x.at_least(-self.clip).at_most(self.clip)

    def step(
        self, given: Expression, h: Expression, c: Expression | None, recurrent: list[Product], more: list[Expression]
    ) -> tuple[Expression, Expression | None]:
        """The next state, and for an LSTM the next cell. `given` is the contribution of the input to each gate."""
        if self.kind == "RNN":
            return self.functions[0](self.bounded(given + recurrent[0](h))), None
        if self.kind == "GRU":
            return self._gru(given, h, recurrent, more), None
        assert c is not None
        return self._lstm(given, h, c, recurrent, more)

    def _parts(self, x: Expression, count: int) -> list[Expression]:
        return [x.of(part) for part in split(x.draft, x.operand, [self.units] * count, x.rank - 1)]

    def _gru(self, given: Expression, h: Expression, recurrent: list[Product], more: list[Expression]) -> Expression:
        f, g = self.functions
        both, last = recurrent
        z_given, r_given, h_given = self._parts(given, 3)
        z_own, r_own = self._parts(both(h), 2)
        z, r = f(self.bounded(z_given + z_own)), f(self.bounded(r_given + r_own))
        bias = more[0]
        own = r * (last(h) + bias) if self.after else last(r * h) + bias
        new = g(self.bounded(h_given + own))
        return (1 - z) * new + z * h

    def _lstm(
        self, given: Expression, h: Expression, c: Expression, recurrent: list[Product], more: list[Expression]
    ) -> tuple[Expression, Expression]:
        f, g, last = self.functions
        i, o, forget, new = self._parts(given + recurrent[0](h), 4)
        if more:
            i, forget = i + more[0] * c, forget + more[2] * c
        i = f(self.bounded(i))
        forget = 1 - i if self.couple else f(self.bounded(forget))
        cell = forget * c + i * g(self.bounded(new))
        o = o + more[1] * cell if more else o
        return f(self.bounded(o)) * last(cell), cell


def as_loop(layer: Layer, kind: str) -> tuple[int, ...]:
    """The results of a layer of kind RNN, GRU or LSTM."""
    each = {"RNN": 1, "GRU": 2, "LSTM": 3}[kind]
    functions = _functions(layer, each)
    outputs, hs, cs = [], [], []
    for at in range(len(layer.backwards)):
        own = functions[at * each : (at + 1) * each]
        y, h, c = _direction(layer, kind, own, at)
        outputs.append(layer.time_ordered(y, at))
        hs.append(h)
        cs += [] if c is None else [c]
    return layer.results(outputs, hs, *([cs] if cs else []))


def _direction(layer: Layer, kind: str, functions: list[_Function], at: int) -> tuple[int, int, int | None]:
    d, node = layer.d, layer.node
    clip = node.number("clip") if node.has_attribute("clip") else None
    cell = _Cell(kind, functions, clip, node.flag("input_forget"), node.flag("linear_before_reset"), layer.units)
    x = Expression(d, layer.time_ordered(layer.x, at))
    recurrent = layer.products(2, at, *((2, 1) if kind == "GRU" else ()))
    (given,) = layer.products(1, at)
    sums = given(x)
    bias = [[x.of(b) for b in side] for side in layer.biases(at)]
    if kind == "GRU":  # the last gate's recurrent bias is added next to its product
        more = [bias[1][2]]
        bias[1][2] = bias[1][2] * 0
    elif kind == "LSTM" and node.has(7):
        more = [x.of(p) for p in layer.gate_parts(node.input(7), at, 3)]
    else:
        more = []
    sums = sums + bias[0][0].concat(bias[0][1:], 0) + bias[1][0].concat(bias[1][1:], 0)
    initial = [layer.state(5, at)] + ([layer.state(6, at)] if kind == "LSTM" else [])

    def each(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        def captured(outer: int) -> Expression:
            return Expression(inner, capture(d, inner, outer))

        index = Expression(inner, at)
        old = [Expression(inner, state) for state in now]
        h, c = cell.step(
            captured(sums.operand).take(index, 0),
            old[0],
            old[1] if len(old) > 1 else None,
            recurrent,
            [captured(m.operand) for m in more],
        )
        new = [h] if c is None else [h, c]
        y = h
        if layer.lengths is not None:
            within = (index < captured(layer.lengths)).unsqueeze(1)
            y = within.select(h, 0.0)
            new = [within.select(n, o) for n, o in zip(new, old, strict=True)]
        return go, [n.operand for n in new], [y.operand]

    begin = d.constant(np.array(True), DType.BOOL)
    last, (y,) = add_loop(node, x.size(0).scalar().operand, begin, initial, each)
    return y, last[0], last[1] if len(last) > 1 else None
