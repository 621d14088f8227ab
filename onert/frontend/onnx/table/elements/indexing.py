"""Gather and scatter by index; negative indices count from the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import add

import numpy as np

from onert.frontend.onnx.building import (
    binary,
    cast,
    dimension,
    ints,
    like,
    require_rank,
    reshape,
    shape_of,
    transpose,
)
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.diagonal import MatrixBandPart
from onert.ir.ops.data_movement.element_indices import Combination, GatherElements, ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.fill import Fill, Range, Where
from onert.ir.ops.data_movement.gather import Gather, GatherNd, OneHot
from onert.ir.ops.data_movement.reshape import ExpandDims
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.shape import normalize_axis

ADD = BinaryKind.ADD


def _from_front(d: Draft, indices: int, sizes: int) -> int:
    """Add dimension sizes, which are int64 operands, to negative indices."""
    known, size = d.value(indices), d.value(sizes)
    if known is not None and (not known.size or int(known.min()) >= 0):
        return indices
    if known is not None and size is not None:
        return d.constant(np.where(known < 0, known + size, known).astype(known.dtype), d.type(indices).dtype)
    wide = cast(d, indices, DType.INT64)
    negative = d.add(Comparison(ComparisonKind.LESS), wide, like(d, wide, 0))
    return d.add(Select(), negative, binary(d, ADD, wide, sizes), wide)


def _along_axis(node: Node) -> tuple[int, int]:
    """The node's axis, and nonnegative indices along it."""
    d, x = node.draft, node.input(0)
    axis = normalize_axis(node.integer("axis"), require_rank(d, x, 1))
    return axis, _from_front(d, node.input(1), reshape(d, dimension(d, x, axis), ()))


def _gather(kind: Callable[[int], Gather | GatherElements], node: Node) -> int:
    axis, indices = _along_axis(node)
    return node.draft.add(kind(axis), node.input(0), indices)


def _gather_slices(node: Node) -> int:
    d, x, indices, batch = node.draft, node.input(0), node.input(1), node.integer("batch_dims")
    rank = require_rank(d, x)
    depth = d.type(indices).shape[-1] if require_rank(d, indices, 1) else None
    if depth is None or not 0 <= batch < d.type(indices).rank or batch + depth > rank:
        raise ModelError(f"indices {d.type(indices)} with {batch} batch dimensions do not fit {d.type(x)}")
    sizes = d.add(Gather(0), shape_of(d, x), ints(d, range(batch, batch + depth)))
    found = _from_front(d, indices, sizes)
    if not batch:
        return d.add(GatherNd(), x, found)
    rows = Expression(d, found).cast(DType.INT64)
    last = rows.rank - 1
    places = [
        rows.size(axis).arange().reshape(*(None if i == axis else 1 for i in range(rows.rank))) for axis in range(last)
    ]
    grid = reduce(add, (each * 0 for each in places))
    return d.add(GatherNd(), x, (places[0] + grid).concat([*(p + grid for p in places[1:batch]), rows], last).operand)


def _combination(node: Node) -> Combination:
    name = node.choice("reduction", ("none", "add", "mul", "max", "min"), "none")
    return Combination["REPLACE" if name == "none" else name.upper()]


def _scatter_elements(node: Node) -> int:
    axis, indices = _along_axis(node)
    return node.draft.add(ScatterElements(axis, _combination(node)), node.input(0), indices, node.input(2))


def _scatter_slices(node: Node) -> int:
    d, x, indices = node.draft, node.input(0), node.input(1)
    require_rank(d, x)
    depth = d.type(indices).shape[-1] if require_rank(d, indices, 1) else None
    if depth is None or depth > d.type(x).rank:
        raise ModelError(f"indices {d.type(indices)} do not fit {d.type(x)}")
    sizes = d.add(Gather(0), shape_of(d, x), ints(d, range(depth)))
    return d.add(ScatterSlices(_combination(node)), x, _from_front(d, indices, sizes), node.input(2))


_MOST_SELECTED = 64
"""The most elements that are selected by constant indices: as many as count as arithmetic on shapes."""


