"""Gathering and scattering of elements, with an index for each of them."""

from __future__ import annotations

import math
from enum import Enum
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.types import TensorType

from .gather import require_indices
from .part_update import Record, Update


class Combination(Enum):
    """How an element and an update are combined: by NumPy's function, if any. Several updates are applied one after the
    other."""

    REPLACE = None
    ADD = np.add
    MUL = np.multiply
    MAX = np.maximum
    MIN = np.minimum


def _require_along(x: TensorType, indices: TensorType, axis: int) -> int:
    """The axis counted from the front. Raises RuleError if the indices do not fit x along another axis."""
    sv.require_index_type(indices, "indices")
    require(x.rank >= 1, "x is a scalar, expected rank 1 or more")
    require(indices.rank == x.rank, f"indices have rank {indices.rank}, expected that of x, {x.rank}")
    at = shapes.normalize_axis(axis, x.rank)
    mine, theirs = shapes.text(x.shape), shapes.text(indices.shape)
    for i, (have, wanted) in enumerate(zip(x.shape, indices.shape, strict=True)):
        fits = i == at or have is None or wanted is None or wanted <= have
        require(fits, f"indices have shape {theirs}, x {mine}: axis {i} is larger, expected so along {at} only")
    if indices.value is not None and x.shape[at] is not None:
        require_indices(indices.value, x.shape[at] or 0, f"dimension {at}")
    return at


def _places(indices: Array, axis: int) -> tuple[Array, ...]:
    """The position in x for each index: the index's own position, except along the axis."""
    found: list[Array] = list(np.indices(indices.shape, sparse=True))
    found[axis] = indices
    return tuple(found)


@frozen
class GatherElements(OnStored):
    """For the index at each position: the element of `x` there, but with the index as coordinate along `axis`.

    - `x`: any, of rank 1 or more
    - `indices`: non-negative integers of x's rank, not larger than x except along the axis; the result has their shape

    Source: ONNX GatherElements.
    """

    axis: int = 0

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        _require_along(x, indices, self.axis)
        return x.result(indices.shape)

    def evaluate(self, x: Array, indices: Array) -> Array:
        axis = shapes.normalize_axis(self.axis, x.ndim)
        require_indices(indices, x.shape[axis], f"dimension {axis}")
        return np.asarray(x[_places(indices, axis)])


@frozen
class ScatterElements(OnStored):
    """`x` with each update written to its own position, but with its index as coordinate along `axis`.

    - `x`: any, of rank 1 or more
    - `indices`: non-negative integers of x's rank, not larger than x except along the axis
    - `updates`: of x's type and the shape of `indices`

    `combination` is how an element and an update are combined. With REPLACE the last update of an element is used;
    otherwise all are applied in order.

    Source: ONNX ScatterElements.
    """

    axis: int = 0
    combination: Combination = Combination.REPLACE

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
        out = x.copy()
        _combine(self.combination, out, _places(indices, axis), updates)
        return out


@frozen
class ScatterSlices(Update):
    """`x` with slices updated at the positions given by rows of indices.

    - `x`: any
    - `indices`: non-negative integers; each row along the last dimension is an index into x's first dimensions
    - `updates`: of x's type, one slice of x per row

    `combination` is how the elements and the updates are combined, one update after the other. With `skips` a slice is
    ignored if one of its indices is negative.

    Source: ONNX ScatterND.
    """

    combination: Combination = Combination.REPLACE
    skips: bool = False

    update_index: ClassVar[int] = 2

    @property
    def undo(self) -> Op:
        return ScatterSlices(skips=self.skips)

    def recording(self) -> Op:
        return OverwrittenSlices(self.skips)

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

    def put(self, x: Array, *operands: Array) -> None:
        indices, updates = operands
        depth = indices.shape[-1]
        rows = indices.reshape(math.prod(indices.shape[:-1]), depth)
        slices = updates.reshape(len(rows), *x.shape[depth:])
        if self.skips:
            kept = (rows >= 0).all(-1)
            rows, slices = rows[kept], slices[kept]
        for axis in range(depth):
            require_indices(rows[:, axis], x.shape[axis], f"dimension {axis}")
        if depth:
            _combine(self.combination, x, tuple(rows[:, axis] for axis in range(depth)), slices)
            return
        for each in slices:  # a row of no indices addresses all of x
            x[...] = each if self.combination.value is None else self.combination.value(x, each)

    def evaluate(self, x: Array, indices: Array, updates: Array) -> Array:
        out = x.copy()
        self.put(out, indices, updates)
        return out


@frozen
class OverwrittenSlices(Record):
    """Records what is needed to undo `ScatterSlices`; the compiler puts it before one that updates in place.

    - `x`, `updates`, `indices`: the scatter's operands; only the shape of `updates` is used

    Results: the slices of `x` that are about to be replaced, the indices, and one boolean, which is true. With `skips`
    slices that are ignored are recorded as zeros.
    """

    skips: bool = False

    def infer(self, x: TensorType, updates: TensorType, indices: TensorType) -> tuple[TensorType, ...]:
        ScatterSlices().infer(x, indices, updates)
        require(indices.shape[-1] != 0, "indices address all of x, expected slices")
        return x.result(updates.shape), indices.result(indices.shape), TensorType(DType.BOOL, ())

    def evaluate(self, x: Array, updates: Array, indices: Array) -> tuple[Array, ...]:
        kept = (indices >= 0).all(-1) if self.skips else np.ones(indices.shape[:-1], np.bool_)
        rows = indices[kept]
        for axis in range(indices.shape[-1]):
            require_indices(rows[:, axis], x.shape[axis], f"dimension {axis}")
        found = np.zeros(updates.shape, updates.dtype)
        found[kept] = x[tuple(np.moveaxis(rows, -1, 0))]
        return found, indices.copy(), np.array(True)

    def put_back(self, x: Array, parts: Array, *places: Array) -> None:
        (indices,) = places
        depth = indices.shape[-1]
        inside = ((indices >= 0) & (indices < x.shape[:depth])).all(-1)
        x[tuple(np.moveaxis(indices[inside], -1, 0))] = parts[inside]


def _require_updates(combination: Combination, x: TensorType, updates: TensorType) -> None:
    require(x.dtype is updates.dtype, f"updates hold {updates.dtype.text}, expected {x.dtype.text}")
    number = x.dtype.is_numeric or x.dtype is DType.BOOL
    require(
        number or combination is Combination.REPLACE,
        f"{combination.name.lower()} is not defined on elements of type {x.dtype.text}",
    )


def _combine(combination: Combination, x: Array, places: tuple[Array, ...], updates: Array) -> None:
    """Combine updates with the elements at their positions, in place."""
    if combination.value is not None:
        combination.value.at(x, places, updates)
        return
    sizes = x.shape[: len(places)]
    flat = np.ravel_multi_index(places, sizes).reshape(-1)
    if flat.size:
        _, first = np.unique(flat[::-1], return_index=True)
        kept = len(flat) - 1 - first  # the last of equal positions
        x[np.unravel_index(flat[kept], sizes)] = updates.reshape(len(flat), *x.shape[len(places) :])[kept]
