"""Whole tensors of which only the first entries are valid, and a writer for operations on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.compiler.rewrite.edit import Edit
from onert.ir import Array, Constant, DType, Op, Operand, Operation, Quantization, Subgraph, TensorType
from onert.ir.analysis.inference import infer
from onert.ir.ops.data_movement.element_indices import Combination, ScatterSlices
from onert.ir.ops.data_movement.fill import Fill, FirstEntries, Range, TopK, Unique, Within
from onert.ir.ops.data_movement.gather import OneHot, ScatterNd
from onert.ir.ops.data_movement.joining import SplitV
from onert.ir.ops.data_movement.random_numbers import MultinomialFrom, RandomFrom
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.reduction.segment import SegmentSum
from onert.ir.ops.vision_audio.interpolate import Interpolate
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor
from onert.ir.symbolic.trace import has_symbols, is_symbolic
from onert.ir.value import Value

from .extents import Extent, Extents

COUNTING = (
    TopK,
    Unique,
    UniqueSlices,
    Range,
    Fill,
    BroadcastTo,
    Tile,
    Pad,
    Reshape,
    StridedSlice,
    Slice,
    SplitV,
    OneHot,
    ScatterNd,
    SegmentSum,
    ResizeBilinear,
    ResizeNearestNeighbor,
    Interpolate,
    RandomFrom,
    MultinomialFrom,
)
"""Kinds whose result size may be known only at run time even if all their operands are whole."""


def is_open(graph: Subgraph, operation: Operation) -> bool:
    """Whether the result size of an operation on whole operands, or the index it picks, is known only at run time."""
    op = operation.op
    if isinstance(op, StridedSlice) and op.picks(graph.type(operation.used[1])):
        return True
    return isinstance(op, COUNTING) and not all(graph.type(o).is_static for o in operation.outputs)


MOST_SIZED = 1 << 22
"""The most entries to allocate for a size computed at run time; beyond it the operation is left to the run."""


@frozen
class Counted(Value):
    """A tensor with valid first entries along `axis`: `count` is the operand with their number (one int64), `zeros`
    says whether all others are 0. `more` has further counted axes, each with its number."""

    operand: int
    count: int
    axis: int
    zeros: bool
    more: tuple[tuple[int, int], ...] = ()

    @property
    def axes(self) -> dict[int, int]:
        """The number of valid entries by counted axis."""
        return {self.axis: self.count, **dict(self.more)}


def existing(number: int) -> Callable[[], int]:
    """A function that returns a count that is already written, for `Writer.length`."""
    return lambda: number


def first_of(operand: int, axes: Mapping[int, int], *, zeros: bool = False) -> Counted | int:
    """A tensor with its counted axes; the operand itself if there are none."""
    if not axes:
        return operand
    (axis, count), *more = axes.items()
    return Counted(operand, count, axis, zeros, tuple(more))


def with_open_axis(type_: TensorType, axis: int) -> TensorType:
    """The type with an unknown dimension along an axis."""
    return type_.with_shape((*type_.shape[:axis], None, *type_.shape[axis + 1 :]))


def first_entries(
    whole: int, type_: TensorType, axes: Mapping[int, int], out: int, new: Callable[[TensorType], int]
) -> Iterator[Operation]:
    """Operations that take the valid entries of a tensor, axis by axis, as operand `out`; `axes` has their numbers."""
    *before, last = axes
    for axis in before:
        type_ = with_open_axis(type_, axis)
        part = new(type_)
        yield Operation(FirstEntries(axis), (whole, axes[axis]), (part,))
        whole = part
    yield Operation(FirstEntries(last), (whole, axes[last]), (out,))


class Writer:
    """Writes the operations that replace one of a graph. Has the types of all operands, and the graph's operands that
    are known to be first entries.
    """

    def __init__(self, edit: Edit) -> None:
        self.edit = edit
        self.types: dict[int, TensorType] = {i: o.known for i, o in enumerate(edit.subgraph.operands)}
        self.counted: dict[int, Counted] = {}
        self.count_bounds: dict[int, int] = {}  # the upper bound of each count
        self.lengths: dict[tuple[tuple[tuple[int, int], ...], int], int] = {}  # counts by their terms and constant
        self.extents = Extents(edit.subgraph, self.types, self.count_bounds, self._lengths)
        self.operations: list[Operation] = []
        self.committed: set[int] = set()
        self.location = ""

    def _lengths(self, operand: int) -> Mapping[int, int]:
        counted = self.counted.get(operand)
        return {} if counted is None else counted.axes

    def _is_written(self, operand: int | None) -> bool:
        """Whether an operand is written and was not discarded."""
        return operand in self.committed or any(operand in operation.outputs for operation in self.operations)

    def commit(self) -> None:
        """Keep what was written."""
        self.committed.update(o for operation in self.operations for o in operation.outputs)

    def begin(self, location: str) -> None:
        """Start to replace another operation."""
        self.operations, self.location = [], location

    def new(self, type_: TensorType) -> int:
        operand = self.edit.operand(Operand(evolve(type_, data=None)))
        self.types[operand] = type_
        return operand

    def constant(self, array: Array, dtype: DType | None = None, quantization: Quantization | None = None) -> int:
        operand = self.edit.constant(array, dtype, quantization)
        self.types[operand] = TensorType(
            dtype or DType.from_numpy(array.dtype), array.shape, quantization, data=Constant(array)
        )
        return operand

    def like(self, type_: TensorType, value: float) -> int:
        """A constant scalar of a type, with a stored value."""
        return self.constant(np.array(value, type_.dtype.numpy), type_.dtype, type_.quantization)

    def add(self, op: Op, *inputs: int | None, quantization: Quantization | None = None) -> int:
        """Append an operation with one result."""
        (result,) = self.add_many(op, *inputs, quantization=quantization)
        return result

    def add_many(self, op: Op, *inputs: int | None, quantization: Quantization | None = None) -> tuple[int, ...]:
        """Append an operation and return its results. Those with the element type of its first operand get
        `quantization`."""
        results = infer(op, [None if i is None else self.types[i] for i in inputs])
        assert results is not None
        first = None if inputs[0] is None else self.types[inputs[0]].dtype
        outputs = tuple(self.new(evolve(t, quantization=quantization) if t.dtype is first else t) for t in results)
        self.operations.append(Operation(op, inputs, outputs, self.location))
        return outputs

    def integers(self, values: Any, dtype: DType = DType.INT64) -> int:
        """A constant of integers, some of which may be symbolic."""
        array = np.array(values, object)
        return self.constant(array if has_symbols(array) else array.astype(dtype.numpy), dtype)

    def number(self, value: int) -> int:
        return self.integers(value)

    def numbers(self, count: int, trailing: int = 0, dtype: DType = DType.INT64) -> int:
        """The numbers 0 .. count - 1 along an axis, followed by `trailing` axes of size 1."""
        shape = (-1, *(1,) * trailing)
        if not is_symbolic(count):
            return self.constant(np.arange(count, dtype=dtype.numpy).reshape(shape))
        found = self.add(Range(), *(self.integers(each, dtype) for each in (0, count, 1)))
        return self.add(Reshape(shape), found) if trailing else found

    def repeated(self, value: int, count: int) -> int:
        """A vector with the same integer `count` times."""
        if is_symbolic(count):
            return self.add(Fill(), self.integers([count]), self.number(value))
        return self.constant(np.full(count, value, np.int64))

    def sum(self, a: int, b: int) -> int:
        return self.add(Binary(BinaryKind.ADD), a, b)

    def part(self, x: int, begin: int, size: int) -> int:
        """The `size` entries of a vector from `begin` on."""
        return self.add(Slice(), x, *(self.integers([each], DType.INT32) for each in (begin, size)))

    def shortened(self, x: int, axis: int, size: int) -> int:
        """The first `size` entries along an axis."""
        type_ = self.types[x]
        if type_.shape[axis] == size:
            return x
        begin, sizes = [0] * type_.rank, [-1] * type_.rank
        sizes[axis] = size
        ends = (self.integers(each, DType.INT32) for each in (begin, sizes))
        return self.add(Slice(), x, *ends, quantization=type_.quantization)

    def running_count(self, mask: int) -> int:
        """The inclusive running count of true elements of a vector."""
        return self.add(CumSum(), self.add(Cast(DType.INT64), mask), self.integers(0, DType.INT32))

    def scattered(self, vector: int, places: int, elements: int, combination: Combination = Combination.REPLACE) -> int:
        """A vector with elements scattered to places; negative places are skipped."""
        indices = self.add(Reshape((self.types[places].shape[0] or 0, 1)), places)
        return self.add(ScatterSlices(combination, skips=True), vector, indices, elements)

    def valid_mask(self, counted: Counted) -> int:
        """A mask of the valid entries, which broadcasts along the other axes."""
        type_, valid = self.types[counted.operand], None
        for axis, count in counted.axes.items():
            number = self.numbers(type_.shape[axis] or 0, type_.rank - axis - 1)
            mask = self.add(Comparison(ComparisonKind.LESS), number, count)
            valid = mask if valid is None else self.add(Binary(BinaryKind.LOGICAL_AND), valid, mask)
        assert valid is not None
        return valid

    def filled(self, counted: Counted, value: float) -> int:
        """The whole tensor with its invalid entries replaced by a stored value."""
        type_ = self.types[counted.operand]
        filler = self.like(type_, value)
        return self.add(Select(), self.valid_mask(counted), counted.operand, filler, quantization=type_.quantization)

    def require_length(self, whole: int, axis: int, number: int, exact: int) -> int:
        """A result whose computed length `number` must equal `exact`, checked at run time."""
        difference = self.add(Binary(BinaryKind.SUB), number, self.number(exact))
        checked = self.add(Within(inclusive=True), difference, self.number(0))
        return self.filled(Counted(whole, self.sum(checked, self.number(exact)), axis, False), 0)

    def zeroed(self, counted: Counted) -> int:
        return counted.operand if counted.zeros else self.filled(counted, 0)

    def bound(self, counted: Counted) -> int:
        """The number of all entries along the axis, valid or not."""
        return self.types[counted.operand].shape[counted.axis] or 0

    def as_count(self, operand: int) -> int:
        """The only element of an operand as a count: an int64 scalar."""
        one = operand if not self.types[operand].shape else self.add(Reshape(()), operand)
        return one if self.types[one].dtype is DType.INT64 else self.add(Cast(DType.INT64), one)

    def length(self, found: Extent, compute: Callable[[], int]) -> int:
        """A count with the extent `found`: a constant or an existing count if it is known to be equal, otherwise what
        `compute` writes, checked to be at most `found.high`."""
        key = None if found.terms is None else (found.terms, found.constant)
        if found.exact is not None:
            return self.number(found.exact)
        if found.terms is not None and len(found.terms) == 1 and not found.constant and found.terms[0][1] == 1:
            return found.terms[0][0]
        if key is None or not self._is_written(self.lengths.get(key)):
            checked = self.add(Within(inclusive=True), compute(), self.number(found.high))
            if key is None:
                return checked
            self.lengths[key] = checked
        return self.lengths[key]


CountedInputs = Sequence[Counted | None]
CountedResults = tuple[Counted | int, ...]
"""For each result a counted whole tensor, or an operand that is the result itself."""
Rule = Callable[[Writer, Operation, CountedInputs], CountedResults | None]
