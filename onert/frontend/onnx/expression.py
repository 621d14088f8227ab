"""Operands with Python operators, so that a composition of many operations reads as a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir import DType, ModelError, Shape, TensorType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.fill import Fill, Range
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction

from . import building
from .draft import Draft
from .node import Node


def _binary(kind: BinaryKind) -> Callable[[Expression, Expression | float], Expression]:
    return lambda self, other: self.binary(kind, other)


def _compare(kind: ComparisonKind) -> Callable[[Expression, Expression | float], Expression]:
    return lambda self, other: self.compare(kind, other)


@frozen(eq=False)
class Expression:
    """An operand of a draft. Operators add operations; numbers are converted to the operand's element type.

    Shapes broadcast. Every method raises RuleError if the operation that it adds rejects its operands.
    """

    draft: Draft
    operand: int

    @property
    def type(self) -> TensorType:
        return self.draft.type(self.operand)

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        """The dimensions. Raises ModelError if the rank is unknown."""
        building.require_rank(self.draft, self.operand)
        return self.type.shape

    @property
    def rank(self) -> int:
        return building.require_rank(self.draft, self.operand)

    def of(self, operand: int) -> Expression:
        """Another operand of the same draft."""
        return Expression(self.draft, operand)

    def like(self, value: float) -> Expression:
        """A constant scalar of this element type."""
        return self.of(building.like(self.draft, self.operand, value))

    def _as_operand(self, other: Expression | float) -> int:
        return other.operand if isinstance(other, Expression) else building.like(self.draft, self.operand, other)

    def binary(self, kind: BinaryKind, other: Expression | float) -> Expression:
        return self.of(self.draft.add(Binary(kind), self.operand, self._as_operand(other)))

    def unary(self, kind: UnaryKind) -> Expression:
        return self.of(self.draft.add(Unary(kind), self.operand))

    def compare(self, kind: ComparisonKind, other: Expression | float) -> Expression:
        return self.of(self.draft.add(Comparison(kind), self.operand, self._as_operand(other)))

    __add__ = __radd__ = _binary(BinaryKind.ADD)
    __sub__ = _binary(BinaryKind.SUB)
    __mul__ = __rmul__ = _binary(BinaryKind.MUL)
    __truediv__ = _binary(BinaryKind.DIV)
    __and__ = _binary(BinaryKind.LOGICAL_AND)
    __or__ = _binary(BinaryKind.LOGICAL_OR)
    at_least = _binary(BinaryKind.MAXIMUM)
    at_most = _binary(BinaryKind.MINIMUM)
    __lt__ = _compare(ComparisonKind.LESS)
    __le__ = _compare(ComparisonKind.LESS_EQUAL)
    __gt__ = _compare(ComparisonKind.GREATER)
    __ge__ = _compare(ComparisonKind.GREATER_EQUAL)
    equals = _compare(ComparisonKind.EQUAL)

    def __rsub__(self, other: float) -> Expression:
        return self.like(other) - self

    def __rtruediv__(self, other: float) -> Expression:
        return self.like(other) / self

    def __neg__(self) -> Expression:
        return self.unary(UnaryKind.NEG)

    def __invert__(self) -> Expression:
        return self.unary(UnaryKind.LOGICAL_NOT)

    def __matmul__(self, other: Expression) -> Expression:
        """Batched matrix multiplication; batch dimensions broadcast."""
        return self.of(self.draft.add(BatchMatMul(), self.operand, other.operand))

    def select(self, one: Expression, other: Expression | float) -> Expression:
        """Elements of `one` where this is true, otherwise of `other`."""
        return self.of(self.draft.add(Select(), self.operand, one.operand, one._as_operand(other)))

    def cast(self, to: DType) -> Expression:
        return self.of(building.cast(self.draft, self.operand, to))

    def reduce(self, kind: Reduction, axes: Sequence[int], *, keep: bool = True) -> Expression:
        places = building.ints(self.draft, axes, DType.INT32)
        return self.of(self.draft.add(Reduce(kind, keep_dims=keep), self.operand, places))

    def sum(self, *axes: int, keep: bool = True) -> Expression:
        return self.reduce(Reduction.SUM, axes, keep=keep)

    def reshape(self, *dims: int | None) -> Expression:
        """Reshaped; one dimension may be None, which is inferred from the others."""
        return self.of(building.reshape(self.draft, self.operand, dims))

    def filled(self, value: float, *dims: int | Expression) -> Expression:
        """A tensor of this element type filled with a number; some dimensions are int64 operands of rank 1."""
        return self.of(self.draft.add(Fill(), self._vector(dims), self.like(value).operand))

    def reshape_by(self, *dims: int | Expression) -> Expression:
        """Reshaped to dimensions some of which are int64 operands of rank 1."""
        return self.of(building.reshape_by(self.draft, self.operand, self._vector(dims)))

    def _vector(self, dims: Sequence[int | Expression]) -> int:
        parts = [building.ints(self.draft, [d]) if isinstance(d, int) else d.operand for d in dims]
        return building.concat(self.draft, parts)

    def transpose(self, *order: int) -> Expression:
        return self.of(building.transpose(self.draft, self.operand, order))

    def unsqueeze(self, axis: int) -> Expression:
        """With a dimension of size 1 inserted at `axis`."""
        return self.of(self.draft.add(ExpandDims(), self.operand, self.draft.constant(axis, DType.INT32)))

    def squeeze(self, *axes: int) -> Expression:
        return self.of(self.draft.add(Squeeze(tuple(axes)), self.operand))

    def scalar(self) -> Expression:
        """The only element as a scalar."""
        return self.of(self.draft.add(Reshape(()), self.operand)) if self.type.rank else self

    def size(self, axis: int) -> Expression:
        """The size of a dimension, as an int64 vector of one element."""
        return self.of(building.dimension(self.draft, self.operand, axis))

    def known_size(self, axis: int, what: str) -> int:
        """The size of a dimension. Raises ModelError, naming this operand `what`, if it is missing or unknown."""
        if axis >= self.rank:
            raise ModelError(f"{what} is {self.type}, expected at least {axis + 1} dimensions")
        size = self.shape[axis]
        if size is None:
            raise ModelError(f"{what} is {self.type}, expected a known dimension {axis}")
        return size

    def expect(self, what: str, *sizes: int | None) -> None:
        """Raise ModelError, naming this operand `what`, unless it has these sizes; None stands for any."""
        known = self.type.shape if self.type.ranked else sizes
        if len(known) != len(sizes) or any(None not in (a, b) and a != b for a, b in zip(known, sizes, strict=True)):
            wanted = ", ".join("any" if size is None else str(size) for size in sizes)
            raise ModelError(f"{what} is {self.type}, expected [{wanted}]")

    def take(self, indices: Expression | Sequence[int] | int, axis: int) -> Expression:
        """The entries along an axis at the given indices; a single index removes the axis."""
        if isinstance(indices, Expression):
            places = indices.operand
        elif isinstance(indices, int):
            places = self.draft.constant(indices, DType.INT64)
        else:
            places = building.ints(self.draft, indices)
        return self.of(self.draft.add(Gather(axis), self.operand, places))

    def concat(self, others: Sequence[Expression], axis: int) -> Expression:
        """The concatenation of this and others along an axis."""
        return self.of(self.draft.add(Concat(axis), self.operand, *(o.operand for o in others)))

    def broadcast(self, shape: Expression) -> Expression:
        """Broadcast to a shape, which is an int64 operand."""
        return self.of(self.draft.add(BroadcastTo(), self.operand, shape.operand))

    def arange(self) -> Expression:
        """The integers from 0 up to, but excluding, this int64 scalar."""
        zero, one = (self.draft.constant(v, DType.INT64) for v in (0, 1))
        return self.of(self.draft.add(Range(), zero, self.scalar().operand, one))


def operand(node: Node, index: int) -> Expression:
    """An input that is a tensor. Raises ModelError if it is absent."""
    return Expression(node.draft, node.input(index))


def optional(node: Node, index: int) -> Expression | None:
    """An optional input; None if it is absent."""
    return operand(node, index) if node.has(index) else None
