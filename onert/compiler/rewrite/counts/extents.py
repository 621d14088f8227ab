"""Lower and upper bounds of integers in a graph, and those that are linear in counts of valid entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from onert.compiler.rewrite.edit import definer
from onert.ir import Array, DType, Operation, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import CountedWhere, Within
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastArgs, Slice, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.reduce import ArgReduce, Reduce, Reduction
from onert.ir.ops.vision_audio.boxes import CountedBoxes
from onert.ir.shape import num_elements
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import Value

MOST_CELLS = 64
"""Tensors with more integers get one extent that covers all of them."""

MOST_DEPTH = 64
"""The longest chain of operations that is followed."""

_UNBOUNDED = 1 << 62
"""Integers from this magnitude on are bounds of a type, not of a value."""

Cells = Any
"""An array of extents in the shape of the integers, or one extent for all of them."""


@frozen
class Extent(Value):
    """An integer from `low` to `high`; if `terms` is not None, it is `constant` plus the sum of count * factor."""

    low: int
    high: int
    terms: tuple[tuple[int, int], ...] | None = None
    constant: int = 0

    @property
    def exact(self) -> int | None:
        """The integer if only one is possible; otherwise None."""
        return self.low if self.low == self.high else None


def exactly(number: int) -> Extent:
    return Extent(number, number, (), number)


def added(a: Extent, b: Extent, sign: int) -> Extent:
    """The sum (`sign` 1) or the difference (`sign` -1) of two extents."""
    low, high = (a.low + b.low, a.high + b.high) if sign > 0 else (a.low - b.high, a.high - b.low)
    if a.terms is None or b.terms is None:
        return Extent(low, high)
    found = dict(a.terms)
    for count, times in b.terms:
        found[count] = found.get(count, 0) + sign * times
    return Extent(low, high, tuple(sorted((c, t) for c, t in found.items() if t)), a.constant + sign * b.constant)


def times(a: Extent, b: Extent) -> Extent:
    """The product of two extents."""
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high = min(corners), max(corners)
    for one, other in ((a, b), (b, a)):
        if one.exact is not None and other.terms is not None:
            terms = tuple((c, t * one.exact) for c, t in other.terms if one.exact)
            return Extent(low, high, terms, other.constant * one.exact)
    return Extent(low, high)


def _product(a: Extent, b: Extent) -> Extent | None:
    """The product; None if a factor may be any number of 64 bits, because comparisons with the product's bounds would
    become conditions that no register can hold."""
    is_bounded = all(is_symbolic(end) or abs(end) < _UNBOUNDED for end in (a.low, a.high, b.low, b.high))
    return times(a, b) if is_bounded else None


def _minimum(a: Extent, b: Extent) -> Extent:
    if a.high <= b.low or b.high <= a.low:
        return a if a.high <= b.low else b
    return Extent(min(a.low, b.low), min(a.high, b.high))


def _maximum(a: Extent, b: Extent) -> Extent:
    if a.low >= b.high or b.low >= a.high:
        return a if a.low >= b.high else b
    return Extent(max(a.low, b.low), max(a.high, b.high))


def _quotient(a: Extent, b: Extent) -> Extent | None:
    """A quotient of non-negative numbers, for which rounding down and towards 0 are the same."""
    return Extent(a.low // b.high, a.high // b.low) if a.low >= 0 and b.low > 0 else None


_BINARY: dict[BinaryKind, Callable[[Extent, Extent], Extent | None]] = {
    BinaryKind.ADD: lambda a, b: added(a, b, 1),
    BinaryKind.SUB: lambda a, b: added(a, b, -1),
    BinaryKind.MUL: _product,
    BinaryKind.MINIMUM: _minimum,
    BinaryKind.MAXIMUM: _maximum,
    BinaryKind.DIV: _quotient,
    BinaryKind.FLOOR_DIV: _quotient,
}

_MOVING = (Copy, Reshape, Squeeze, ExpandDims, Gather, Slice, StridedSlice, Transpose)
"""Kinds that move the elements of their first operand."""


@frozen
class Extents(Value):
    """The extents of integers in a graph with operands of the given `types`. `count_bounds` has the upper bound of each
    operand that is a count, `lengths` returns the counts of a tensor by axis."""

    graph: Subgraph
    types: Mapping[int, TensorType]
    count_bounds: Mapping[int, int]
    lengths: Callable[[int], Mapping[int, int]]
    _found: dict[int, Cells] = field(factory=dict, init=False, eq=False)

    def of(self, operand: int, depth: int = 0) -> Cells | None:
        """The extents of an operand's elements; None unless it has integers or booleans and a known shape."""
        if operand not in self._found:
            type_ = self.types[operand]
            if not type_.ranked or not type_.is_static or not (type_.dtype is DType.BOOL or type_.dtype.is_integer):
                return None
            full_range = _full_range(type_.dtype)
            found = self._cells(operand, type_, depth) if depth < MOST_DEPTH else None
            small = not any(map(is_symbolic, type_.shape)) and (num_elements(type_.shape) or 0) <= MOST_CELLS
            cells = np.array(full_range, object) if found is None else np.array(found, object)
            if small:
                cells = np.array(np.broadcast_to(cells, type_.shape))  # type: ignore[arg-type]
            elif cells.shape:
                cells = np.array(_hull(cells), object)
            flat = cells.reshape(-1)
            for at, each in enumerate(flat):
                flat[at] = self._within(each, full_range)
            self._found[operand] = flat.reshape(cells.shape)
        return self._found[operand]

    def one(self, operand: int) -> Extent | None:
        """The extent of an operand's only element; None if it has several, or none is known."""
        cells = self.of(operand)
        return cells.reshape(-1)[0] if cells is not None and cells.size == 1 else None

    def bounded(self, each: Extent) -> Extent:
        """An extent narrowed by the bounds of its counts."""
        if each.terms is not None:
            terms = [(times * self.count_bounds[count]) for count, times in each.terms]
            low = max(each.low, each.constant + sum(e for e in terms if e < 0))
            high = min(each.high, each.constant + sum(e for e in terms if e > 0))
            return evolve(each, low=low, high=high)
        return each

    def _within(self, each: Extent, full_range: Extent) -> Extent:
        """An extent as stored: if it exceeds its type, the integer may wrap around to anything."""
        each = self.bounded(each)
        return each if full_range.low <= each.low and each.high <= full_range.high else full_range

    def _cells(self, operand: int, type_: TensorType, depth: int) -> Cells | None:
        if operand in self.count_bounds:
            return Extent(0, self.count_bounds[operand], ((operand, 1),))
        if type_.value is not None:
            return _of_array(type_.value)
        operation = definer(self.graph, operand)
        if operation is None:
            return None
        if isinstance(operation.op, CountedWhere | CountedBoxes) and operand == operation.outputs[1]:
            return Extent(0, self.types[operation.outputs[0]].shape[0] or 0)
        if isinstance(operation.op, ShapeOf):
            return self._shape(operation.used[0])
        if isinstance(operation.op, ArgReduce):
            axis, size = self.types[operation.used[1]].value, self.types[operation.used[0]].shape
            return None if axis is None else Extent(0, max(0, (size[int(axis.reshape(-1)[0])] or 1) - 1))
        if None in operation.inputs:
            return None
        return self._computed(operation, depth + 1)

    def _shape(self, x: int) -> Cells | None:
        counted = self.lengths(x)
        shape = self.types[x].shape
        found: list[Extent] = []
        for axis, size in enumerate(shape):
            if axis in counted:
                found.append(Extent(0, self.count_bounds[counted[axis]], ((counted[axis], 1),)))
            else:
                found.append(exactly(size) if size is not None else _full_range(DType.INT32))
        return _row(found) if self.types[x].ranked and found else None

    def _computed(self, operation: Operation, depth: int) -> Cells | None:
        op, used = operation.op, operation.used
        if isinstance(op, Within):
            limit, x = self.one(used[1]), self.of(used[0], depth)
            if limit is None or x is None:
                return None
            top = max(0, limit.high - (not op.inclusive))
            return _each(lambda e: _minimum(_maximum(e, exactly(0)), exactly(top)), x)
        if isinstance(op, Cast):
            return self.of(used[0], depth)
        if isinstance(op, _MOVING):
            return self._moved(operation, used[:1], depth)
        if isinstance(op, Concat | Pack):
            return self._moved(operation, used, depth)
        if isinstance(op, Binary) and op.kind in _BINARY and op.activation is Activation.NONE:
            return _each(_BINARY[op.kind], *(self.of(i, depth) for i in used))
        if isinstance(op, Select) and not op.rows:
            return _each(_selected, *(self.of(i, depth) for i in used))
        if isinstance(op, Comparison) and op.kind in _COMPARING:
            return _each(_COMPARING[op.kind], *(self.of(i, depth) for i in used))
        if isinstance(op, BroadcastArgs):
            longest = max(num_elements(self.types[i].shape) or 0 for i in used)  # a scalar is one dimension
            return _each(_broadcast_size, *(_left_padded(self.of(i, depth), longest) for i in used))
        return self._reduced(operation, op, depth) if isinstance(op, Reduce) else None

    def _moved(self, operation: Operation, moving: tuple[int, ...], depth: int) -> Cells | None:
        """The extents moved as the operation moves elements, found by evaluating it on element numbers."""
        cells: list[Cells] = []
        for i in moving:
            each = self.of(i, depth)
            if each is None or each.shape != self.types[i].shape:
                return None  # there is only one extent for many elements
            cells.append(each)
        others = [self.types[i].value for i in operation.used[len(moving) :]]
        if any(o is None for o in others):
            return None
        flat = np.concatenate([c.reshape(-1) for c in cells])
        numbers: list[Array] = []
        at = 0
        for each in cells:
            numbers.append(np.arange(at, at + each.size).reshape(each.shape))
            at += each.size
        evaluate = operation.op.evaluate
        assert evaluate is not None
        found = np.asarray(evaluate(*numbers, *others))
        return flat[found] if found.size <= MOST_CELLS else None

    def _reduced(self, operation: Operation, op: Reduce, depth: int) -> Cells | None:
        x, axes = self.of(operation.used[0], depth), self.types[operation.used[1]].value
        function = _REDUCING.get(op.kind)
        if x is None or axes is None or function is None:
            return None
        size, result_size = (num_elements(self.types[i].shape) for i in (operation.used[0], operation.outputs[0]))
        if not size or result_size != 1:
            return None
        if x.shape == self.types[operation.used[0]].shape:
            found = x.reshape(-1)[0]
            for each in x.reshape(-1)[1:]:
                found = function(found, each)
            return found
        one = x.reshape(())[()]
        if op.kind is Reduction.SUM:
            return Extent(one.low * size, one.high * size)
        return Extent(one.low, one.high) if op.kind in (Reduction.MIN, Reduction.MAX) else None


