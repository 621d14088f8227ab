"""Comparisons of two operands, element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.binary_quantized import Side, comparable
from onert.ir.types import CallTypes, TensorType
from onert.ir.value import Value


@frozen
class Relation(Value):
    """A relation of two elements: its meaning in NumPy, and whether it requires ordered elements."""

    numpy: Callable[[Array, Array], Any]
    ordered: bool = True


class ComparisonKind(Enum):
    """The relations, named after TFLite's operators."""

    EQUAL = Relation(np.equal, ordered=False)
    NOT_EQUAL = Relation(np.not_equal, ordered=False)
    LESS = Relation(np.less)
    LESS_EQUAL = Relation(np.less_equal)
    GREATER = Relation(np.greater)
    GREATER_EQUAL = Relation(np.greater_equal)


@frozen
class Comparison(Op):
    """Compares two operands element by element, with broadcasting; the result is boolean.

    `kind` is one of EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL.

    - `x`, `y`: real numbers of one element type; for EQUAL and NOT_EQUAL also booleans, strings and complex numbers

    Quantised elements of different scales are compared in fixed point (TFLite's comparisons.h).
    """

    kind: ComparisonKind

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        require(x.dtype is y.dtype, f"{self.kind.name} is given {x.dtype.text} and {y.dtype.text}, expected one type")
        orderless = x.dtype in (DType.BOOL, DType.STRING) or x.dtype.is_complex
        require(x.dtype.is_numeric or orderless, f"{self.kind.name} is not defined on elements of type {x.dtype.text}")
        require(
            not (orderless and self.kind.value.ordered),
            f"{self.kind.name} is not defined on elements of type {x.dtype.text}, which have no order",
        )
        return TensorType(DType.BOOL, shapes.broadcast([x.shape, y.shape]))

    def evaluate(self, x: Array, y: Array) -> Array:
        return np.asarray(self.kind.value.numpy(x, y)).astype(np.bool_)

    def evaluate_quantized(self, types: CallTypes, x: Array, y: Array) -> Array:
        a, b = types.input(0), types.input(1)
        if a.quantization == b.quantization or a.quantization is None or b.quantization is None:
            return self.evaluate(x, y)
        return self.evaluate(comparable(Side(x, a)), comparable(Side(y, b)))
