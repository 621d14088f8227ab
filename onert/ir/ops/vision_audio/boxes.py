"""Non-maximum suppression per class, and maxima over regions of images."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import evolve, frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.types import CallTypes, TensorType


@frozen
class BoxesPerClass(Op):
    """Non-maximum suppression for each image and class.

    - `boxes`: float32 [batch, n, 4]: two opposite corners (y, x, y, x), or with `centred` x, y, width and height
    - `scores`: float32 [batch, classes, n]
    - `most`: the maximum number of boxes per class, one integer
    - `overlap`: a box is suppressed if its intersection over union with a better one exceeds this; one float
    - `least`: a box is dropped unless its score exceeds this; one float

    Result: int64 [found, 3]: image, class and box, the best of a class first. Source: ONNX NonMaxSuppression.
    """

    finds: ClassVar[bool] = True

    centred: bool = False

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        most: TensorType,
        overlap: TensorType | None = None,
        least: TensorType | None = None,
    ) -> TensorType:
        for operand in (boxes, scores):
            fits = operand.dtype is DType.FLOAT32 and operand.rank == 3
            require(fits, f"an operand is {operand}, expected f32 of 3 dimensions")
        require(boxes.shape[2] in (4, None), f"the boxes are {boxes}, expected [batch, n, 4]")
        wanted = (boxes.shape[0], scores.shape[1], boxes.shape[1])
        require(shapes.compatible(scores.shape, wanted), f"the scores are {scores}, expected {shapes.text(wanted)}")
        sv.one_integer(most, "most")
        for bound in (overlap, least):
            one = bound is None or (bound.dtype.is_float and shapes.num_elements(bound.shape) in (1, None))
            require(one, f"a threshold is {bound}, expected one float")
        given = [None if x is None else x.value for x in (boxes, scores, most, overlap, least)]
        if any(x is not None and x.value is None for x in (boxes, scores, most, overlap, least)):
            return TensorType(DType.INT64, (None, 3))
        return TensorType(DType.INT64, (len(self.evaluate(*given)), 3))  # type: ignore[arg-type] # all are known

    def rounds(self, types: CallTypes) -> int:
        return shapes.num_elements(types.input(1).shape) or 0

    def evaluate(
        self, boxes: Array, scores: Array, most: Array, overlap: Array | None = None, least: Array | None = None
    ) -> Array:
        count = int(most.reshape(-1)[0])
        bound = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
        found = []
        for picture, (own, classes) in enumerate(zip(_corners(boxes, centred=self.centred), scores, strict=True)):
            for number, row in enumerate(classes):
                kept = _kept(own, row, count, bound, None if least is None else float(least.reshape(-1)[0]))
                found += [(picture, number, box) for box in kept]
        return np.array(found, np.int64).reshape(-1, 3)


_PAIR = 3
"""The arithmetic for comparing two boxes, in parts of a register: a dozen instructions compare as many as it holds, and
half of the pairs are compared."""


@frozen
class CountedBoxes(Op):
    """`BoxesPerClass` with a result of fixed size for at most `bound` boxes: zeros follow the last box, and the number
    of boxes is a second result.

    Results: int64 [bound, 3] and one int64.
    """

    bound: int
    centred: bool = False

    params = BoxesPerClass.params

    def infer(
        self, boxes: TensorType, scores: TensorType, most: TensorType, *bounds: TensorType | None
    ) -> tuple[TensorType, TensorType]:
        untold = (None if t is None else evolve(t, data=None) for t in (boxes, scores, most, *bounds))
        BoxesPerClass(self.centred).infer(*untold)  # type: ignore[arg-type] # the first three are there
        possible = bound_of(boxes, scores, most)
        require(possible is None or possible <= self.bound, f"the bound is {self.bound}, expected {possible} or more")
        return TensorType(DType.INT64, (self.bound, 3)), TensorType(DType.INT64, ())

    def flops(self, types: CallTypes) -> int:
        """Every selected box is compared with all others of its class."""
        return _PAIR * self.bound * (types.input(0).shape[1] or 0)

    def rounds(self, types: CallTypes) -> int:
        return shapes.num_elements(types.input(1).shape) or 0

    def evaluate(self, boxes: Array, scores: Array, most: Array, *bounds: Array | None) -> tuple[Array, Array]:
        found = BoxesPerClass(self.centred).evaluate(boxes, scores, most, *bounds)
        out = np.zeros((self.bound, 3), np.int64)
        out[: len(found)] = found
        return out, np.array(len(found), np.int64)


def bound_of(boxes: TensorType, scores: TensorType, most: TensorType) -> int | None:
    """The maximum number of selected boxes; None if the shapes are unknown."""
    count = shapes.num_elements(scores.shape)
    if count is None or boxes.shape[1] is None:
        return None
    own = boxes.shape[1] or 1
    return count // own * max(0, min(own, own if most.value is None else int(most.value.reshape(-1)[0])))


def _corners(boxes: Array, *, centred: bool) -> Array:
    """Boxes as [y, x, y, x], the lower corner first."""
    if centred:
        x, y, width, height = np.moveaxis(boxes.astype(np.float64), -1, 0)
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], axis=-1)
    first, second = boxes[..., :2].astype(np.float64), boxes[..., 2:].astype(np.float64)
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _kept(boxes: Array, scores: Array, most: int, overlap: float, least: float | None) -> list[int]:
    """The selected boxes of one class, the best first."""
    order = np.argsort(-scores, kind="stable")
    order = order if least is None else order[scores[order] > least]
    near = _Near.best(boxes[order], all_=not overlap >= 0)
    left = np.ones(len(order), np.bool_)
    kept: list[int] = []
    for rank, at in enumerate(near.places.tolist()):
        if len(kept) >= most:
            break
        if left[at]:
            kept.append(rank)
            others = slice(near.first[at], near.last[at])
            low, high, areas = near.low[:, others], near.high[:, others], near.areas[others]
            sides = np.minimum(high, near.high[:, at, None]) - np.maximum(low, near.low[:, at, None])
            height, width = np.maximum(sides, 0)
            shared = height * width
            left[others] &= ~(shared > overlap * (near.areas[at] + areas - shared))
    out: list[int] = order[kept].tolist()
    return out


@frozen
class _Near:
    """Boxes in ascending order along one axis, so that those a box may share area with are neighbours: from `first` to
    before `last`, for each box. `places` are the boxes' positions in this order; `low` and `high` are [2, n].
    """

    places: Array
    low: Array
    high: Array
    areas: Array
    first: Array
    last: Array

    @classmethod
    def best(cls, boxes: Array, *, all_: bool) -> _Near:
        """The order of boxes, [n, 4], along the axis with fewer neighbours; `all_` makes all neighbours."""
        found = [cls.along(axis, boxes, all_=all_) for axis in range(2)]
        return min(found, key=lambda each: int((each.last - each.first).sum()))

    @classmethod
    def along(cls, axis: int, boxes: Array, *, all_: bool) -> _Near:
        order = np.argsort(boxes[:, axis], kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        low, high = np.ascontiguousarray(boxes[order, :2].T), np.ascontiguousarray(boxes[order, 2:].T)
        first, last = np.zeros(len(order), np.int64), np.full(len(order), len(order))
        if len(order) and not all_ and np.isfinite(boxes).all():
            begins = low[axis]
            rounding = 4 * np.finfo(np.float64).eps * np.abs(boxes).max()
            first = np.searchsorted(begins, begins - (high[axis] - begins).max() - rounding)
            last = np.searchsorted(begins, high[axis] + rounding)
        return cls(places, low, high, np.prod(high - low, axis=0), first, last)


@frozen
class MaxRoiPool(Op):
    """Max pooling over regions of images, each divided into `rows` by `columns` cells.

    - `x`: floats [batch, channels, height, width]
    - `regions`: of x's type, [count, 5]: image, left, top, right, bottom; multiplied by `scale` and rounded to pixels

    Result: [count, channels, rows, columns]; a cell without pixels is 0. Source: ONNX MaxRoiPool (Fast R-CNN).
    """

    rows: int
    columns: int
    scale: float = 1.0

    def infer(self, x: TensorType, regions: TensorType) -> TensorType:
        require(x.dtype.is_float and x.rank == 4, f"x is {x}, expected floats of 4 dimensions")
        fits = regions.dtype is x.dtype and regions.rank == 2 and regions.shape[1] in (5, None)
        require(fits, f"the regions are {regions}, expected [count, 5] of {x.dtype.text}")
        sizes = 1 <= self.rows <= 1 << 16 and 1 <= self.columns <= 1 << 16
        require(sizes, f"there are {self.rows} rows and {self.columns} columns, expected at least 1")
        return x.result((regions.shape[0], x.shape[1], self.rows, self.columns))

    def rounds(self, types: CallTypes) -> int:
        return (types.input(1).shape[0] or 0) * self.rows * self.columns

    def evaluate(self, x: Array, regions: Array) -> Array:
        out = np.zeros((len(regions), x.shape[1], self.rows, self.columns), x.dtype)
        require(bool(np.isfinite(regions).all()), "a region is not finite")
        for at, region in enumerate(regions.astype(np.float64)):
            picture = int(region[0])
            require(0 <= picture < len(x), f"a region is of picture {picture}, expected less than {len(x)}")
            left, top, right, bottom = (_rounded(v * self.scale) for v in region[1:])
            for row, column in np.ndindex(self.rows, self.columns):
                y = _cell(top, bottom, row, self.rows, x.shape[2])
                z = _cell(left, right, column, self.columns, x.shape[3])
                if y[0] < y[1] and z[0] < z[1]:
                    out[at, :, row, column] = x[picture, :, y[0] : y[1], z[0] : z[1]].max(axis=(1, 2))
        return out


def _rounded(value: float) -> int:
    """The nearest integer, halves away from zero."""
    return int(np.sign(value) * np.floor(abs(value) + 0.5))


def _cell(start: int, end: int, at: int, count: int, size: int) -> tuple[int, int]:
    """The range of pixels of one cell: the first, and the one after the last."""
    length = max(end - start + 1, 1) / count
    first, last = int(np.floor(at * length)) + start, int(np.ceil((at + 1) * length)) + start
    return min(max(first, 0), size), min(max(last, 0), size)
