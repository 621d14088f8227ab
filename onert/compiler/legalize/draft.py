"""Writing the graph that takes an operation's place."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.ir import CallTypes, Operand, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.shape import static


class Draft(Builder):
    """A graph in the making, with short names for what decompositions write most."""

    def operands(self, types: CallTypes) -> list[int | None]:
        """An input for each operand of an operation that is there; constants' elements are known."""
        return [None if t is None else self.input(t) for t in types.inputs]

    def constant_of(self, t: TensorType) -> int:
        """A constant with the elements that a type knows, for a graph inside an operation, such as a loop's body."""
        assert t.data is not None
        return self._operand(Operand(evolve(t, data=None), data=t.data))

    def known(self, operand: int) -> TensorType:
        """The type, its elements known where this is a constant."""
        return self._operands[operand].known

    def shape(self, operand: int) -> tuple[int, ...]:
        """The shape, which must be known."""
        return static(self.known(operand).shape)

    def integers(self, *values: int) -> int:
        """A vector of int32."""
        return self.constant(np.array(values, np.int32))

    def number(self, value: int) -> int:
        """A scalar of int32."""
        return self.constant(np.array(value, np.int32))

    def reshaped(self, x: int, *shape: int) -> int:
        """The elements of `x` in another shape; `x` itself where it has this shape."""
        return x if self.shape(x) == shape else self.add(Reshape(), x, self.integers(*shape))

    def rows_times(self, x: int, weights: int, bias: int | None, asymmetric: bool = False) -> int:
        """Every row of `x` times weights, plus the bias."""
        return self.add(FullyConnected(asymmetric_inputs=asymmetric), x, weights, bias)

    def binary(self, kind: BinaryKind, x: int, y: int) -> int:
        """A function of two elements."""
        return self.add(Binary(kind), x, y)

    def unary(self, kind: UnaryKind, x: int) -> int:
        """A function of an element."""
        return self.add(Unary(kind), x)

    def sum(self, x: int, y: int) -> int:
        """`x + y`."""
        return self.binary(BinaryKind.ADD, x, y)

    def difference(self, x: int, y: int) -> int:
        """`x - y`."""
        return self.binary(BinaryKind.SUB, x, y)

    def product(self, x: int, y: int) -> int:
        """`x * y`."""
        return self.binary(BinaryKind.MUL, x, y)

    def logistic(self, x: int) -> int:
        """`1 / (1 + exp(-x))`."""
        return self.unary(UnaryKind.LOGISTIC, x)

    def tanh(self, x: int) -> int:
        """`tanh(x)`."""
        return self.unary(UnaryKind.TANH, x)

    def activated(self, x: int, y: int | None, activation: Activation) -> int:
        """The activation of `x`, or of `x + y`, in float32."""
        if y is None:
            y = self.constant(np.zeros(1, np.float32))
        if activation is Activation.TANH:
            return self.tanh(self.sum(x, y))
        return self.add(Binary(BinaryKind.ADD, activation), x, y)

    def swapped(self, x: int) -> int:
        """A tensor of rank 3 with its first two axes exchanged."""
        first, second, size = self.shape(x)
        if 1 in (first, second):
            return self.reshaped(x, second, first, size)
        return self.add(Transpose(), x, self.integers(1, 0, 2))

    def backward(self, x: int, axis: int) -> int:
        """The elements along an axis in reverse order."""
        return self.add(Reverse(), x, self.integers(axis))
