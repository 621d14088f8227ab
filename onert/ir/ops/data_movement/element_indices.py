"""Elements picked, and put into a tensor, by an index for each of them."""

from __future__ import annotations

import math
from enum import Enum
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.types import TensorType

from .gather import require_indices


class Combination(Enum):
    """What an element and an update for its place become; of several updates one after the other."""

    REPLACE = "replace"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


_FUNCTIONS = {
    Combination.ADD: np.add,
    Combination.MUL: np.multiply,
    Combination.MAX: np.maximum,
    Combination.MIN: np.minimum,
}


def _require_along(x: TensorType, indices: TensorType, axis: int) -> int:
    """The axis, counted from the front; RuleError where the indices do not fit x beside it."""
    sv.require_index_type(indices, "indices")
    require(x.rank >= 1, "x is a scalar, expected rank 1 or more")
    require(indices.rank == x.rank, f"indices have rank {indices.rank}, expected that of x, {x.rank}")
    at = shapes.normalize_axis(axis, x.rank)
    for i, (have, wanted) in enumerate(zip(x.shape, indices.shape, strict=True)):
        fits = i == at or have is None or wanted is None or wanted <= have
        require(fits, f"indices have shape {shapes.text(indices.shape)}, more than {shapes.text(x.shape)} beside axis")
    if indices.value is not None and x.shape[at] is not None:
        require_indices(indices.value, x.shape[at] or 0, f"dimension {at}")
    return at


def _places(indices: Array, axis: int) -> tuple[Array, ...]:
    """For each index the place that it names: its own, but along the axis."""
    found: list[Array] = list(np.indices(indices.shape, sparse=True))
    found[axis] = indices
    return tuple(found)


@frozen
class GatherElements(Op):
    """For each index an element of `x`: that of the same place, but along `axis` the one that the index names.

    - `x`: any, of rank 1 or more
    - `indices`: integers from 0 on, of x's rank, and not larger than x beside the axis; the result has their shape

    Source: ONNX GatherElements.
    """

    axis: int = 0

    stored: ClassVar[bool] = True

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        _require_along(x, indices, self.axis)
        return x.result(indices.shape)

    def evaluate(self, x: Array, indices: Array) -> Array:
        axis = shapes.normalize_axis(self.axis, x.ndim)
        require_indices(indices, x.shape[axis], f"dimension {axis}")
        return np.asarray(x[_places(indices, axis)])


@frozen
class ScatterElements(Op):
    """`x` where each update is put at its own place, but along `axis` at the one that its index names.

    - `x`: any, of rank 1 or more
    - `indices`: integers from 0 on, of x's rank, and not larger than x beside the axis
    - `updates`: of x's type and the indices' shape

    `combination` says what becomes of the element there and the update. Of updates at one place the last counts, or all
    in their order.

    Source: ONNX ScatterElements.
    """

    axis: int = 0
    combination: Combination = Combination.REPLACE

    stored: ClassVar[bool] = True

    def infer(self, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        _require_along(x, indices, self.axis)
        _require_updates(self.combination, x, updates)
        require(
            shapes.compatible(updates.shape, indices.shape),
            f"updates have shape {shapes.text(updates.shape)}, expected {shapes.text(indices.shape)}",
        )
        return x.result(x.shape)

    def evaluate(self, x: Array, indices: Array, updates: Array) -> Array:
        axis = shapes.normalize_axis(self.axis, x.ndim)
        require_indices(indices, x.shape[axis], f"dimension {axis}")
        return _combined(self.combination, x, _places(indices, axis), updates)


@frozen
class ScatterSlices(Op):
    """`x` where slices are put in at the places that rows of indices name.

    - `x`: any
    - `indices`: integers from 0 on; each row along the last dimension is an index into x's first dimensions
    - `updates`: of x's type, a slice of x for each row

    `combination` says what becomes of the elements there and the updates, one after the other.

    Source: ONNX ScatterND.
    """

    combination: Combination = Combination.REPLACE

    stored: ClassVar[bool] = True
    overwrites: ClassVar[bool] = True

    def infer(self, x: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        sv.require_index_type(indices, "indices")
        require(indices.rank >= 1, "indices is a scalar, expected rank 1 or more")
        _require_updates(self.combination, x, updates)
        depth = indices.shape[-1]
        if depth is not None:
            require(depth <= x.rank, f"indices name {depth} dimensions of a tensor of rank {x.rank}")
            expected = (*indices.shape[:-1], *x.shape[depth:])
            require(
                shapes.compatible(updates.shape, expected),
                f"updates have shape {shapes.text(updates.shape)}, expected {shapes.text(expected)}",
            )
        return x.result(x.shape)

    def evaluate(self, x: Array, indices: Array, updates: Array) -> Array:
        depth = indices.shape[-1]
        for axis in range(depth):
            require_indices(indices[..., axis], x.shape[axis], f"dimension {axis}")
        rows = indices.reshape(math.prod(indices.shape[:-1]), depth)
        slices = updates.reshape(len(rows), *x.shape[depth:])
        if not depth:  # each row is all of x
            out = x.copy()
            for each in slices:
                out = each.copy() if self.combination is Combination.REPLACE else self._two(out, each)
            return out
        return _combined(self.combination, x, tuple(rows[:, axis] for axis in range(depth)), slices)

    def _two(self, x: Array, update: Array) -> Array:
        return np.asarray(_FUNCTIONS[self.combination](x, update))


def _require_updates(combination: Combination, x: TensorType, updates: TensorType) -> None:
    require(x.dtype is updates.dtype, f"updates hold {updates.dtype.text}, expected {x.dtype.text}")
    number = x.dtype.is_numeric or x.dtype is DType.BOOL
    require(
        number or combination is Combination.REPLACE,
        f"{combination.value} is not defined on elements of type {x.dtype.text}",
    )


def _combined(combination: Combination, x: Array, places: tuple[Array, ...], updates: Array) -> Array:
    out = x.copy()
    if combination is Combination.REPLACE:
        flat = np.ravel_multi_index(places, x.shape[: len(places)]).reshape(-1)
        if not flat.size:
            return out
        _, first = np.unique(flat[::-1], return_index=True)
        kept = len(flat) - 1 - first  # of equal places the last
        target = out.reshape(math.prod(x.shape[: len(places)]), -1)
        target[flat[kept]] = updates.reshape(len(flat), -1)[kept]
        return target.reshape(x.shape)
    _FUNCTIONS[combination].at(out, places, updates)
    return out
