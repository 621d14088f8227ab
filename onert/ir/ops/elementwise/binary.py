"""Functions of two operands, element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic import binary_quantized as exact
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.quant import dequantize, quantize
from onert.ir.types import CallTypes, TensorType
from onert.ir.value import NamedKind, Value


@frozen
class Pair(Value):
    """A function of two elements: its meaning in NumPy, and the element types for which it is defined."""

    numpy: Callable[[Array, Array], Any]
    floats: bool = True
    integers: bool = True
    booleans: bool = False
    complex: bool = False


def _nonzero(y: Array) -> None:
    if y.dtype.kind in "iu" and not np.all(y):
        raise RuleError("an integer is divided by 0")


def _div(x: Array, y: Array) -> Any:
    """Division; integers truncate towards zero as in C."""
    if x.dtype.kind not in "iu":
        return x / y
    _nonzero(y)
    down = x // y  # not via magnitudes: that of the smallest integer does not fit the type
    cut = (x - down * y != 0) & ((x < 0) != (y < 0))
    return down + cut.astype(x.dtype)


def _floor_div(x: Array, y: Array) -> Any:
    _nonzero(y)
    return x // y if x.dtype.kind in "iu" else np.floor(x / y)


def _floor_mod(x: Array, y: Array) -> Any:
    """The remainder with the sign of the divisor; 0 has the sign of the dividend, as in TFLite's kernels."""
    _nonzero(y)
    if x.dtype.kind in "iu":
        return np.mod(x, y)
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def _remainder(x: Array, y: Array) -> Any:
    """The remainder with the sign of the dividend, like C's `%` and fmod."""
    _nonzero(y)
    return np.fmod(x, y)


def _pow(x: Array, y: Array) -> Any:
    if x.dtype.kind in "iu" and np.any(y < 0):
        raise RuleError(f"an integer is raised to the power {int(y.min())}, expected at least 0")
    return np.power(x, y)


def _squared_difference(x: Array, y: Array) -> Any:
    return np.square(x - y)


def _shift(left: bool) -> Callable[[Array, Array], Any]:
    def apply(x: Array, y: Array) -> Any:
        bits = x.dtype.itemsize * 8
        inside = (y >= 0) & (y < bits)
        by = np.where(inside, y, 0).astype(x.dtype)
        beyond = 0 if left or x.dtype.kind == "u" else np.where(x < 0, -1, 0)
        return np.where(inside, x << by if left else x >> by, beyond).astype(x.dtype)

    return apply


class BinaryKind(NamedKind):
    """The functions, named after TFLite's operators."""

    ADD = Pair(np.add, complex=True)
    SUB = Pair(np.subtract, complex=True)
    MUL = Pair(np.multiply, complex=True)
    DIV = Pair(_div, complex=True)
    FLOOR_DIV = Pair(_floor_div)
    FLOOR_MOD = Pair(_floor_mod)
    REMAINDER = Pair(_remainder)
    POW = Pair(_pow)
    MAXIMUM = Pair(np.maximum)
    MINIMUM = Pair(np.minimum)
    SQUARED_DIFFERENCE = Pair(_squared_difference)
    ATAN2 = Pair(np.arctan2, integers=False)
    LOGICAL_AND = Pair(np.logical_and, floats=False, integers=False, booleans=True)
    LOGICAL_OR = Pair(np.logical_or, floats=False, integers=False, booleans=True)
    BITWISE_AND = Pair(np.bitwise_and, floats=False, booleans=True)
    BITWISE_OR = Pair(np.bitwise_or, floats=False, booleans=True)
    BITWISE_XOR = Pair(np.bitwise_xor, floats=False, booleans=True)
    SHIFT_LEFT = Pair(_shift(left=True), floats=False)
    SHIFT_RIGHT = Pair(_shift(left=False), floats=False)


ROUNDED_ONCE = (
    BinaryKind.ADD,
    BinaryKind.SUB,
    BinaryKind.MUL,
    BinaryKind.DIV,
    BinaryKind.MAXIMUM,
    BinaryKind.MINIMUM,
)
"""The float functions that round exactly once, and so are identical in kernels."""

STORED = (
    BinaryKind.FLOOR_DIV,
    BinaryKind.FLOOR_MOD,
    BinaryKind.BITWISE_AND,
    BinaryKind.BITWISE_OR,
    BinaryKind.BITWISE_XOR,
    BinaryKind.SHIFT_LEFT,
    BinaryKind.SHIFT_RIGHT,
)
"""Functions that TFLite defines only on plain integers: scales are ignored."""


