"""Sizes that a model computes from several lengths in floats, and rounds: detectors shrink images like this.

Elements are floats, or symbolic floats that are computed in float64 and rounded to the type after each operation: that
is what the type's own arithmetic gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from onert.ir import Array, DType, OnertError, Op, Operation, TensorType
from onert.ir.errors import MISHAPS
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Slice, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction, axes_of
from onert.ir.shape import static
from onert.ir.symbolic.floats import as_float32, as_float64
from onert.ir.symbolic.trace import Symbolic, computed, has_symbols, is_symbolic, maximum, minimum, where_greater

_TYPES: Mapping[DType, Callable[[float], float]] = {DType.FLOAT32: as_float32, DType.FLOAT64: as_float64}
_FUNCTIONS: Mapping[BinaryKind, Callable[[Any, Any], Any]] = {
    BinaryKind.ADD: lambda x, y: x + y,
    BinaryKind.SUB: lambda x, y: x - y,
    BinaryKind.MUL: lambda x, y: x * y,
    BinaryKind.DIV: lambda x, y: x / y,
    BinaryKind.MAXIMUM: maximum,
    BinaryKind.MINIMUM: minimum,
}
_CHOICES = (maximum, minimum)
_REDUCTIONS = {Reduction.MAX: maximum, Reduction.MIN: minimum}
_MOVED = (BroadcastTo, Concat, ExpandDims, Gather, Pack, Reshape, Slice, Squeeze, StridedSlice)
KINDS = (*_MOVED, Binary, Cast, Reduce)
"""The operations that may come before the rounding."""
_MOST_WHOLE = 1 << 53


def rounded(
    last: Operation, before: Sequence[Operation], types: Sequence[TensorType], output: TensorType
) -> Array | None:
    """The result of rounding floats, symbolic integers; None if it is not known to be exact.

    `before` are the operations that compute these floats, in order, from the constants among `types`, some of which
    depend on lengths. That the floats are positive becomes a condition of the trace.
    """
    function = _ROUNDED.get(_kind(last.op, output.dtype))
    if function is None:
        return None
    most = int(output.dtype.limits[1]) if output.dtype.is_integer else _exact(output.dtype)
    try:
        values: dict[int, Array] = {}
        for operation in before:
            (out,) = operation.outputs
            values[out] = _result(operation, [_elements(i, values, types) for i in operation.used], types[out])
        (operand,) = last.used
        result = _each(lambda x: _size(function, x, min(most, _MOST_WHOLE)), _elements(operand, values, types))
    except (OnertError, *MISHAPS):
        return None
    result = np.asarray(result, object).reshape(static(output.shape))
    return result if has_symbols(result) else result.astype(output.dtype.numpy)


def _kind(op: Op, to: DType) -> UnaryKind | None:
    if isinstance(op, Cast) and to.is_integer:
        return UnaryKind.TRUNC
    return op.kind if isinstance(op, Unary) else None


def _exact(dtype: DType) -> int:
    """Integers up to this magnitude are floats of the type."""
    return 1 << np.finfo(dtype.numpy).nmant + 1


def _elements(operand: int, values: Mapping[int, Array], types: Sequence[TensorType]) -> Array:
    """The elements of an operand: floats, if its type is one."""
    if operand in values:
        return values[operand]
    type_ = types[operand]
    assert type_.data is not None
    return _each(_float, type_.data.array) if type_.dtype in _TYPES else type_.data.array


def _float(number: Any) -> Any:
    """A whole number of a length, or a constant, as a float."""
    if is_symbolic(number):
        return number * 1.0
    if not math.isfinite(number):
        raise OverflowError
    return float(number)


def _result(operation: Operation, arrays: list[Array], output: TensorType) -> Array:
    """The result of an operation on floats; raises an error if it is not known."""
    op, narrowed = operation.op, _TYPES[output.dtype]
    if isinstance(op, Binary) and op.activation is Activation.NONE:
        function = _FUNCTIONS[op.kind]
        found = _each(function if function in _CHOICES else lambda x, y: computed(narrowed, function(x, y)), *arrays)
    elif isinstance(op, Cast):
        found = _each(lambda x: computed(narrowed, x), arrays[0])
    elif isinstance(op, Reduce):
        found = _reduced(op, *arrays)
    else:
        assert isinstance(op, _MOVED), op
        assert op.evaluate is not None
        found = op.evaluate(*arrays)
    return np.asarray(found, object).reshape(static(output.shape))


def _reduced(op: Reduce, x: Array, axes: Array) -> Array:
    """The reduction of all elements."""
    function = _REDUCTIONS[op.kind]
    if len(axes_of(axes, x.ndim)) != x.ndim:
        raise IndexError
    return np.array([reduce(function, x.reshape(-1).tolist())], object)


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    found: Array = np.frompyfunc(function, len(arrays), 1)(*(a.astype(object) for a in arrays))
    return np.asarray(found, object)


def _size(function: Callable[[Any], Any], x: Any, most: int) -> Any:
    """A float rounded to an integer from 0 to `most`, neither of which it could be without a condition."""
    if not x > 0 or not (found := function(x)) <= most:
        raise OverflowError
    if isinstance(found, Symbolic):
        _give_room(found)
    return found


def _give_room(size: Symbolic) -> None:
    """Let memory be planned for a size as for the lengths themselves: it is not least at the shortest lengths, nor
    greatest at the longest ones."""
    trace = size.trace
    pairs = zip(trace.values, trace.most[: len(trace.lengths)], strict=False)
    factor = max(most // max(length, 1) for length, most in pairs)
    trace.most[size.index] = max(trace.most[size.index], factor * size.value)


def _to_even(x: Any) -> Any:
    """A positive float rounded to the nearest integer, ties to even."""
    down = math.floor(x)
    rest, up = x - down, down + 1
    return where_greater(rest, 0.5, up, where_greater(0.5, rest, down, down + down % 2))


_ROUNDED: Mapping[UnaryKind | None, Callable[[Any], Any]] = {
    UnaryKind.FLOOR: math.floor,
    UnaryKind.TRUNC: math.floor,
    UnaryKind.CEIL: math.ceil,
    UnaryKind.ROUND: _to_even,
}
