"""Access by index: rows of tables, sums of rows, scattered rows.

The last dimension of indices indexes the leading dimensions of the table; a scalar indexes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.ir import DType, RuleError
from onert.ir import shape as shapes
from onert.ir.ops.data_movement.gather import Gather, GatherNd, OneHot, ScatterNd
from onert.ir.ops.data_movement.slicing import BroadcastTo
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.reduce import Reduce, Reduction


def _gather(e: Emitter, node: Node) -> int:
    """Gather rows of a table. A negative index selects the third operand instead of a row."""
    node.require_inputs(2, 3)
    params, indices = node.inputs[:2]
    by_number = _has_row_numbers(e, node, params, indices)
    if len(node.inputs) == 2:
        return _rows(e, params, indices, by_number)
    inside, missing = _clamp_indices(e, indices, by_number)
    rows = _rows(e, params, inside, by_number)
    beside = e.rank(rows) - e.rank(missing)
    return e.add(Select(), e.reshape(missing, (*e.shape(missing), *(1,) * beside)), node.inputs[2], rows)


def _has_row_numbers(e: Emitter, node: Node, params: int, indices: int) -> bool:
    """Whether each index is a row number: it is a scalar, or the declared result has a row for each index in a list.

    Myelin's builder declares such a result for a list of indices, but its kernels treat the list as one index tuple.
    """
    rank = e.rank(indices)
    return rank == 0 or (rank == 1 and node.result.shape == (*e.type(indices).shape, *e.type(params).shape[1:]))


def _rows(e: Emitter, params: int, indices: int, by_number: bool) -> int:
    return e.add(Gather(), params, indices) if by_number else e.add(GatherNd(), params, indices)


def _clamp_indices(e: Emitter, indices: int, by_number: bool) -> tuple[int, int]:
    """The indices with negative ones replaced by 0, and which rows have one."""
    zero = e.like(indices, 0)
    missing = e.add(Comparison(ComparisonKind.LESS), indices, zero)
    inside = e.binary(BinaryKind.MAXIMUM, indices, zero)
    if not by_number:
        missing = e.add(Reduce(Reduction.ANY), missing, e.indices((-1,)))
    return inside, missing


def _pool(kind: Reduction, e: Emitter, node: Node) -> int:
    """The sum, mean or maximum of the indexed rows; negative indices are skipped.

    The attribute `batch` is the number of leading dimensions of the indices to keep. Without rows, the result is 0.
    """
    node.require_inputs(2)
    params, indices = node.inputs
    batch, rank = node.integer("batch") or 0, e.rank(indices)
    if not 0 <= batch < rank:
        raise RuleError(f"attribute 'batch' is {batch}, expected 0 to {rank - 1}, less than the rank of the indices")
    dtype = e.dtype(params)
    inside, missing = _clamp_indices(e, indices, by_number=False)
    rows = e.add(GatherNd(), params, inside)
    beside = e.rank(rows) - (rank - 1)
    wide = e.reshape(missing, (*e.shape(missing), *(1,) * beside))
    axes = e.indices(tuple(range(batch, rank - 1)))
    if kind is Reduction.MAX:
        least = -np.inf if dtype.is_float else dtype.limits[0]
        largest = e.add(Reduce(kind), e.add(Select(), wide, e.like(rows, least), rows), axes)
        empty = e.add(Reduce(Reduction.ALL), wide, axes)
        return e.add(Select(), empty, e.like(rows, 0), largest)
    total = e.add(Reduce(Reduction.SUM), e.add(Select(), wide, e.like(rows, 0), rows), axes)
    if kind is Reduction.SUM:
        return total
    there = e.cast(e.add(Comparison(ComparisonKind.EQUAL), wide, e.constant(np.array(False))), dtype)
    count = e.add(Reduce(Reduction.SUM), there, axes)
    return e.binary(BinaryKind.DIV, total, e.binary(BinaryKind.MAXIMUM, count, e.like(count, 1)))


def scatter_rows(e: Emitter, node: Node, indices: int, value: int, shape: tuple[int, ...]) -> tuple[int, int]:
    """Nonnegative indices into a tensor of a shape, and the row to add at each.

    A negative index is replaced by 0 with a row of zeros. With the attribute `pooled`, all rows of one batch get the
    same value.
    """
    rank = e.rank(indices)
    if rank == 0:
        indices, rank = e.reshape(indices, (1,)), 1
    depth = e.shape(indices)[-1]
    if depth > len(shape):
        raise RuleError(f"indices have {depth} dimensions for a tensor of rank {len(shape)}")
    rows = (*e.shape(indices)[:-1], *shape[depth:])
    if node.boolean("pooled"):
        batch = node.integer("batch") or 0
        lead, tail = e.shape(value)[:batch], shape[depth:]
        value = e.reshape(value, (*lead, *(1,) * (rank - 1 - len(lead)), *tail))
    if e.type(value).shape != rows:
        value = e.add(BroadcastTo(), value, e.indices(rows))
    inside, missing = _clamp_indices(e, indices, by_number=False)
    wide = e.reshape(missing, (*e.shape(missing), *(1,) * (len(rows) - e.rank(missing))))
    return inside, e.add(Select(), wide, e.like(value, 0), value)


def _scatter(e: Emitter, node: Node) -> int:
    """Scatter rows into zeros of the declared shape."""
    node.require_inputs(2)
    indices, value = node.inputs
    shape = shapes.static(node.result.shape)
    return e.add(ScatterNd(), *scatter_rows(e, node, indices, value, shape), e.indices(shape))


def _one_hot(e: Emitter, node: Node) -> int:
    """1, or the second operand, at the index along a dimension of size `depth`; 0 elsewhere."""
    node.require_inputs(1, 2)
    depth = node.integer("depth")
    if depth is None or not 0 <= depth < 1 << 31:
        raise RuleError(f"attribute 'depth' is {depth}, expected a number of classes")
    index = node.inputs[0]
    if not e.dtype(index).is_integer:
        raise RuleError(f"the index is of type {e.dtype(index).text}, expected integers")
    index = index if e.dtype(index) is DType.INT64 else e.cast(index, DType.INT32)
    size = e.constant(np.array(depth, np.int32))
    if len(node.inputs) == 1:
        one = np.array(1, node.result.dtype.numpy)
        return e.add(OneHot(), index, size, e.constant(one), e.constant(np.zeros_like(one)))
    value = node.inputs[1]
    marks = e.add(OneHot(), index, size, e.constant(np.array(True)), e.constant(np.array(False)))
    wide = e.reshape(marks, (*e.shape(marks), *(1,) * e.rank(value)))
    return e.add(Select(), wide, value, e.like(value, 0))


RULES: Mapping[str, Rule] = {
    "Gather": _gather,
    "GatherSum": partial(_pool, Reduction.SUM),
    "GatherAvg": partial(_pool, Reduction.MEAN),
    "GatherMax": partial(_pool, Reduction.MAX),
    "Scatter": _scatter,
    "OneHot": _one_hot,
}
