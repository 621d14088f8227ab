"""Operations on shapes: the same elements in another shape, and shapes as tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.errors import RuleError
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import Shape
from onert.ir.types import CallTypes, TensorType, unranked


def resolve(x: Shape, wanted: tuple[int, ...]) -> Shape:
    """The shape `wanted` with its -1 resolved. Raises RuleError if its number of elements is not that of `x`."""
    # Messages are written only where they are needed: runs resolve computed shapes.
    if not all(d >= -1 for d in wanted):
        raise RuleError(f"the new shape is {shapes.text(wanted)}, expected dimensions of at least -1")
    if not wanted.count(-1) <= 1:
        raise RuleError(f"the new shape is {shapes.text(wanted)}, expected at most one -1")
    have = shapes.num_elements(x)
    known = sv.checked_shape(tuple(d for d in wanted if d != -1), "the new shape")
    size = math.prod(known)
    if have is None:
        return tuple(None if d == -1 else d for d in wanted)
    if -1 not in wanted:
        if size != have:
            raise RuleError(f"the new shape {shapes.text(wanted)} holds {size} elements, expected {have}")
        return wanted
    if not ((size != 0 and have % size == 0) or (size == 0 and have == 0)):
        raise RuleError(f"the new shape {shapes.text(wanted)} cannot hold {have} elements")
    return tuple((have // size if size else 0) if d == -1 else d for d in wanted)


@frozen
class Reshape(OnStored):
    """The elements of `x` in the same order with another shape; a dimension of -1 is computed from the others.

    - `x`: any
    - `shape`: integers of any rank; ignored if the attribute `new_shape` is given
    """

    new_shape: tuple[int, ...] | None = None

    shares: ClassVar[bool] = True

    def infer(self, x: TensorType, shape: TensorType | None = None) -> TensorType:
        if self.new_shape is not None:
            return x.result(resolve(x.shape, self.new_shape))
        if shape is None:
            raise RuleError("Reshape has neither an operand nor an attribute for the new shape")
        wanted = sv.flattened(shape, "the new shape")
        if wanted is not None:
            return x.result(resolve(x.shape, wanted))
        rank = shapes.num_elements(shape.shape)
        return unranked(x.dtype) if rank is None else x.result(sv.unknown(rank))

    def evaluate(self, x: Array, shape: Array | None = None) -> Array:
        wanted = self.new_shape
        if wanted is None:
            wanted = () if shape is None else sv.values(shape)
        resolved = resolve(x.shape, wanted)
        return x.reshape(shapes.static(resolved))

    def sized(self, types: CallTypes) -> Callable[..., Array]:
        shape = shapes.static(types.output.shape)
        return lambda x, *_: x.reshape(shape)


@frozen
class Squeeze(OnStored):
    """`x` without the dimensions `axes`, which must be 1; without all dimensions of 1 if `axes` is empty.

    - `x`: any
    """

    axes: tuple[int, ...] = ()

    shares: ClassVar[bool] = True

    def _kept(self, x: Shape) -> list[int]:
        if not self.axes:
            return [i for i, d in enumerate(x) if d != 1]
        axes = shapes.normalize_axes(self.axes, len(x))
        for axis in axes:
            require(x[axis] in (1, None), f"dimension {axis} is {x[axis]}, expected 1 to be squeezed")
        return [i for i in range(len(x)) if i not in axes]

    def infer(self, x: TensorType) -> TensorType:
        if not self.axes and not shapes.is_static(x.shape):
            return unranked(x.dtype)
        return x.result(tuple(x.shape[i] for i in self._kept(x.shape)))

    def evaluate(self, x: Array) -> Array:
        return x.reshape([x.shape[i] for i in self._kept(x.shape)])


@frozen
class ExpandDims(OnStored):
    """`x` with a dimension of 1 inserted at `axis`.

    - `x`: any
    - `axis`: one integer, from -(rank + 1) to rank
    """

    shares: ClassVar[bool] = True

    def infer(self, x: TensorType, axis: TensorType) -> TensorType:
        found = sv.one_integer(axis, "axis")
        if found is None:
            return x.result(sv.unknown(x.rank + 1))
        at = shapes.normalize_axis(found, x.rank + 1)
        return x.result((*x.shape[:at], 1, *x.shape[at:]))

    def evaluate(self, x: Array, axis: Array) -> Array:
        return np.expand_dims(x, sv.values(axis)[0])


def require_one(x: TensorType, name: str) -> None:
    """Raises RuleError if an operand is known not to have exactly one element."""
    count = shapes.num_elements(x.shape)
    require(count in (1, None), f"{name} has {count} elements, expected 1")


@frozen
class ShapeOf(OnStored):
    """The shape of `x` as a tensor of rank 1 of element type `to`.

    - `x`: any
    """

    to: DType = DType.INT32

    def infer(self, x: TensorType) -> TensorType:
        require(self.to in (DType.INT32, DType.INT64), f"the shape is requested as {self.to.text}, expected i32 or i64")
        return TensorType(self.to, (x.rank,))

    def evaluate(self, x: Array) -> Array:
        return np.array(x.shape, self.to.numpy)


@frozen
class Rank(OnStored):
    """The rank of `x`, as an int32 scalar.

    - `x`: any
    """

    def infer(self, x: TensorType) -> TensorType:
        return TensorType(DType.INT32, ())

    def evaluate(self, x: Array) -> Array:
        return np.array(x.ndim, np.int32)
