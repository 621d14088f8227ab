"""Models with dynamic dimensions and results of run-time size, or kernels that evaluate in NumPy, for tests of
lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onert.ir import DType, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.control_flow.control import If
from onert.ir.ops.data_movement.fill import Range, Where
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.determinant import Inverse
from onert.ir.ops.reduction.reduce import Reduce, Reduction

_RANDOM = np.random.default_rng(8)


def _above(b: Builder, x: int, axis: int, limit: float) -> int:
    """The positions along the other axis of a matrix whose largest element exceeds a limit."""
    largest = b.add(Reduce(Reduction.MAX), x, b.constant(np.int32([axis])))
    above = b.add(Comparison(ComparisonKind.GREATER), largest, b.constant(np.float32(limit)))
    return b.add(Squeeze((1,)), b.add(Where(), above))


def picked() -> Subgraphs:
    """Some rows, then a layer; and some columns, whose length is that of the input."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (5, 4)), "x")
    weights = b.constant(_RANDOM.normal(0, 1, (3, 4)).astype(np.float32))
    rows = b.add(FullyConnected(), b.add(Gather(0, 0), x, _above(b, x, 1, 0.8)), weights)
    columns = b.add(Unary(UnaryKind.EXP), b.add(Gather(1, 0), x, _above(b, x, 0, 1)))
    both = b.add(Gather(1, 0), b.add(Gather(0, 0), x, _above(b, x, 1, 0.5)), _above(b, x, 0, 1.2))
    return b.model([rows, columns, both, b.add(Unary(UnaryKind.ABS), x)])


def padded() -> Subgraphs:
    """As many zeros as elements are positive, after the rows; and the numbers below that count."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (5, 2)), "x")
    positive = b.add(Comparison(ComparisonKind.GREATER), x, b.constant(np.float32(0)))
    count = b.add(Reduce(Reduction.SUM), b.add(Cast(DType.INT32), positive), b.constant(np.int32([0, 1])))
    numbers = b.add(Range(), b.constant(np.int32(0)), count, b.constant(np.int32(1)))
    margins = b.add(Binary(BinaryKind.MUL), count, b.constant(np.int32([[0, 1], [0, 0]])))
    return b.model([b.add(Unary(UnaryKind.EXP), b.add(Pad(), x, margins)), numbers])


def inverted() -> Subgraphs:
    """Inverse matrices, which NumPy computes, between native operations; and the unique rows."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 3, 3)), "x")
    regular = b.add(Binary(BinaryKind.ADD), x, b.constant(9 * np.eye(3, dtype=np.float32)))
    inverse = b.add(Inverse(), regular)
    rows = b.add(Reshape((-1, 3)), b.add(Unary(UnaryKind.SIGN), x))
    unique, *others = b.add_many(UniqueSlices(0), rows)
    return b.model([b.add(Binary(BinaryKind.MUL), inverse, x), inverse, unique, *others])


def branched() -> Subgraphs:
    """One of two branches, as a decoder that starts or continues a sequence: its rows, or twice as many."""
    b, type_ = Builder(), TensorType(DType.FLOAT32, (5, 3))
    x = b.input(type_, "x")
    total = b.add(Reduce(Reduction.SUM), x, b.constant(np.int32([0, 1])))
    positive = b.add(Comparison(ComparisonKind.GREATER), total, b.constant(np.float32(0)))
    y = b.add(If(1, 2, (TensorType(DType.FLOAT32, (None, 3)),)), positive, x)
    longer, same = Builder("longer"), Builder("same")
    rows, given = longer.input(type_), same.input(type_)
    doubled = longer.add(Concat(0), rows, longer.add(Unary(UnaryKind.EXP), rows))
    graphs = longer.subgraph([doubled]), same.subgraph([same.add(Unary(UnaryKind.ABS), given)])
    return Subgraphs((b.subgraph([y]), *graphs))


def counted() -> Subgraphs:
    """Deviations from the mean of each row, by the root of the mean square times the number of elements."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 5)), "x")
    last = b.constant(np.int32([1]))
    sizes = b.add(Gather(0, 0), b.add(ShapeOf(), x), b.constant(np.int32(1)))
    apart = b.add(Binary(BinaryKind.SUB), x, b.add(Reduce(Reduction.MEAN, keep_dims=True), x, last))
    square = b.add(Reduce(Reduction.MEAN, keep_dims=True), b.add(Unary(UnaryKind.SQUARE), apart), last)
    total = b.add(Binary(BinaryKind.MUL), square, b.add(Cast(DType.FLOAT32), sizes))
    root = b.add(Unary(UnaryKind.SQRT), b.add(Binary(BinaryKind.ADD), total, b.constant(np.float32(1))))
    return b.model([b.add(Binary(BinaryKind.DIV), apart, root)])


COUNTS: list[tuple[str, Callable[[], Subgraphs], Callable[[int], list[tuple[int, ...]]]]] = [
    ("picked", picked, lambda n: [(max(n, 1), 4)]),
    ("padded", padded, lambda n: [(max(n, 1), 2)]),
    ("inverted", inverted, lambda n: [(max(n, 1), 3, 3)]),
    ("branched", branched, lambda n: [(max(n, 1), 3)]),
    ("counted", counted, lambda n: [(2, max(n, 1))]),
]
