"""What recurrent layers share: operands by direction and gate, states, and the layout of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onert.frontend.onnx.building import cast, concat, dimension, ints, require_rank, transpose
from onert.frontend.onnx.draft import Draft, capture
from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import Node
from onert.frontend.onnx.table.elements.movement import split
from onert.frontend.onnx.table.layers.products import matmul
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.gather import Gather, GatherNd
from onert.ir.ops.data_movement.joining import Pack
from onert.ir.ops.data_movement.layout import Reverse, ReverseSequence
from onert.ir.ops.data_movement.reshape import Squeeze

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


Product = Callable[[Expression], Expression]
"""Multiplies rows by the weights of a direction, in the layer's graph or in the body of a loop in it."""


class Layer:
    """Operands common to all layers: the sequence [time, batch, features], and the weights of each direction, which are
    [directions, gates * units, inputs].
    """

    units_axis = 2
    """The axis of the recurrent weights whose size is the number of units."""

    def __init__(self, node: Node, gates: int) -> None:
        d = self.d = node.draft
        self.node = node
        direction = node.choice("direction", _DIRECTIONS, "forward")
        self.backwards = _DIRECTIONS[direction]
        self.gates = gates
        self.batch_first = node.version >= 14 and node.flag("layout")
        x = node.input(0)
        if require_rank(d, x) != 3:
            raise ModelError(f"has input {d.type(x)}, expected 3 dimensions")
        for at in (1, 2):
            if require_rank(d, node.input(at)) != 3:
                raise ModelError(f"the weights (input {at}) are {node.type(at)}, expected 3 dimensions")
        self.x = transpose(d, x, (1, 0, 2)) if self.batch_first else x
        self.dtype = d.type(x).dtype
        units = d.type(node.input(2)).shape[self.units_axis]
        if units is None:
            raise ModelError(f"the recurrent weights are {d.type(node.input(2))}, expected a known shape")
        self.units = units
        self.lengths = self._lengths(node)

    def _lengths(self, node: Node) -> int | None:
        """The sequences' lengths as int64; None if all have the length of the tensor."""
        if not node.has(4):
            return None
        lengths, time = node.value(4), self.d.type(self.x).shape[0]
        if lengths is not None and time is not None and (lengths == time).all():
            return None
        return cast(self.d, node.input(4), DType.INT64)

    def of(self, operand: int, direction: int) -> int:
        """The part of an operand that belongs to a direction."""
        if len(self.backwards) == 1:
            return self.d.add(Squeeze((0,)), operand)
        return self.d.add(Gather(0), operand, self.d.constant(direction, DType.INT32))

    def products(self, index: int, direction: int, *gates: int) -> list[Product]:
        """The products with the weights in input `index`: one for each number of `gates`, or one for all."""
        whole = self.of(self.node.input(index), direction)
        parts = split(self.d, whole, [self.units * count for count in gates], 0) if gates else (whole,)
        return [self._product(transpose(self.d, part, (1, 0))) for part in parts]

    def _product(self, weights: int) -> Product:
        return lambda x: x.of(matmul(x.draft, x.operand, self.inside(x.draft, weights)))

    def inside(self, d: Draft, operand: int) -> int:
        """An operand of the layer's graph in that graph, or in the body of a loop in it."""
        return operand if d is self.d else capture(self.d, d, operand)

    def gate_parts(self, operand: int, direction: int, count: int) -> tuple[int, ...]:
        """The rows of each gate."""
        return split(self.d, self.of(operand, direction), [self.units] * count, 0)

    def biases(self, direction: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The biases of the input and of the state, zeros if there are none."""
        if self.node.has(3):
            found = self.gate_parts(self.node.input(3), direction, 2 * self.gates)
            return found[: self.gates], found[self.gates :]
        zeros = (self.d.constant(np.zeros(self.units, self.dtype.numpy), self.dtype),) * self.gates
        return zeros, zeros

    def state(self, index: int, direction: int) -> int:
        """An initial state [batch, units], zeros if there is none."""
        d = self.d
        if self.node.has(index):
            given = self.node.input(index)
            given = transpose(d, given, (1, 0, 2)) if self.batch_first else given
            return self.of(given, direction)
        shape = concat(d, [dimension(d, self.x, 1), ints(d, [self.units])])
        return d.add(Fill(), shape, d.constant(np.zeros((), self.dtype.numpy), self.dtype))

    def time_ordered(self, x: int, direction: int) -> int:
        """The sequences [time, batch, ...], reversed for a backward direction."""
        if not self.backwards[direction]:
            return x
        if self.lengths is not None:
            return self.d.add(ReverseSequence(0, 1), x, self.lengths)
        return self.d.add(Reverse(), x, ints(self.d, [0], DType.INT32))

    def until_end(self, y: int, initial: int) -> tuple[int, int]:
        """Outputs [time, batch, units] with zeros after the end of each sequence, and each sequence's last output; the
        initial state for an empty one. What a layer computes after the end changes nothing before it.
        """
        d, x = self.d, Expression(self.d, y)
        within, counts = self._within(y)
        ends = (counts - 1).at_least(0).unsqueeze(1).concat([x.size(1).scalar().arange().unsqueeze(1)], 1)
        last = x.of(d.add(GatherNd(), y, ends.operand))
        return within.select(x, 0.0).operand, (counts > 0).unsqueeze(1).select(last, x.of(initial)).operand

    def marked(self, x: int) -> int:
        """The inputs [time, batch, features] of one direction with zeros after the end of each sequence, and another
        feature that is 1 there and 0 before."""
        within, _ = self._within(x)
        zeroed, mark = within.select(Expression(self.d, x), 0.0), (~within).cast(self.dtype)
        return zeroed.concat([mark], 2).operand

    def _within(self, x: int) -> tuple[Expression, Expression]:
        """Which steps of [time, batch, ...] are before the end, [time, batch, 1], and the number of these."""
        assert self.lengths is not None
        time = Expression(self.d, x).size(0).scalar()
        counts = Expression(self.d, self.lengths).at_least(0).at_most(time)
        return (time.arange().unsqueeze(1) < counts).unsqueeze(2), counts

    def results(self, steps: Sequence[int], *lasts: Sequence[int]) -> tuple[int, ...]:
        """Y [time, directions, batch, units], and the last states [directions, batch, units]."""
        d = self.d
        y = d.add(Pack(1), *steps)
        states = [d.add(Pack(0), *each) for each in lasts]
        if self.batch_first:
            return transpose(d, y, (2, 0, 1, 3)), *(transpose(d, s, (1, 0, 2)) for s in states)
        return y, *states
