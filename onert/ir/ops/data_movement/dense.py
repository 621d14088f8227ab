"""Dense tensors from sparse ones, bucket numbers, dilation, and sparse embeddings."""

from __future__ import annotations

from enum import Enum

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import Dim
from onert.ir.types import TensorType, unranked

from .gather import require_indices
from .reshape import require_one


@frozen
class SparseToDense(OnStored):
    """A dense tensor of `default` with values set at some indices.

    - `indices`: integers; a scalar, [n] (indices into one dimension) or [n, rank]
    - `shape`: integers of rank 1, the result's shape
    - `values`: one per index, or a scalar for all indices
    - `default`: one element of the values' type

    If an index occurs more than once, its last value is used.
    """

    def infer(self, indices: TensorType, shape: TensorType, values: TensorType, default: TensorType) -> TensorType:
        sv.require_index_type(indices, "indices")
        require(indices.rank <= 2, f"indices has rank {indices.rank}, expected at most 2")
        require(values.rank <= 1, f"values has rank {values.rank}, expected at most 1")
        require(values.dtype is default.dtype, f"default is {default.dtype.text}, expected {values.dtype.text}")
        require_one(default, "default_value")
        count = 1 if indices.rank == 0 else indices.shape[0]
        if values.rank == 1:
            require(
                shapes.compatible((count,), values.shape),
                f"there are {shapes.text(values.shape)} values for {count} indices",
            )
        depth = indices.shape[1] if indices.rank == 2 else 1
        rank = sv.length(shape)
        require(depth is None or rank in (depth, None), f"indices name {depth} dimensions of {rank}")
        wanted = sv.integers(shape, "output_shape")
        if wanted is None:
            return unranked(values.dtype) if rank is None else values.result(sv.unknown(rank))
        return values.result(sv.checked_shape(wanted, "output_shape"))

    def evaluate(self, indices: Array, shape: Array, values: Array, default: Array) -> Array:
        out = np.full(sv.checked_shape(sv.values(shape), "output_shape"), default.reshape(())[()], values.dtype)
        rows = indices if indices.ndim == 2 else indices.reshape(-1, 1)
        for axis in range(out.ndim):
            require_indices(rows[:, axis], out.shape[axis], f"dimension {axis}")
        out[tuple(rows.T)] = values
        return out


@frozen
class Bucketize(OnStored):
    """The bucket of each element: the number of boundaries less than or equal to it, as int32.

    - `x`: floats or integers, any shape

    `boundaries` must be in ascending order.
    """

    boundaries: tuple[float, ...] = ()

    def infer(self, x: TensorType) -> TensorType:
        require(
            x.dtype.is_float or (x.dtype.is_integer and (x.quantization is None or x.dtype.bits >= 32)),
            f"Bucketize is not defined on elements of type {x.dtype.text}",
        )
        ascending = all(a <= b for a, b in zip(self.boundaries, self.boundaries[1:], strict=False))
        require(ascending, f"boundaries are {list(self.boundaries)}, expected ascending order")
        return TensorType(DType.INT32, x.shape)

    def evaluate(self, x: Array) -> Array:
        edges = np.array(self.boundaries, np.float64)
        return np.searchsorted(edges, x.astype(np.float64), side="right").astype(np.int32).reshape(x.shape)


@frozen
class Dilate(OnStored):
    """Dilation: spreads the elements of `x` apart and fills the gaps with `padding`.

    - `x`: any
    - `dilations`: integers, for each dimension the new distance between adjacent elements, at least 1
    - `padding`: one element of x's type
    """

    def infer(self, x: TensorType, dilations: TensorType, padding: TensorType) -> TensorType:
        require(x.dtype is padding.dtype, f"padding is {padding.dtype.text}, expected {x.dtype.text}")
        require_one(padding, "padding_value")
        known = sv.integers(dilations, "dilations")
        count = sv.length(dilations)
        require(count in (x.rank, None), f"dilations has {count} elements, expected {x.rank}")
        if known is None:
            return x.result(sv.unknown(x.rank))
        for step in known:
            require(step >= 1, f"dilation is {step}, expected at least 1")
        shape = tuple(_spread(d, step) for d, step in zip(x.shape, known, strict=True))
        sv.checked_shape(tuple(d for d in shape if d is not None), "the dilated shape")
        return x.result(shape)

    def evaluate(self, x: Array, dilations: Array, padding: Array) -> Array:
        steps = sv.values(dilations)
        shape = [_spread(d, step) or 0 for d, step in zip(x.shape, steps, strict=True)]
        out = np.full(shape, padding.reshape(())[()], x.dtype)
        out[tuple(slice(None, None, step) for step in steps)] = x
        return out


