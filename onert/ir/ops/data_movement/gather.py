"""Gathering and scattering of slices by index."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import OnStored, Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.quant import dequantize
from onert.ir.types import CallTypes, TensorType, unranked

from .part_update import PartUpdate, require_part

_FEW = 16


def require_indices(indices: Array, size: int, what: str) -> None:
    """Raises RuleError with the first index that is outside of [0, size)."""
    if indices.size:
        few = indices.reshape(-1).tolist() if indices.size <= _FEW else None  # in a third of the time
        low, high = (min(few), max(few)) if few else (indices.min(), indices.max())
        if low < 0 or high >= size:  # otherwise formatting the sentence would fix a symbolic size to its value
            raise RuleError(f"index {low if low < 0 else high} is outside of {what} of {size}")


@frozen
class Gather(OnStored):
    """The slices of `x` along `axis` selected by `indices`.

    - `x`: any, of rank 1 or more
    - `indices`: integers from 0; their first `batch_dims` dimensions are those of x

    The result has the shape of `x` with the axis replaced by the dimensions of `indices` after the batch dimensions.
    """

    axis: int = 0
    batch_dims: int = 0

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        sv.require_index_type(indices, "indices")
        axis, batch = self._places(x.rank, indices.rank)
        require(
            shapes.compatible(x.shape[:batch], indices.shape[:batch]),
            f"the first {batch} dimensions of {shapes.text(x.shape)} and {shapes.text(indices.shape)} differ",
        )
        if indices.value is not None and x.shape[axis] is not None:
            require_indices(indices.value, x.shape[axis] or 0, f"dimension {axis}")
        return x.result((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]))

    def _places(self, rank: int, index_rank: int) -> tuple[int, int]:
        require(rank > 0, "x is a scalar, expected rank 1 or more")
        axis = shapes.normalize_axis(self.axis, rank)
        batch = self.batch_dims + index_rank if self.batch_dims < 0 else self.batch_dims
        require(
            0 <= batch <= min(axis, index_rank),
            f"batch_dims is {self.batch_dims}, expected at most axis {axis} and rank {index_rank} of the indices",
        )
        return axis, batch

    def rounds(self, types: CallTypes) -> int:
        x, indices = types.input(0), types.input(1)
        return shapes.num_elements(indices.shape[: self._places(x.rank, indices.rank)[1]]) or 0

    def evaluate(self, x: Array, indices: Array) -> Array:
        axis, batch = self._places(x.ndim, indices.ndim)
        require_indices(indices, x.shape[axis], f"dimension {axis}")
        if batch == 0:
            return np.take(x, indices, axis)
        outer = indices.shape[:batch]
        count = math.prod(outer)
        flat_x = x.reshape(count, *x.shape[batch:])
        flat_i = indices.reshape(count, *indices.shape[batch:])
        rows = [np.take(a, i, axis - batch) for a, i in zip(flat_x, flat_i, strict=True)]
        shape = (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :])
        return np.stack(rows).reshape(shape) if rows else np.zeros((*outer, *shape[batch:]), x.dtype)

    def prepare(self, x: Array | None, indices: Array | None) -> Callable[[Array], Array] | None:
        if self.batch_dims or (x is None) is (indices is None):
            return None
        if x is not None:
            axis, _ = self._places(x.ndim, 0)
            return partial(_taken, x, axis)
        assert indices is not None
        places, ends = indices, indices[:0] if not indices.size else np.array([indices.min(), indices.max()])
        return lambda x: _taken(x, self._places(x.ndim, 0)[0], places, ends)


def _taken(x: Array, axis: int, indices: Array, ends: Array | None = None) -> Array:
    """The slices of `x` at these indices, whose least and greatest are `ends`."""
    require_indices(indices if ends is None else ends, x.shape[axis], f"dimension {axis}")
    return x.take(indices, axis)


@frozen
class GatherNd(OnStored):
    """The slices of `x` selected by rows of indices.

    - `x`: any
    - `indices`: integers from 0; each row along the last dimension is an index into x's first dimensions
    """

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        sv.require_index_type(indices, "indices")
        require(indices.rank >= 1, "indices is a scalar, expected rank 1 or more")
        depth = indices.shape[-1]
        if depth is None:
            return unranked(x.dtype)
        require(depth <= x.rank, f"indices name {depth} dimensions of a tensor of rank {x.rank}")
        return x.result((*indices.shape[:-1], *x.shape[depth:]))

    def evaluate(self, x: Array, indices: Array) -> Array:
        depth = indices.shape[-1]
        for axis in range(depth):
            require_indices(indices[..., axis], x.shape[axis], f"dimension {axis}")
        if depth == 0:
            return np.broadcast_to(x, (*indices.shape[:-1], *x.shape)).copy()
        return x[tuple(indices[..., axis] for axis in range(depth))].copy()


@frozen
class EmbeddingLookup(Op):
    """Rows of a table by number.

    - `ids`: integers of rank 1
    - `table`: rank 2 or more; if it is quantised and `to` is FLOAT32, the selected rows are dequantised
    """

    to: DType = DType.FLOAT32

    def infer(self, ids: TensorType, table: TensorType) -> TensorType:
        sv.require_index_type(ids, "ids")
        require(ids.rank == 1, f"ids has rank {ids.rank}, expected 1")
        require(table.rank >= 2, f"the table has rank {table.rank}, expected at least 2")
        require(table.shape[0] != 0 or ids.shape[0] == 0, "the table has no rows")
        require(
            self.to is table.dtype or (self.to is DType.FLOAT32 and table.quantization is not None),
            f"rows of {table.dtype.text} are requested as {self.to.text}",
        )
        if ids.value is not None and table.shape[0] is not None:
            require_indices(ids.value, table.shape[0], "the table's rows")
        return TensorType(self.to, (ids.shape[0], *table.shape[1:]))

    def evaluate(self, ids: Array, table: Array) -> Array:
        require_indices(ids, table.shape[0], "the table's rows")
        return np.take(table, ids, 0)

    def evaluate_quantized(self, types: CallTypes, ids: Array, table: Array) -> Array:
        source = types.input(1)
        if self.to is source.dtype or source.quantization is None:
            return self.evaluate(ids, table)
        require_indices(ids, table.shape[0], "the table's rows")
        return np.take(dequantize(table, source.quantization), ids, 0)


@frozen
class HashtableLookup(OnStored):
    """Rows of a table by key.

    - `lookups`: int32 [k]
    - `keys`: int32 [n], ascending
    - `values`: [n, ...], any

    Results: the rows, with zeros for missing keys, and a uint8 [k]: 1 for a key that was found, else 0.
    """

    def infer(self, lookups: TensorType, keys: TensorType, values: TensorType) -> tuple[TensorType, TensorType]:
        for operand, name in ((lookups, "lookups"), (keys, "keys")):
            require(operand.dtype is DType.INT32, f"{name} holds {operand.dtype.text}, expected i32")
            require(operand.rank == 1, f"{name} has rank {operand.rank}, expected 1")
        require(values.rank >= 1, "values is a scalar, expected a row for each key")
        require(
            shapes.compatible(keys.shape, values.shape[:1]),
            f"there are {shapes.text(keys.shape)} keys for {shapes.text(values.shape[:1])} rows",
        )
        return values.result((*lookups.shape, *values.shape[1:])), TensorType(DType.UINT8, lookups.shape)

    def evaluate(self, lookups: Array, keys: Array, values: Array) -> tuple[Array, Array]:
        if not len(keys):
            return np.zeros((len(lookups), *values.shape[1:]), values.dtype), np.zeros(len(lookups), np.uint8)
        at = np.minimum(np.searchsorted(keys, lookups), len(keys) - 1)
        hits = keys[at] == lookups
        rows = values[at]
        rows[~hits] = 0 if values.dtype != object else b""
        return rows, hits.astype(np.uint8)


@frozen
class ScatterNd(OnStored):
    """Zeros of a given shape, with updates added at the positions given by rows of indices.

    - `indices`: integers from 0; each row along the last dimension is an index into the result's first dimensions
    - `updates`: numbers or booleans (combined by or), one slice of the result per row
    - `shape`: integers of rank 1, the result's shape
    """

    def infer(self, indices: TensorType, updates: TensorType, shape: TensorType) -> TensorType:
        sv.require_index_type(indices, "indices")
        require(indices.rank >= 1, "indices is a scalar, expected rank 1 or more")
        wanted = sv.integers(shape, "shape")
        if wanted is None:
            return sv.of_shape(updates.dtype, shape, "shape")
        sv.checked_shape(wanted, "shape")
        depth = indices.shape[-1]
        if depth is not None:
            require(depth <= len(wanted), f"indices name {depth} dimensions of a tensor of rank {len(wanted)}")
            expected = (*indices.shape[:-1], *wanted[depth:])
            require(
                shapes.compatible(updates.shape, expected),
                f"updates has shape {shapes.text(updates.shape)}, expected {shapes.text(expected)}",
            )
        if indices.value is not None:
            _require_rows(indices.value, wanted)
        return updates.result(wanted)

    def evaluate(self, indices: Array, updates: Array, shape: Array) -> Array:
        wanted = sv.values(shape)
        _require_rows(indices, wanted)
        out = np.zeros(wanted, updates.dtype)
        rows = tuple(indices[..., axis] for axis in range(indices.shape[-1]))
        add = np.logical_or if updates.dtype == np.bool_ else np.add
        if rows:
            add.at(out, rows, updates)
        else:
            add.at(out[None], np.zeros(indices.shape[:-1], np.int64), updates)
        return out


def _require_rows(indices: Array, shape: tuple[int, ...]) -> None:
    for axis in range(indices.shape[-1]):
        require_indices(indices[..., axis], shape[axis], f"dimension {axis}")


_MOST_KEPT = 4096
"""The longest row of `OneHot` whose indices are kept for later runs."""


@frozen
class OneHot(OnStored):
    """One-hot rows: `on` at an index and `off` elsewhere.

    - `indices`: integers; one outside of [0, depth) gives a row of `off`
    - `depth`: one integer, the size of the new dimension, which is inserted at `axis`
    - `on`, `off`: one element each, of one type
    """

    axis: int = -1

    def infer(self, indices: TensorType, depth: TensorType, on: TensorType, off: TensorType) -> TensorType:
        sv.require_index_type(indices, "indices")
        require(on.dtype is off.dtype, f"on is {on.dtype.text} and off {off.dtype.text}, expected one type")
        for operand, name in ((on, "on_value"), (off, "off_value")):
            count = shapes.num_elements(operand.shape)
            require(count in (1, None), f"{name} has {count} elements, expected 1")
        at = shapes.normalize_axis(self.axis, indices.rank + 1)
        size = sv.one_integer(depth, "depth")
        require(size is None or size >= 0, f"depth is {size}, expected at least 0")
        shape = (*indices.shape[:at], size, *indices.shape[at:])
        sv.checked_shape(tuple(d for d in shape if d is not None), "the one-hot shape")
        return on.result(shape)

    def evaluate(self, indices: Array, depth: Array, on: Array, off: Array) -> Array:
        at = shapes.normalize_axis(self.axis, indices.ndim + 1)
        return self._rows(at, self._each(at, indices.ndim, int(depth.reshape(())[()])), indices, on, off)

    def sized(self, types: CallTypes) -> Callable[..., Array] | None:
        rank = types.output.rank
        at = shapes.normalize_axis(self.axis, rank)
        size = shapes.static(types.output.shape)[at]
        if size > _MOST_KEPT:
            return None
        each = self._each(at, rank - 1, size)
        return lambda indices, _, on, off: self._rows(at, each, indices, on, off)

    @staticmethod
    def _each(at: int, rank: int, size: int) -> Array:
        """The indices of the elements of one row, along the new axis."""
        return np.arange(size).reshape(-1, *(1,) * (rank - at))

    @staticmethod
    def _rows(at: int, each: Array, indices: Array, on: Array, off: Array) -> Array:
        hit = indices.reshape((*indices.shape[:at], 1, *indices.shape[at:])) == each
        return np.where(hit, on.reshape(()), off.reshape(())).astype(on.dtype, copy=False)


@frozen
class DynamicUpdateSlice(PartUpdate):
    """`x` with a part replaced by `update`; the start is clamped so that the part fits.

    - `x`: any
    - `update`: of x's type and rank, not larger in any dimension
    - `start`: integers, one for each dimension of x
    """

    def infer(self, x: TensorType, update: TensorType, start: TensorType) -> TensorType:
        sv.require_index_type(start, "start_indices")
        sv.integers(start, "start_indices")
        require_part(x, update)
        require(sv.length(start) in (x.rank, None), f"start has {sv.length(start)} elements, expected {x.rank}")
        return x.result(x.shape)


@frozen
class PutRow(PartUpdate):
    """`x` with one or more consecutive entries of its first axis replaced: sets items of a list of tensors.

    - `x`: any, of at least one dimension
    - `row`: of x's type, the new entries: the shape of `x` with their number as the first dimension
    - `index`: one int32 or int64, the first entry to replace. Raises RuleError if these entries do not exist.
    """

    clamps: ClassVar[bool] = False

    def infer(self, x: TensorType, row: TensorType, index: TensorType) -> TensorType:
        require(x.rank >= 1, "x is a scalar, expected at least one dimension")
        require(index.dtype in (DType.INT32, DType.INT64), f"index holds {index.dtype.text}, expected i32 or i64")
        require(shapes.num_elements(index.shape) in (1, None), f"index is {index}, expected one element")
        require(x.dtype is row.dtype, f"row is {row.dtype.text}, expected {x.dtype.text}")
        count, most = row.shape[0] if row.rank else None, x.shape[0]
        wanted = (count, *x.shape[1:])
        require(
            row.rank == x.rank and shapes.compatible(row.shape, wanted),
            f"row has shape {shapes.text(row.shape)}, expected {shapes.text(wanted)}",
        )
        require(count is None or most is None or count <= most, f"{count} entries do not fit into {most}")
        return x.result(x.shape)
