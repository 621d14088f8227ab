"""A builder for the graph that replaces an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, Constant, DType, Op, Operand, TensorType
from onert.ir.analysis.inference import infer
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.control_flow.enclosed import Loop
from onert.ir.ops.data_movement.fill import PerLength, Range
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.reshape import Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.shape import num_elements, static
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import Computed, is_symbolic

_SMALL = 1 << 10
"""Folded constants may have this many elements even if they are computed from fewer."""


def layer_operands(operands: Sequence[int | None]) -> tuple[int, int, int | None]:
    """The input of a layer, its weights, and its bias if it has one."""
    x, weight, bias = [*operands, None][:3]
    assert x is not None
    assert weight is not None
    return x, weight, bias


class Draft(Builder):
    """A graph under construction, with short methods for what decompositions need most."""

    def operands(self, types: CallTypes) -> list[int | None]:
        """An input for each operand that is present; the elements of constants are known."""
        return [None if t is None else self.input(t) for t in types.inputs]

    def counted_loop(
        self, count: int, carried: Sequence[int], step: Callable[[Draft, int, Sequence[int]], Sequence[int]]
    ) -> list[int]:
        """`carried` after a loop of `count` iterations. `step` drafts one: from the iteration's number and the operands
        before it, the operands after it."""
        types = [TensorType(DType.INT32, ()), *(evolve(self.type(i), data=None) for i in carried)]
        condition, body = Draft(), Draft()
        counter, *_ = [condition.input(t) for t in types]
        continues = condition.compared(ComparisonKind.LESS, counter, condition.number(count))
        at, *before = (body.input(t) for t in types)
        after = step(body, at, before)
        loop = Loop(condition.subgraph([continues]), body.subgraph([body.sum(at, body.number(1)), *after]))
        return list(self.add_many(loop, self.number(0), *carried)[1:])

    def constant_of(self, t: TensorType) -> int:
        """A constant with a type's known elements, for a graph enclosed in an operation, such as a loop's body."""
        assert t.data is not None
        return self._operand(Operand(evolve(t, data=None), data=t.data))

    def per_length(self, type_: TensorType, function: Callable[..., Array], *numbers: int) -> int:
        """A constant of a type: an array that a function computes from numbers, which may be symbolic."""
        if not any(map(is_symbolic, numbers)):
            return self.constant(function(*numbers), dtype=type_.dtype)
        return self.add(PerLength(type_, Computed(function, numbers)))

    def shape(self, operand: int) -> tuple[int, ...]:
        """The shape, which must be known."""
        return static(self.type(operand).shape)

    def dtype(self, operand: int) -> DType:
        """The element type."""
        return self.type(operand).dtype

    def integers(self, *values: int) -> int:
        """A vector of int32, or of int64 if a value does not fit."""
        wide = any(not -(1 << 31) <= value < 1 << 31 for value in values)
        if any(map(is_symbolic, values)):
            type_ = TensorType(DType.INT64 if wide else DType.INT32, (len(values),))
            return self._operand(Operand(type_, data=Constant(np.array(values, object))))
        return self.constant(np.array(values, np.int64 if wide else np.int32))

    def number(self, value: int) -> int:
        """A scalar of int32."""
        if is_symbolic(value):
            return self._operand(Operand(TensorType(DType.INT32, ()), data=Constant(np.array(value, object))))
        return self.constant(np.array(value, np.int32))

    def real(self, value: float) -> int:
        """A scalar of float32."""
        return self.constant(np.array(value, np.float32))

    def reshaped(self, x: int, *shape: int) -> int:
        """`x` in another shape; `x` itself if it already has this shape."""
        if self.shape(x) == shape:
            return x
        return self.moved(Reshape(), x, self.integers(*shape)) if shape else self.moved(Squeeze(), x)

    def rows_times(self, x: int, weights: int, bias: int | None, asymmetric: bool = False) -> int:
        """Every row of `x` times the weights, plus the bias."""
        return self.add(FullyConnected(asymmetric_inputs=asymmetric), x, weights, bias)

    def binary(self, kind: BinaryKind, x: int, y: int) -> int:
        """An element-wise function of two tensors."""
        return self.add(Binary(kind), x, y)

    def unary(self, kind: UnaryKind, x: int) -> int:
        """An element-wise function of one tensor."""
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
        """The activation of `x + y`, or of `x` if `y` is None, as a fused operation."""
        if y is None:
            y = self.constant(np.zeros(1, self.dtype(x).numpy))
        if activation is Activation.TANH:
            return self.tanh(self.sum(x, y))
        return self.add(Binary(BinaryKind.ADD, activation), x, y)

    def bounded(self, x: int, activation: Activation) -> int:
        """The activation of `x` as separate element-wise operations."""
        clamp = activation.value
        if activation is Activation.TANH:
            return self.tanh(x)
        if clamp.low is not None:
            x = self.binary(BinaryKind.MAXIMUM, x, self.like(x, clamp.low))
        return x if clamp.high is None else self.binary(BinaryKind.MINIMUM, x, self.like(x, clamp.high))

    def moved(self, op: Op, x: int, *operands: int) -> int:
        """The result of an operation that moves stored elements of `x`; folded if `x` is constant and does not grow."""
        types = [self.type(i) for i in (x, *operands)]
        (result,) = infer(op, types) or ()
        if any(map(is_symbolic, result.shape)) or any(t.data is not None and t.data.is_symbolic for t in types):
            return self.add(op, x, *operands, quantization=(types[0].quantization,))
        is_known = not types[0].dtype.is_handle and all(t.data is not None for t in types)
        # sizes are compared only if it matters: a comparison of those that depend on lengths is a condition
        if not is_known or (num_elements(result.shape) or 0) > max(num_elements(types[0].shape) or 0, _SMALL):
            return self.add(op, x, *operands, quantization=(types[0].quantization,))

        def elements() -> Array:
            assert op.evaluate is not None
            found = op.evaluate(*(t.value for t in types))
            return np.ascontiguousarray(found).reshape(found.shape)

        return self._operand(Operand(evolve(result, quantization=types[0].quantization), data=Constant(elements)))

    def transposed(self, x: int, order: Sequence[int]) -> int:
        """`x` with its dimensions in another order."""
        shape = self.shape(x)
        ones = {axis for axis, d in enumerate(shape) if are_same(d, 1)}
        if [axis for axis in order if axis not in ones] == [axis for axis in range(len(shape)) if axis not in ones]:
            return self.reshaped(x, *(shape[axis] for axis in order))
        return self.moved(Transpose(), x, self.integers(*order))

    def broadcast(self, x: int, shape: Sequence[int]) -> int:
        """`x` broadcast to a shape."""
        own = self.shape(x)
        is_same = len(own) == len(shape) and all(map(are_same, own, shape))
        return x if is_same else self.moved(BroadcastTo(), x, self.integers(*shape))

    def part(self, x: int, begin: Sequence[int], size: Sequence[int]) -> int:
        """The part of `x` that starts at `begin` and has the given size."""
        return (
            x if self.shape(x) == tuple(size) else self.moved(Slice(), x, self.integers(*begin), self.integers(*size))
        )

    def gathered(self, x: int, indices: int, axis: int, batch_dims: int = 0) -> int:
        """The slices of `x` at these indices along an axis."""
        return self.moved(Gather(axis, batch_dims), x, indices)

    def nothing(self, type_: TensorType) -> int:
        """A tensor without elements."""
        return self.constant(np.zeros(static(type_.shape), type_.dtype.numpy), type_.quantization, dtype=type_.dtype)

    def like(self, x: int, value: float) -> int:
        """A scalar of the type of `x`."""
        type_ = self.type(x)
        if is_symbolic(value):
            return self._operand(Operand(type_.with_shape(()), data=Constant(np.array(value, object))))
        return self.constant(np.array(value, type_.dtype.numpy), type_.quantization, dtype=type_.dtype)

    def numbers(self, count: int, like: int, shape: Sequence[int]) -> int:
        """The numbers 0 .. count - 1 in the element type of `like` and the given shape."""
        if is_symbolic(count):
            found = self.add(Range(), *(self.number(each) for each in (0, count, 1)))
            return self.reshaped(self.cast(found, self.dtype(like)), *shape)
        return self.constant(np.arange(count).astype(self.dtype(like).numpy).reshape(tuple(shape)))

    def cast(self, x: int, to: DType) -> int:
        """The same numbers in another element type."""
        return x if self.dtype(x) is to else self.moved(Cast(to), x)

    def index(self, x: int) -> int:
        """Integers in an index type that every backend supports."""
        return x if self.dtype(x) in (DType.INT32, DType.INT64) else self.cast(x, DType.INT64)

    def compared(self, kind: ComparisonKind, x: int, y: int) -> int:
        """An element-wise comparison."""
        return self.add(Comparison(kind), x, y)

    def chosen(self, condition: int, x: int, y: int) -> int:
        """`x` where the condition holds, otherwise `y`."""
        return self.add(Select(), condition, x, y, quantization=(self.type(x).quantization,))

    def clamped(self, x: int, low: Array | float, high: Array | float) -> int:
        """`x` clamped to `low` .. `high`."""
        type_, bounds = self.type(x), (low, high)
        if type_.value is not None and not any(map(is_symbolic, bounds)):
            return self.constant(np.clip(type_.value, *(np.asarray(b).astype(type_.dtype.numpy) for b in bounds)))
        lowest, highest = (
            self.like(x, cast(float, b)) if is_symbolic(b) else self.constant(np.asarray(b).astype(type_.dtype.numpy))
            for b in bounds
        )
        return self.binary(BinaryKind.MINIMUM, self.binary(BinaryKind.MAXIMUM, x, lowest), highest)

    def reduced(self, kind: Reduction, x: int, axes: Sequence[int], keep_dims: bool = False) -> int:
        """A reduction along axes."""
        return self.add(Reduce(kind, keep_dims), x, self.integers(*axes))

    def swapped(self, x: int) -> int:
        """A tensor of rank 3 with its first two axes exchanged."""
        first, second, size = self.shape(x)
        if 1 in (first, second):
            return self.reshaped(x, second, first, size)
        return self.add(Transpose(), x, self.integers(1, 0, 2))

    def backward(self, x: int, axis: int) -> int:
        """The elements along an axis in reverse order."""
        return self.add(Reverse(), x, self.integers(axis))