def _one_hot(node: Node) -> int:
    """Indices from -depth to depth - 1 are valid; others have no hot element.

    If indices and depth are constant, as in the repeats that PyTorch's older exporter writes, the few elements are
    gathered from the two values, which arithmetic on shapes follows.
    """
    d = node.draft
    indices, values = node.input(0), node.input(2)
    depth = cast(d, reshape(d, node.input(1), ()), DType.INT64)
    wide = cast(d, indices, DType.INT64)
    found = _from_front(d, wide, depth)
    op, known, size = OneHot(node.integer("axis", -1)), d.value(found), d.value(depth)
    count = -1 if known is None or size is None else known.size * int(size)
    if known is not None and size is not None and 0 <= count <= _MOST_SELECTED and d.type(values).shape == (2,):
        which = op.evaluate(known, size, np.array(1), np.array(0))
        return d.add(Gather(0), values, d.constant(which, DType.INT64))
    off, on = (reshape(d, d.add(Gather(0), values, ints(d, [i])), ()) for i in (0, 1))
    return d.add(op, found, depth, on, off)


def _non_zero(node: Node) -> int:
    """The indices of a vector of equal elements, as PyTorch's older exporter writes `arange`, are a range."""
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x)
    filled = d.definer(x)
    value = None if filled is None or not isinstance(filled.op, Fill) else d.value(filled.used[1])
    if filled is None or rank != 1 or value is None or value.dtype.kind not in "biuf" or not value.any():
        return transpose(d, d.add(Where(), x), (1, 0))
    count = cast(d, reshape(d, filled.used[0], ()), DType.INT64)
    return reshape(d, d.add(Range(), d.constant(0, DType.INT64), count, d.constant(1, DType.INT64)), (1, None))


def _compress(node: Node) -> int:
    """The entries along an axis for which the condition is true, or of the flattened tensor without an axis."""
    d, x = node.draft, node.input(0)
    axis = 0
    if node.has_attribute("axis"):
        axis = normalize_axis(node.integer("axis"), require_rank(d, x, 1))
    else:
        x = reshape(d, x, (None,))
    return d.add(Gather(axis), x, reshape(d, d.add(Where(), node.input(1)), (None,)))


def _triangle(node: Node) -> int:
    """The elements above (or below) the k-th diagonal; others become 0."""
    d, x = node.draft, node.input(0)
    require_rank(d, x, 2)
    upper = node.flag("upper", default=True)
    if node.has(1) and node.value(1) is None:
        return _triangle_at(d, x, node.input(1), upper=upper)
    k = int(node.constant(1, "k", "integers", 1).reshape(())) if node.has(1) else 0
    if (upper and k <= 0) or (not upper and k >= 0):
        low, high = (-k, -1) if upper else (-1, k)
        return d.add(MatrixBandPart(), x, d.constant(low, DType.INT64), d.constant(high, DType.INT64))
    # the main diagonal is not kept: select with a mask instead of a band
    rows, columns = d.type(x).shape[-2:]
    if rows is None or columns is None:
        return _triangle_at(d, x, d.constant(k, DType.INT64), upper=upper)
    k = min(max(k, -rows), columns)
    d.memory.spend(rows * columns, "a triangular mask")
    mask = np.triu(np.ones((rows, columns), np.bool_), k) if upper else np.tril(np.ones((rows, columns), np.bool_), k)
    return d.add(Select(), d.constant(mask, DType.BOOL), x, like(d, x, 0))


def _triangle_at(d: Draft, x: int, k: int, *, upper: bool) -> int:
    """A triangle with k known only at run time: column minus row is at least (or at most) k."""
    rank = require_rank(d, x, 2)
    zero, one = d.constant(0, DType.INT64), d.constant(1, DType.INT64)
    rows, columns = (d.add(Range(), zero, reshape(d, dimension(d, x, axis), ()), one) for axis in (rank - 2, rank - 1))
    rows = d.add(ExpandDims(), rows, d.constant(1, DType.INT32))
    apart = binary(d, BinaryKind.SUB, columns, rows)
    kind = ComparisonKind.GREATER_EQUAL if upper else ComparisonKind.LESS_EQUAL
    return d.add(Select(), d.add(Comparison(kind), apart, reshape(d, k, ())), x, like(d, x, 0))


def _unique(node: Node) -> tuple[int, ...]:
    axis = node.integer("axis") if node.has_attribute("axis") else None
    return node.draft.add_many(UniqueSlices(axis, node.flag("sorted", default=True)), node.input(0))


TABLE: dict[str, Importer] = {
    "Compress": _compress,
    "Gather": partial(_gather, Gather),
    "GatherElements": partial(_gather, GatherElements),
    "GatherND": _gather_slices,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_slices,
    "Trilu": _triangle,
    "Unique": _unique,
}