@frozen
class Binary(Op):
    """A function of two operands, element by element with broadcasting, followed by an activation.

    `kind` is one of ADD SUB MUL DIV (integers truncate) FLOOR_DIV FLOOR_MOD REMAINDER POW MAXIMUM MINIMUM
    SQUARED_DIFFERENCE ATAN2 LOGICAL_AND LOGICAL_OR BITWISE_AND BITWISE_OR BITWISE_XOR SHIFT_LEFT SHIFT_RIGHT. Integers
    wrap; dividing an integer by 0 is an error. With `power_of_two`, int16 ADD and SUB whose scales are powers of two
    use shifts, as old TFLite models require.

    - `x`, `y`: of one element type; shapes broadcast

    Quantised ADD, SUB, MUL and SQUARED_DIFFERENCE use TFLite's fixed-point arithmetic. MAXIMUM and MINIMUM with equal
    quantisation of both operands and the result, FLOOR_DIV, FLOOR_MOD, shifts and bitwise functions work on the stored
    integers. Other functions dequantise to float32 and requantise.
    """

    kind: BinaryKind
    activation: Activation = Activation.NONE
    power_of_two: bool = False

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        pair, dtype = self.kind.value, x.dtype
        require(dtype is y.dtype, f"{self.kind.name} is given {x.dtype.text} and {y.dtype.text}, expected one type")
        known = (
            (dtype.is_float and pair.floats)
            or (dtype.is_integer and pair.integers)
            or (dtype is DType.BOOL and pair.booleans)
            or (dtype.is_complex and pair.complex)
        )
        require(known, f"{self.kind.name} is not defined on elements of type {dtype.text}")
        require(
            (x.quantization is None) == (y.quantization is None) or dtype in (DType.INT32, DType.INT64),
            f"{self.kind.name} is given one operand that is quantised and one that is not, expected both or neither",
        )
        return x.result(shapes.broadcast([x.shape, y.shape]))

    def evaluate(self, x: Array, y: Array) -> Array:
        out = np.asarray(self.kind.value.numpy(x, y))
        return self.activation.apply(out if out.dtype == x.dtype else out.astype(x.dtype))

    def evaluate_quantized(self, types: CallTypes, x: Array, y: Array) -> Array:
        a, b, result = types.input(0), types.input(1), types.output
        if a.quantization is None or b.quantization is None or result.quantization is None:
            return self.evaluate(x, y)
        if a.dtype in (DType.INT32, DType.INT64) or self.kind in STORED:
            return self.evaluate(x, y)
        fixed = exact.FIXED.get(self.kind.name)
        if fixed is not None:
            bounds = self.activation.bounds(result)
            return fixed(exact.Side(x, a), exact.Side(y, b), result, bounds, self.power_of_two)
        if (
            self.kind in (BinaryKind.MAXIMUM, BinaryKind.MINIMUM)
            and a.quantization == b.quantization == result.quantization
        ):
            return self.evaluate(x, y)
        real = self.evaluate(dequantize(x, a.quantization), dequantize(y, b.quantization))
        return quantize(real, result.quantization, result.dtype)


@frozen
class AddN(Op):
    """The sum of one or more tensors of one shape and one numeric element type.

    - `xs`: the summands
    """

    def infer(self, *xs: TensorType) -> TensorType:
        require(bool(xs), "AddN has no inputs, expected at least one")
        first = xs[0]
        require(first.dtype.is_numeric, f"AddN is not defined on elements of type {first.dtype.text}")
        shape = first.shape
        for x in xs[1:]:
            require(x.dtype is first.dtype, f"AddN is given {first.dtype.text} and {x.dtype.text}, expected one type")
            require(
                shapes.compatible(shape, x.shape),
                f"AddN is given shapes {shapes.text(shape)} and {shapes.text(x.shape)}, expected one shape",
            )
            shape = shapes.merge(shape, x.shape)
        return first.result(shape)

    def evaluate(self, *xs: Array) -> Array:
        total = xs[0].copy()
        for x in xs[1:]:
            total += x
        return total


@frozen
class PRelu(Op):
    """`x` where it is not negative, else `alpha * x`, element by element.

    - `x`: floats or quantised integers
    - `alpha`: of x's element type; its shape broadcasts to that of x
    """

    def infer(self, x: TensorType, alpha: TensorType) -> TensorType:
        require(
            x.dtype is alpha.dtype, f"PRelu is given {x.dtype.text} and alpha {alpha.dtype.text}, expected one type"
        )
        require(
            x.dtype.is_float or (x.quantization is not None and alpha.quantization is not None),
            f"PRelu is not defined on elements of type {x.dtype.text} without quantisation",
        )
        shape = shapes.broadcast([x.shape, alpha.shape])
        require(
            shapes.compatible(shape, x.shape),
            f"alpha {shapes.text(alpha.shape)} does not broadcast to {shapes.text(x.shape)}",
        )
        return x.result(shapes.merge(x.shape, shape))

    def evaluate(self, x: Array, alpha: Array) -> Array:
        return np.where(x >= 0, x, x * alpha)

    def evaluate_quantized(self, types: CallTypes, x: Array, alpha: Array) -> Array:
        return exact.prelu(exact.Side(x, types.input(0)), exact.Side(alpha, types.input(1)), types.output)