_REDUCING: dict[Reduction, Callable[[Extent, Extent], Extent]] = {
    Reduction.SUM: lambda a, b: added(a, b, 1),
    Reduction.PROD: times,
    Reduction.MIN: _minimum,
    Reduction.MAX: _maximum,
}


def _full_range(dtype: DType) -> Extent:
    """The full range of a type."""
    if dtype is DType.BOOL:
        return Extent(0, 1)
    limits = np.iinfo(dtype.numpy)
    return Extent(int(limits.min), int(limits.max))


def _of_array(array: Array) -> Cells | None:
    """The extents of known integers; None for other types and empty arrays."""
    if array.dtype.kind not in "iubO" or not array.size:
        return None
    if array.size > MOST_CELLS:
        return None if array.dtype == object else Extent(int(array.min()), int(array.max()))
    return _row([exactly(i if is_symbolic(i) else int(i)) for i in array.reshape(-1)]).reshape(array.shape)


def _row(extents: list[Extent]) -> Cells:
    found = np.empty(len(extents), object)
    found[:] = extents
    return found


def _hull(cells: Cells) -> Extent:
    """The extent that covers several."""
    flat = cells.reshape(-1)
    return Extent(min(e.low for e in flat), max(e.high for e in flat))


def _selected(condition: Extent, a: Extent, b: Extent) -> Extent:
    """The extent selected by a condition; covers both if the condition is unknown."""
    if condition.exact is not None:
        return a if condition.exact else b
    if _are_same(a, b):
        return a
    return Extent(min(a.low, b.low), max(a.high, b.high))


