"""Reductions over segments and ranges of rows."""

from __future__ import annotations

from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.data_movement.reshape import require_one
from onert.ir.types import CallTypes, TensorType

from .reduce import Reduce, Reduction

RANGE_KINDS = (Reduction.MEAN, Reduction.SUM, Reduction.MAX, Reduction.MIN)
"""How `ReduceRanges` combines rows."""


def _require_numbers(data: TensorType, name: str) -> None:
    """Raises RuleError for elements that cannot be added as stored; types of 32 or 64 bits are never quantised."""
    plain = data.dtype.is_float or (data.dtype.is_integer and (data.quantization is None or data.dtype.bits >= 32))
    require(plain, f"{name} is not defined on {'quantised ' * data.dtype.is_integer}elements of type {data.dtype.text}")


@frozen
class SegmentSum(OnStored):
    """The sum of the rows of each segment.

    - `data`: floats or integers of rank 1 or more
    - `segment_ids`: one integer per row, starting at 0, each equal to the previous one or greater by one

    The result has one row per segment.
    """

    def infer(self, data: TensorType, segment_ids: TensorType) -> TensorType:
        _require_numbers(data, "SegmentSum")
        require(data.rank >= 1, "data is a scalar, expected rank 1 or more")
        known = sv.integers(segment_ids, "segment_ids")
        require(segment_ids.rank == 1, f"segment_ids has rank {segment_ids.rank}, expected 1")
        require(
            shapes.compatible(data.shape[:1], segment_ids.shape),
            f"there are {shapes.text(segment_ids.shape)} segment_ids for {shapes.text(data.shape[:1])} rows",
        )
        return data.result((None if known is None else self._count(np.array(known, np.int64)), *data.shape[1:]))

    @staticmethod
    def _count(ids: Array) -> int:
        if not len(ids):
            return 0
        wide = ids.astype(np.int64)
        steps = np.diff(wide, prepend=0)
        require(int(wide[0]) == 0, f"the first segment is {wide[0]}, expected 0")
        require(bool(np.all((steps == 0) | (steps == 1))), "segment_ids do not ascend in steps of 0 or 1")
        return int(wide[-1]) + 1

    def evaluate(self, data: Array, segment_ids: Array) -> Array:
        out = np.zeros((self._count(segment_ids), *data.shape[1:]), data.dtype)
        np.add.at(out, segment_ids, data)
        return out


class SegmentReduction(Enum):
    """How the rows of a segment are combined."""

    SUM = "sum"
    PROD = "product"
    MAX = "largest"
    MIN = "smallest"

    @property
    def function(self) -> Any:
        """The NumPy function of two numbers."""
        return {"SUM": np.add, "PROD": np.multiply, "MAX": np.fmax, "MIN": np.fmin}[self.name]

    def initial(self, dtype: np.dtype[Any]) -> Any:
        """The result for an empty segment: the identity of the function."""
        if self in (SegmentReduction.SUM, SegmentReduction.PROD):
            return dtype.type(self is SegmentReduction.PROD)
        limits = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)
        return limits.min if self is SegmentReduction.MAX else limits.max


@frozen
class UnsortedSegment(OnStored):
    """Reduces the slices of `data` with the same segment number to their sum, product, maximum or minimum.

    - `data`: floats or integers
    - `segment_ids`: integers whose shape is a prefix of data's; a slice with a negative number is ignored
    - `num_segments`: one integer, greater than every segment number

    An empty segment gives 0, 1, the lowest or the highest finite number of the element type. The maximum and the
    minimum ignore NaN.
    """

    kind: SegmentReduction

    def infer(self, data: TensorType, segment_ids: TensorType, num_segments: TensorType) -> TensorType:
        _require_numbers(data, "UnsortedSegment")
        sv.require_index_type(segment_ids, "segment_ids")
        require(
            segment_ids.rank <= data.rank and shapes.compatible(data.shape[: segment_ids.rank], segment_ids.shape),
            f"segment_ids {shapes.text(segment_ids.shape)} are not a prefix of data's shape {shapes.text(data.shape)}",
        )
        require_one(num_segments, "num_segments")
        found = sv.integers(num_segments, "num_segments")
        rest = data.shape[segment_ids.rank :]
        if found is None:
            return data.result((None, *rest))
        sv.checked_shape((found[0], *(d for d in rest if d is not None)), "the shape of segments")
        return data.result((found[0], *rest))

    def evaluate(self, data: Array, segment_ids: Array, num_segments: Array) -> Array:
        count = sv.values(num_segments)[0]
        ids = segment_ids.reshape(-1)
        highest = int(ids.max(initial=-1))
        require(highest < count, f"segment {highest} is named, there are {count}")
        rest = data.shape[segment_ids.ndim :]
        rows = data.reshape(len(ids), *rest)
        out = np.full((count, *rest), self.kind.initial(data.dtype), data.dtype)
        kept = ids >= 0
        self.kind.function.at(out, ids[kept], rows[kept])
        return out


@frozen
class ReduceRanges(OnStored):
    """Reduces ranges of rows: `out[k]` combines `data[begin[k] : end[k]]`, as in a bag of embeddings.

    - `data`: float32 of rank 1 or more
    - `begin`, `end`: [count], both int32 or both int64; like the bounds of a slice, negative ones count from the end,
      and those beyond either end are cut. Ranges may overlap.

    The result is float32 [count, ...], a row for each range; an empty range has what an empty `Reduce` has: a sum of 0,
    a mean of NaN, the smallest or largest number. `kind` is MEAN, SUM, MAX or MIN.
    """

    kind: Reduction

    def infer(self, data: TensorType, begin: TensorType, end: TensorType) -> TensorType:
        require(
            self.kind in RANGE_KINDS, f"ranges are reduced to their {self.kind.value}, expected a mean, sum or extreme"
        )
        require(data.dtype is DType.FLOAT32 and data.rank >= 1, f"data is {data}, expected float32 of rank 1 or more")
        for bounds, name in ((begin, "begin"), (end, "end")):
            require(bounds.dtype in (DType.INT32, DType.INT64), f"{name} is {bounds.dtype.text}, expected i32 or i64")
            require(bounds.rank == 1, f"{name} has rank {bounds.rank}, expected 1")
        require(begin.dtype is end.dtype, f"begin is {begin.dtype.text} and end {end.dtype.text}, expected one type")
        require(
            shapes.compatible(begin.shape, end.shape),
            f"begin is {shapes.text(begin.shape)} and end {shapes.text(end.shape)}, expected one length",
        )
        count = end.shape[0] if begin.shape[0] is None else begin.shape[0]
        return data.result((count, *data.shape[1:]))

    def flops(self, types: CallTypes) -> int:
        return (types.input(1).shape[0] or 0) * (shapes.num_elements(types.input(0).shape) or 0)

    def rounds(self, types: CallTypes) -> int:
        return types.input(1).shape[0] or 0

    def evaluate(self, data: Array, begin: Array, end: Array) -> Array:
        out = np.empty((len(begin), *data.shape[1:]), data.dtype)
        first = np.zeros(1, np.int32)
        for k, (low, high) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            out[k] = Reduce(self.kind).evaluate(data[low:high], first)
        return out
