"""StableHLO's operations on shapes and single elements, whose sizes and positions are attributes.

Source: the StableHLO specification, and LiteRT's kernels stablehlo_*.cc where they exist.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.data_movement.part_update import PartUpdate, region, require_part
from onert.ir.ops.data_movement.reshape import require_one
from onert.ir.shape import Dim, Shape
from onert.ir.types import TensorType

LIMIT = 1 << 40
"""Guards against malicious attributes: no size or step of a real model comes near."""


def require_axes(axes: Sequence[int], rank: int, name: str) -> None:
    """Raises RuleError unless these are distinct dimensions of a tensor of this rank."""
    for axis in axes:
        require(0 <= axis < rank, f"{name} has {axis}, expected 0 to {rank - 1}")
    require(len(set(axes)) == len(axes), f"{name} is {list(axes)}, expected no dimension twice")


def require_numbers(values: Sequence[int], count: int, name: str, low: int = -LIMIT) -> None:
    """Raises RuleError unless there are `count` numbers from `low` to the limit."""
    require(len(values) == count, f"{name} has {len(values)} elements, expected {count}")
    for value in values:
        require(low <= value <= LIMIT, f"{name} has {value}, expected {low} to {LIMIT}")


def known_dims(shape: Shape) -> tuple[int, ...]:
    """The known dimensions."""
    return tuple(d for d in shape if d is not None)


def require_shape(shape: Shape, name: str) -> None:
    """Raises RuleError for a shape with too many elements."""
    sv.checked_shape(known_dims(shape), name)


@frozen
class HloClamp(OnStored):
    """`x` clamped to the range from `low` to `high`.

    - `low`, `x`, `high`: real numbers of one type; low and high are scalars or have x's shape
    """

    def infer(self, low: TensorType, x: TensorType, high: TensorType) -> TensorType:
        require(x.dtype.is_numeric and not x.dtype.is_complex, f"HloClamp is not defined on {x.dtype.text}")
        require(x.quantization is None or x.dtype.bits >= 32, "HloClamp is given quantised elements")
        for bound in (low, high):
            require(bound.dtype is x.dtype, f"a bound is {bound.dtype.text}, expected {x.dtype.text}")
            fits = bound.rank == 0 or shapes.compatible(bound.shape, x.shape)
            require(fits, f"a bound is {bound}, expected a scalar or {shapes.text(x.shape)}")
        return x.result(x.shape)

    def evaluate(self, low: Array, x: Array, high: Array) -> Array:
        return np.minimum(np.maximum(x, low), high)


@frozen
class HloBroadcastInDim(OnStored):
    """`x` broadcast to `shape`; dimension i of `x` becomes dimension `dimensions[i]`.

    - `x`: any; each dimension is 1 or equal to that of the result
    """

    dimensions: tuple[int, ...]
    shape: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        sv.checked_shape(self.shape, "the result's shape")
        require_numbers(self.dimensions, x.rank, "broadcast_dimensions")
        require_axes(self.dimensions, len(self.shape), "broadcast_dimensions")
        for size, axis in zip(x.shape, self.dimensions, strict=True):
            fits = size in (None, 1, self.shape[axis])
            require(fits, f"a dimension of {size} does not broadcast to {self.shape[axis]}")
        return x.result(self.shape)

    def evaluate(self, x: Array) -> Array:
        order = np.argsort(self.dimensions, kind="stable")
        wide = [1] * len(self.shape)
        for size, axis in zip(x.shape, self.dimensions, strict=True):
            wide[axis] = size
        return np.broadcast_to(x.transpose(order).reshape(wide), self.shape).copy()


@frozen
class HloSlice(OnStored):
    """Every `strides[i]`-th element from `starts[i]` (inclusive) to `limits[i]` (exclusive) along each dimension i.

    - `x`: any
    """

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        require_numbers(self.starts, x.rank, "start_indices", 0)
        require_numbers(self.limits, x.rank, "limit_indices", 0)
        require_numbers(self.strides, x.rank, "strides", 1)
        dims = []
        for size, start, limit, stride in zip(x.shape, self.starts, self.limits, self.strides, strict=True):
            inside = start <= limit and (size is None or limit <= size)
            require(inside, f"the part from {start} to {limit} is not within a dimension of {size}")
            dims.append(-(-(limit - start) // stride))
        return x.result(tuple(dims))

    def evaluate(self, x: Array) -> Array:
        parts = zip(self.starts, self.limits, self.strides, strict=True)
        return x[tuple(slice(start, limit, stride) for start, limit, stride in parts)].copy()


@frozen
class HloTranspose(OnStored):
    """`x` with its dimensions permuted: dimension i of the result is dimension `permutation[i]` of `x`.

    - `x`: any
    """

    permutation: tuple[int, ...]

    def infer(self, x: TensorType) -> TensorType:
        require_numbers(self.permutation, x.rank, "permutation")
        require_axes(self.permutation, x.rank, "permutation")
        return x.result(tuple(x.shape[axis] for axis in self.permutation))

    def evaluate(self, x: Array) -> Array:
        return np.ascontiguousarray(x.transpose(self.permutation)).reshape([x.shape[a] for a in self.permutation])


def _require_starts(starts: Sequence[TensorType], rank: int) -> None:
    require(len(starts) == rank, f"there are {len(starts)} start indices, expected {rank}")
    for start in starts:
        sv.require_index_type(start, "a start index")
        require_one(start, "a start index")


@frozen
class HloDynamicSlice(OnStored):
    """The slice of `x` with the given `sizes` that starts at the given indices, clamped so that it fits.

    - `x`: any
    - `starts`: one integer per dimension
    """

    sizes: tuple[int, ...]

    def infer(self, x: TensorType, *starts: TensorType) -> TensorType:
        _require_starts(starts, x.rank)
        require_numbers(self.sizes, x.rank, "slice_sizes", 0)
        for size, part in zip(x.shape, self.sizes, strict=True):
            require(size is None or part <= size, f"a slice of {part} is larger than the dimension of {size}")
        return x.result(self.sizes)

    def evaluate(self, x: Array, *starts: Array) -> Array:
        return x[region(x.shape, self.sizes, starts, clamps=True)].copy()


@frozen
class HloDynamicUpdateSlice(PartUpdate):
    """`x` with a part replaced by `update`, which starts at the given indices, clamped so that it fits.

    - `x`: any
    - `update`: of x's type and rank, not larger in any dimension
    - `starts`: one integer per dimension
    """

    def infer(self, x: TensorType, update: TensorType, *starts: TensorType) -> TensorType:
        _require_starts(starts, x.rank)
        require_part(x, update)
        return x.result(x.shape)


def padded_size(size: Dim, low: int, high: int, interior: int) -> Dim:
    """A dimension with edge padding (negative crops) and `interior` padding between elements. RuleError if negative."""
    if size is None:
        return None
    total = size + max(size - 1, 0) * interior + low + high
    require(total >= 0, f"a dimension of {size} is padded to {total}, expected at least 0")
    return total


def pad(x: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """`x` with edge padding (negative crops) and `interior` padding between elements, all equal to `value`."""
    spread = [max(0, (size - 1) * (between + 1) + 1) for size, between in zip(x.shape, interior, strict=True)]
    wide = np.full(spread, value.reshape(())[()], x.dtype)
    wide[tuple(slice(None, None, between + 1) for between in interior)] = x
    cut = [slice(max(0, -a), size - max(0, -b)) for size, a, b in zip(spread, low, high, strict=True)]
    inner = wide[tuple(cut)]
    shape = [size + a + b for size, a, b in zip(spread, low, high, strict=True)]
    out = np.full(shape, value.reshape(())[()], x.dtype)
    if inner.size:
        out[tuple(slice(max(0, a), max(0, a) + size) for a, size in zip(low, inner.shape, strict=True))] = inner
    return out


@frozen
class HloPad(OnStored):
    """`x` with edge padding `low` and `high` (negative crops), and `interior` padding between elements.

    - `x`: any
    - `value`: one element of x's type
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]

    def infer(self, x: TensorType, value: TensorType) -> TensorType:
        require(value.dtype is x.dtype, f"padding is {value.dtype.text}, expected {x.dtype.text}")
        require_one(value, "padding_value")
        require_numbers(self.low, x.rank, "edge_padding_low")
        require_numbers(self.high, x.rank, "edge_padding_high")
        require_numbers(self.interior, x.rank, "interior_padding", 0)
        each = zip(x.shape, self.low, self.high, self.interior, strict=True)
        shape = tuple(padded_size(size, low, high, interior) for size, low, high, interior in each)
        require_shape(shape, "the padded shape")
        spread = (padded_size(d, 0, 0, between) for d, between in zip(x.shape, self.interior, strict=True))
        require_shape(tuple(spread), "the spread shape")
        return x.result(shape)

    def evaluate(self, x: Array, value: Array) -> Array:
        return pad(x, value, self.low, self.high, self.interior)


@frozen
class HloIota(Op):
    """A tensor in which each element is its index along `dimension`.

    No operands; `shape` and the element type `to` are attributes.
    """

    dimension: int
    to: DType
    shape: tuple[int, ...]

    def infer(self) -> TensorType:
        require(self.to.is_numeric, f"HloIota is not defined on elements of type {self.to.text}")
        sv.checked_shape(self.shape, "the result's shape")
        require_axes((self.dimension,), len(self.shape), "iota_dimension")
        return TensorType(self.to, self.shape)

    def evaluate(self) -> Array:
        along = [-1 if axis == self.dimension else 1 for axis in range(len(self.shape))]
        numbers = np.arange(self.shape[self.dimension]).astype(self.to.numpy).reshape(along)
        return np.broadcast_to(numbers, self.shape).copy()