def _equal(a: Extent, b: Extent) -> Extent:
    if a.high < b.low or b.high < a.low:
        return exactly(0)
    return exactly(1) if a.exact is not None and a.exact == b.exact else Extent(0, 1)


_COMPARING: dict[ComparisonKind, Callable[[Extent, Extent], Extent]] = {
    ComparisonKind.EQUAL: _equal,
    ComparisonKind.NOT_EQUAL: lambda a, b: added(exactly(1), _equal(a, b), -1),
}


def _broadcast_size(a: Extent, b: Extent) -> Extent | None:
    """What two dimensions broadcast to, if it is known which of them that is; otherwise None."""
    for one, other in ((a, b), (b, a)):
        if one.exact == 1 or (other.low > 1 and other.exact is not None):
            return other
    return a if _are_same(a, b) else None


def _are_same(a: Extent, b: Extent) -> bool:
    """Whether two integers are known to be equal."""
    return a.terms is not None and (a.terms, a.constant) == (b.terms, b.constant)


def _left_padded(cells: Cells | None, length: int) -> Cells | None:
    """A shape padded with leading ones to `length`."""
    return None if cells is None or cells.ndim != 1 else np.concatenate([_row([exactly(1)] * length), cells])[-length:]


def _each(function: Callable[..., Extent | None], *cells: Cells | None) -> Cells | None:
    """A function of extents, element by element; None if one result is unknown."""
    if any(c is None for c in cells):
        return None
    arrays = np.broadcast_arrays(*(np.array(c, object) for c in cells))
    found = [function(*each) for each in zip(*(a.reshape(-1) for a in arrays), strict=True)]
    if any(f is None for f in found) or not found:
        return None
    return _row(found).reshape(arrays[0].shape)  # type: ignore[arg-type]
