"""The output layer of a single-shot detector: boxes are decoded, suppressed class by class and listed."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.shape import num_elements
from onert.ir.types import CallTypes, TensorType

from .detection import intersection

_MOST = 1 << 20
_ROW = 7


class BoxCode(Enum):
    """The meaning of the four numbers of a location.

    CORNER: offsets of the corners; CENTER_SIZE: offset of the centre and logarithm of the size, relative to the size of
    the box; CORNER_SIZE: offsets of the corners relative to the size of the box.
    """

    CORNER = "corner"
    CENTER_SIZE = "center size"
    CORNER_SIZE = "corner size"


@frozen
class DetectionOutput(Op):
    """Detections of a single-shot detector, [1, 1, n, 7]: image, class, score, xmin, ymin, xmax, ymax.

    - `locations`: float32, for each image [boxes, 4], or without `share_location` [boxes, classes, 4]
    - `scores`: float32, for each image [boxes, classes]
    - `priors`: float32, [2, boxes, 4]: corners, x before y, then variances

    Only the first dimension of `locations` and `scores`, the number of images, and their number of elements matter. A
    location, multiplied by its variances unless `variance_in_target`, moves its prior box according to `code`. For each
    class except `background`, the `candidates` best boxes (-1: all) with scores above `score_threshold` are visited
    from the best on. A box is kept unless it overlaps a kept one by more than `iou_threshold`, which is multiplied by
    `eta` after each kept box while it is above 0.5. The `keep` best boxes of each image (-1: all) are listed by class,
    then score. Without any box there is one row per image: its number, then -1 six times.

    Source: Caffe SSD's DetectionOutput layer; TNN's naive_compute.cc and bbox_util.cc.
    """

    finds: ClassVar[bool] = True

    classes: int
    share_location: bool = True
    background: int = 0
    variance_in_target: bool = False
    code: BoxCode = BoxCode.CENTER_SIZE
    keep: int = -1
    score_threshold: float = 0.0
    iou_threshold: float = 0.5
    candidates: int = -1
    eta: float = 1.0

    def infer(self, locations: TensorType, scores: TensorType, priors: TensorType) -> TensorType:
        require(1 <= self.classes <= _MOST, f"classes is {self.classes}, expected 1 to {_MOST}")
        for name, count in (("keep", self.keep), ("candidates", self.candidates)):
            require(-1 <= count <= _MOST, f"{name} is {count}, expected -1 to {_MOST}")
        require(0 < self.eta <= 1, f"eta is {self.eta}, expected more than 0 and at most 1")
        for name, x in (("locations", locations), ("scores", scores), ("priors", priors)):
            require(x.dtype is DType.FLOAT32, f"{name} are {x.dtype.text}, expected f32")
        for name, x in (("locations", locations), ("scores", scores)):
            require(x.rank >= 1, f"{name} are a scalar, expected a dimension for the pictures")
        require(
            None in (locations.shape[0], scores.shape[0]) or locations.shape[0] == scores.shape[0],
            f"locations are for {locations.shape[0]} pictures, scores for {scores.shape[0]}",
        )
        counts = [num_elements(x.shape) for x in (locations, scores, priors)]
        pictures = locations.shape[0]
        if pictures is not None and None not in counts:
            self._boxes(pictures, *(c for c in counts if c is not None))
        known = [x.value for x in (locations, scores, priors)]
        found = None if any(x is None for x in known) else self.evaluate(*(x for x in known if x is not None)).shape[2]
        return TensorType(DType.FLOAT32, (1, 1, found, _ROW))

    def _boxes(self, pictures: int, locations: int, scores: int, priors: int) -> int:
        """The number of prior boxes. Raises RuleError if the numbers of locations or scores do not match it."""
        require(priors % 8 == 0, f"priors have {priors} elements, expected a multiple of 8")
        boxes = priors // 8
        wanted = pictures * boxes * 4 * (1 if self.share_location else self.classes)
        require(locations == wanted, f"locations have {locations} elements, expected {wanted} for {boxes} boxes")
        wanted = pictures * boxes * self.classes
        require(scores == wanted, f"scores have {scores} elements, expected {wanted} for {boxes} boxes")
        return boxes

    def rounds(self, types: CallTypes) -> int:
        boxes = (num_elements(types.input(2).shape) or 0) // 8
        return self.classes * (boxes if self.candidates < 0 else min(self.candidates, boxes))

    def evaluate(self, locations: Array, scores: Array, priors: Array) -> Array:
        pictures = locations.shape[0]
        boxes = self._boxes(pictures, locations.size, scores.size, priors.size)
        given = locations.reshape(pictures, boxes, 1 if self.share_location else self.classes, 4)
        chances = scores.reshape(pictures, boxes, self.classes)
        corners = self._decoded(given, priors.reshape(2, boxes, 1, 4))
        rows = [row for at in range(pictures) for row in self._picture(at, corners[at], chances[at])]
        if not rows:
            rows = [(float(at), *(-1.0,) * (_ROW - 1)) for at in range(pictures)]
        return np.array(rows, np.float32).reshape(1, 1, -1, _ROW)

    def _decoded(self, given: Array, priors: Array) -> Array:
        """Corners [pictures, boxes, classes or 1, 4]."""
        prior, variance = priors
        moved = given if self.variance_in_target else given * variance
        if self.code is BoxCode.CORNER:
            out: Array = prior + moved
            return out
        low, high = prior[..., :2], prior[..., 2:]
        size = high - low
        if self.code is BoxCode.CORNER_SIZE:
            return np.asarray(prior + moved * np.concatenate([size, size], -1))
        centre = moved[..., :2] * size + (low + high) / np.float32(2)
        with np.errstate(over="ignore"):
            half = np.exp(moved[..., 2:]) * size / np.float32(2)
        return np.concatenate([centre - half, centre + half], -1)

    def _picture(self, picture: int, corners: Array, chances: Array) -> list[tuple[float, ...]]:
        """The rows of one image."""
        found: list[tuple[int, int]] = []
        for label in range(self.classes):
            if label != self.background:
                boxes = corners[:, 0 if self.share_location else label]
                found += ((label, box) for box in self._kept(boxes, chances[:, label]))
        if 0 <= self.keep < len(found):
            found = sorted(found, key=lambda one: -float(chances[one[1], one[0]]))[: self.keep]
            found.sort(key=lambda one: one[0])
        return [
            (picture, label, chances[box, label], *corners[box, 0 if self.share_location else label])
            for label, box in found
        ]

    def _kept(self, boxes: Array, chances: Array) -> list[int]:
        """The kept boxes of a class, the best first."""
        likely = np.flatnonzero(chances > self.score_threshold)
        order = likely[np.argsort(-chances[likely], kind="stable")]
        if self.candidates >= 0:
            order = order[: self.candidates]
        limit = self.iou_threshold
        kept: list[int] = []
        for box in order.tolist():
            if kept and overlaps(boxes[box], boxes[kept]).max() > limit:
                continue
            kept.append(box)
            if self.eta < 1 and limit > 0.5:
                limit *= self.eta
        return kept


def overlaps(box: Array, others: Array) -> Array:
    """Intersection over union of a box with others; 0 if they do not intersect."""
    common = intersection(box, others)
    both = _areas(box) + _areas(others) - common
    out: Array = np.divide(common, both, out=np.zeros_like(common), where=(common > 0) & (both > 0))
    return out


def _areas(boxes: Array) -> Array:
    sides = boxes[..., 2:] - boxes[..., :2]
    out: Array = np.where((sides < 0).any(axis=-1), 0, np.prod(sides, axis=-1))
    return out
