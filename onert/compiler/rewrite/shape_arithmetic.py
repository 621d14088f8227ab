"""Arithmetic on symbolic sizes: evaluates operations on shapes element by element.

Elements of integer types are plain or symbolic integers. So are elements of float types, as long as they are small
enough to be exact: then sums, differences and products are exact too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import Array, DType, OnertError, Op, TensorType
from onert.ir.errors import MISHAPS
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.diagonal import MatrixBandPart, MatrixDiag, MatrixSetDiag
from onert.ir.ops.data_movement.element_indices import GatherElements
from onert.ir.ops.data_movement.fill import Fill, Range
from onert.ir.ops.data_movement.gather import Gather, GatherNd, OneHot, ScatterNd
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastArgs, BroadcastTo, MirrorPad, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind, ZerosLike
from onert.ir.ops.reduction.reduce import Reduce, Reduction, axes_of
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.reduction.segment import SegmentReduction, UnsortedSegment
from onert.ir.shape import broadcast, static
from onert.ir.symbolic.trace import computed, has_symbols, is_symbolic, largest, maximum, minimum, where_greater
from onert.ir.value import Value

_EXACT = {DType.FLOAT16: 1 << 11, DType.FLOAT32: 1 << 24, DType.FLOAT64: 1 << 53}
"""Integers up to this magnitude are exactly representable in the type."""
_MOST_WHOLE = _EXACT[DType.FLOAT64]
"""The largest result of floats that are computed for every length."""


class _InexactError(ValueError):
    """A result might not be an integer, or might depend on rounding."""


def _truncated(x: Any, y: Any) -> Any:
    """Integer division as in C, by positive numbers."""
    if y <= 0:
        _refused()
    return x // y if x >= 0 else -(-x // y)


def _remainder(x: Any, y: Any) -> Any:
    """The remainder of such a division, which has the sign of `x`."""
    return x - _truncated(x, y) * y


def _exact_quotient(x: Any, y: Any) -> Any:
    """A float quotient that is an integer for all lengths."""
    rest = x % y if y > 0 else _refused()
    return _refused() if is_symbolic(rest) or rest else _signed(x // y)


def _signed(x: Any) -> Any:
    """A float product; raises if it is 0, because it might be -0."""
    return x if x != 0 else _refused()


def _refused() -> Any:
    raise _InexactError


_INTEGERS: Mapping[BinaryKind, Callable[[Any, Any], Any]] = {
    BinaryKind.ADD: operator.add,
    BinaryKind.SUB: operator.sub,
    BinaryKind.MUL: operator.mul,
    BinaryKind.DIV: _truncated,
    BinaryKind.FLOOR_DIV: lambda x, y: x // y if y > 0 else _refused(),
    BinaryKind.FLOOR_MOD: lambda x, y: x % y if y > 0 else _refused(),
    BinaryKind.REMAINDER: _remainder,
    BinaryKind.MAXIMUM: maximum,
    BinaryKind.MINIMUM: minimum,
}
_FLOATS: Mapping[BinaryKind, Callable[[Any, Any], Any]] = {
    BinaryKind.ADD: operator.add,
    BinaryKind.SUB: operator.sub,
    BinaryKind.MUL: lambda x, y: _signed(x * y),
    BinaryKind.DIV: _exact_quotient,
    BinaryKind.MAXIMUM: maximum,
    BinaryKind.MINIMUM: minimum,
}
_ROUNDING = (UnaryKind.FLOOR, UnaryKind.CEIL, UnaryKind.ROUND, UnaryKind.TRUNC)
_RELATIONS: Mapping[ComparisonKind, Callable[[Any, Any], Any]] = {
    ComparisonKind.EQUAL: operator.eq,
    ComparisonKind.NOT_EQUAL: operator.ne,
    ComparisonKind.LESS: operator.lt,
    ComparisonKind.LESS_EQUAL: operator.le,
    ComparisonKind.GREATER: operator.gt,
    ComparisonKind.GREATER_EQUAL: operator.ge,
}
_REDUCTIONS: Mapping[Reduction, Callable[[Any, Any], Any]] = {
    Reduction.SUM: operator.add,
    Reduction.PROD: operator.mul,
    Reduction.MAX: maximum,
    Reduction.MIN: minimum,
}
_SEGMENTS = {SegmentReduction.SUM: Reduction.SUM, SegmentReduction.PROD: Reduction.PROD}
_MOVED = (BroadcastTo, Concat, ExpandDims, Fill, Gather, Pack, Reshape, Slice, Squeeze, StridedSlice, Transpose)
_SPLITS = (Split, SplitV, Unpack)
KINDS = (*_MOVED, *_SPLITS, Binary, BroadcastArgs, Cast, Comparison, CumSum, Range, Reduce, Select, Unary)
"""The operations that are exact on integers and, except for a few functions, on floats."""
EXACT = (
    *KINDS,
    Copy,
    GatherElements,
    GatherNd,
    MatrixBandPart,
    MatrixDiag,
    MatrixSetDiag,
    MirrorPad,
    OneHot,
    Pad,
    Reverse,
    ScatterNd,
    Tile,
    ZerosLike,
)
"""`KINDS`, and others that only move elements, or sum them in a defined order."""


def evaluated(op: Op, arrays: list[Array | None], output: TensorType, which: int = 0) -> Array | None:
    """Result `which` of an operation on symbolic or plain elements; None if it is not known to be exact.

    Every decision on a symbolic number becomes a condition of the trace.
    """
    if (
        not isinstance(op, (*KINDS, UnsortedSegment))
        or isinstance(op, CumSum | Range)
        or any(map(is_symbolic, output.shape))
    ):
        return None
    elements = [_exact(a) for a in arrays if a is not None]
    if any(a is None for a in elements):
        return None
    try:
        found = _evaluated(op, [a for a in elements if a is not None], output.dtype)
        result = np.asarray(found[which] if isinstance(op, _SPLITS) else found, object)
        if result.shape != output.shape:
            return None
        if output.dtype is not DType.BOOL:
            low, high = _limits(output.dtype)
            if not all(low <= element <= high for element in result.reshape(-1)):
                return None
    except (OnertError, *MISHAPS):
        return None
    return result if has_symbols(result) else result.astype(output.dtype.numpy)


def rounded(
    op: Op, steps: Sequence[tuple[Binary, Array]], x: Array, between: DType, output: TensorType
) -> Array | None:
    """The result of rounding floats that `steps` compute from lengths, each with a constant as the second operand; None
    if it is not known to be exact.

    A float that is off from the true product or quotient by its type's rounding error rounds to the same integer for
    small enough lengths, because there is no integer or midpoint of two integers between the two. For others, the
    floats themselves are computed, for every length.
    """
    kind = UnaryKind.TRUNC if isinstance(op, Cast) and output.dtype.is_integer else getattr(op, "kind", None)
    function = _ROUNDED.get(kind) if isinstance(op, Cast | Unary) else None
    if kind is None or function is None or between not in _EXACT:
        return None
    if any(step.activation is not Activation.NONE or step.kind not in _FLOATS for step, _ in steps):
        return None
    kinds, numbers = [step.kind for step, _ in steps], [number for _, number in steps]

    def element(length: Any, *constants: float) -> Any:
        if length < 0:
            raise _InexactError
        exact = Fraction(constants[0]) if math.isfinite(constants[0]) else Fraction(0)
        if kinds in ([BinaryKind.MUL], [BinaryKind.DIV]) and exact > 0:
            up, down = (1 / exact if kinds == [BinaryKind.DIV] else exact).as_integer_ratio()
            most = _EXACT[between] // 4
            if down <= most and largest(length * up) <= most:
                return function(length * up, down)
        floats = RoundedFloats(kind, tuple(zip(kinds, constants, strict=True)), between)
        if not floats.fit(largest(length), output.dtype):
            raise _InexactError
        return computed(floats, length)

    try:
        result = np.asarray(_each(element, x, *numbers), object).reshape(static(output.shape))
    except (OnertError, *MISHAPS):
        return None
    return result if has_symbols(result) else result.astype(output.dtype.numpy)


@frozen
class RoundedFloats(Value):
    """A length from which steps compute a float of a type, which is then rounded: a function of the length."""

    kind: UnaryKind
    steps: tuple[tuple[BinaryKind, float], ...]
    dtype: DType

    def __call__(self, length: int) -> int:
        return int(self._of(np.array([length])).item())

    def results(self, count: int) -> Array:
        """The results for the lengths below `count`, int64."""
        return self._of(np.arange(count)).astype(np.int64)

    def fit(self, most: int, dtype: DType) -> bool:
        """Whether the results for the lengths up to `most` are surely integers of this type, and none of them is -0.

        Each step and the rounding are monotone, so the results lie between those of the least and the largest length.
        """
        if most > _EXACT[self.dtype]:
            return False
        low, high = _limits(dtype) if dtype.is_integer else (0, _MOST_WHOLE)
        ends = self._of(np.array([0, most]))
        within = (max(low, -_MOST_WHOLE) <= ends) & (ends <= min(high, _MOST_WHOLE))
        return bool(within.all()) and (dtype.is_integer or not np.signbit(ends).any())

    def _of(self, lengths: Array) -> Array:
        with np.errstate(all="ignore"):
            floats = lengths.astype(self.dtype.numpy)
            for kind, number in self.steps:
                floats = kind.value.numpy(floats, np.array(number, self.dtype.numpy))
            rounded: Array = self.kind.value.numpy(floats).astype(np.float64)
        return rounded


def _to_even(x: Any, y: Any) -> Any:
    """A quotient rounded to the nearest integer, ties to even."""
    up, rest = divmod(2 * x + y, 2 * y)
    return up - where_greater(1, rest, up % 2, 0)


_ROUNDED: Mapping[UnaryKind | None, Callable[[Any, Any], Any]] = {
    UnaryKind.FLOOR: operator.floordiv,
    UnaryKind.TRUNC: operator.floordiv,
    UnaryKind.CEIL: lambda x, y: -(-x // y),
    UnaryKind.ROUND: _to_even,
}


def _limits(dtype: DType) -> tuple[int, int]:
    if dtype.is_integer:
        low, high = dtype.limits
        return int(low), int(high)
    most = _EXACT.get(dtype)
    return (-most, most) if most is not None else _refused()


def _exact(array: Array) -> Array | None:
    """An array as an object array, with floats as integers; None if a float is not an integer, or is -0."""
    if array.dtype == object or array.dtype.kind in "biu":
        return array
    if array.dtype.kind != "f":
        return None
    elements = array.reshape(-1).tolist()
    if not all(x.is_integer() and abs(x) <= 1 << 53 and (x or math.copysign(1, x) > 0) for x in elements):
        return None
    found = np.empty(len(elements), object)
    found[:] = [int(x) for x in elements]
    return found.reshape(array.shape)


def _evaluated(op: Op, arrays: list[Array], dtype: DType) -> Any:
    if isinstance(op, Cast):
        return arrays[0]
    if isinstance(op, BroadcastArgs):
        return np.array(broadcast([tuple(a.reshape(-1).tolist()) for a in arrays]), object)
    if isinstance(op, Binary):
        functions = _INTEGERS if dtype.is_integer else _FLOATS
        return _each(functions.get(op.kind) if op.activation is Activation.NONE else None, *arrays)
    if isinstance(op, Unary):
        if op.kind is UnaryKind.NEG and dtype.is_integer:
            return _each(operator.neg, *arrays)
        return arrays[0] if op.kind in _ROUNDING else _refused()
    if isinstance(op, Comparison):
        return _each(_RELATIONS[op.kind], *arrays)
    if isinstance(op, Select):
        condition, *parts = arrays
        return _refused() if op.rows or condition.dtype == object else np.where(condition, *_objects(*parts))
    if isinstance(op, Reduce):
        return _reduced(op, *arrays)
    if isinstance(op, UnsortedSegment):
        return _segments(op, *arrays) if dtype.is_integer else _refused()
    assert op.evaluate is not None
    return op.evaluate(
        *(_objects(arrays[0]) if isinstance(op, Gather | Slice | StridedSlice) else arrays[:1]), *arrays[1:]
    )


def _objects(*arrays: Array) -> list[Array]:
    return [a.astype(object) for a in arrays]


def _each(function: Callable[..., Any] | None, *arrays: Array) -> Any:
    return _refused() if function is None else np.frompyfunc(function, len(arrays), 1)(*_objects(*arrays))


def _reduced(op: Reduce, x: Array, axes: Array) -> Array:
    """The reduction of all elements of a vector: shapes are vectors."""
    function = _REDUCTIONS.get(op.kind)
    if function is None or axes.dtype == object or len(axes_of(axes, x.ndim)) != x.ndim or not x.size:
        raise _InexactError
    found = np.empty((1,) * x.ndim if op.keep_dims else (), object)
    found[...] = reduce(function, x.reshape(-1).tolist())
    return found


def _segments(op: UnsortedSegment, x: Array, numbers: Array, count: Array) -> Array:
    """The reductions of elements with the same segment number, as used for merging axes."""
    kind, segments = _SEGMENTS.get(op.kind), count.reshape(-1).tolist()
    if kind is None or x.ndim != 1 or numbers.shape != x.shape or has_symbols(numbers) or has_symbols(count):
        raise _InexactError
    found = [1 if op.kind is SegmentReduction.PROD else 0] * segments[0]
    for at, element in zip(numbers.tolist(), x.tolist(), strict=True):
        if at >= 0:
            found[at] = _REDUCTIONS[kind](found[at], element)
    return np.array(found, object)