def _spread(size: Dim, step: int) -> Dim:
    """The size of a dimension once its elements are `step` apart."""
    return None if size is None else max(0, (size - 1) * step + 1)


class Combiner(Enum):
    """How the weighted rows of an example are combined."""

    SUM = "their sum"
    MEAN = "their sum over the sum of the weights"
    SQRTN = "their sum over the root of the sum of the squared weights"


@frozen
class EmbeddingLookupSparse(OnStored):
    """Looks up rows of a table by number and combines them, weighted, into one row per example.

    - `ids`: integers [n], rows of the table
    - `indices`: integers [n, k]: for each id its example (the first k - 1 numbers) and its position in the example
    - `dense_shape`: integers [k], the shape that `indices` index into
    - `weights`: float32 [n]
    - `table`: float32 of rank 2 or more, [rows, ...]

    The result's shape is the first k - 1 dimensions of `dense_shape`, then those of a row; an example without ids is 0.
    """

    combiner: Combiner = Combiner.SUM

    def infer(
        self,
        ids: TensorType,
        indices: TensorType,
        dense_shape: TensorType,
        weights: TensorType,
        table: TensorType,
    ) -> TensorType:
        sv.require_index_type(ids, "ids")
        sv.require_index_type(indices, "indices")
        for operand, name, wide in ((ids, "ids", 1), (indices, "indices", 2), (weights, "weights", 1)):
            require(operand.rank == wide, f"{name} has rank {operand.rank}, expected {wide}")
            require(
                shapes.compatible(operand.shape[:1], ids.shape),
                f"{name} has {shapes.text(operand.shape[:1])} rows, expected {shapes.text(ids.shape)}",
            )
        require(table.rank >= 2, f"the table has rank {table.rank}, expected at least 2")
        for operand, name in ((weights, "weights"), (table, "the table")):
            require(operand.dtype is DType.FLOAT32, f"{name} holds {operand.dtype.text}, expected f32")
        depth, wanted = indices.shape[1], sv.integers(dense_shape, "dense_shape")
        rank = sv.length(dense_shape)
        require(depth != 0 and rank != 0, "indices have no dimension to index into, expected at least 1")
        require(depth is None or rank in (depth, None), f"indices name {depth} dimensions of {rank}")
        if wanted is None:
            known = rank if depth is None else depth
            return unranked(table.dtype) if known is None else table.result((*sv.unknown(known - 1), *table.shape[1:]))
        shape = (*sv.checked_shape(wanted, "dense_shape")[:-1], *table.shape[1:])
        sv.checked_shape(tuple(d for d in shape if d is not None), "the examples' shape")
        return table.result(shape)

    def evaluate(self, ids: Array, indices: Array, dense_shape: Array, weights: Array, table: Array) -> Array:
        examples = sv.values(dense_shape)[:-1]
        require_indices(ids, table.shape[0], "the table's rows")
        for axis, dim in enumerate(examples):
            require_indices(indices[:, axis], dim, f"dimension {axis}")
        count = int(np.prod(examples, dtype=np.int64))
        row = np.prod(table.shape[1:], dtype=np.int64)
        places = [np.int64(0) * ids]
        for axis, dim in enumerate(examples):
            places.append(places[-1] * dim + indices[:, axis])
        out = np.zeros((count, row), np.float32)
        np.add.at(out, places[-1], table.reshape(len(table), -1)[ids] * weights[:, None])
        if self.combiner is not Combiner.SUM:
            total = np.zeros(count, np.float32)
            np.add.at(total, places[-1], weights if self.combiner is Combiner.MEAN else weights * weights)
            divisor = total if self.combiner is Combiner.MEAN else np.sqrt(total)
            used = np.zeros(count, np.bool_)
            used[places[-1]] = True
            out[used] *= (1 / divisor[used])[:, None]
        return out.reshape(*examples, *table.shape[1:])
