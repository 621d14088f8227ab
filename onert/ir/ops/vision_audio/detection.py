"""Box detection: decoding from anchors, and non-maximum suppression."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, as_stored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.data_movement.reshape import require_one
from onert.ir.types import CallTypes, TensorType


def overlap(box: Array, others: Array) -> Array:
    """Intersection over union of a box [ymin, xmin, ymax, xmax] with others, [n, 4]; 0 for boxes without area."""
    area = _area(box[None])[0]
    areas = _area(others)
    shared = intersection(box, others)
    union = area + areas - shared
    return np.where((areas > 0) & (area > 0), shared / np.where(union == 0, 1, union), 0)


def intersection(box: Array, others: Array) -> Array:
    """The area that a box [low y, low x, high y, high x] shares with each of the others."""
    low, high = np.maximum(others[:, :2], box[:2]), np.minimum(others[:, 2:], box[2:])
    out: Array = np.prod(np.maximum(high - low, 0), axis=1)
    return out


def _area(boxes: Array) -> Any:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def suppress(boxes: Array, scores: Array, threshold: float, iou: float, most: int) -> list[int]:
    """Boxes in descending order of score, except those below `threshold` or overlapping a better one by over `iou`.

    Equal scores keep their order.
    """
    candidates = np.flatnonzero(scores >= np.float32(threshold))
    order = candidates[np.argsort(-scores[candidates], kind="stable")]
    chosen: list[int] = []
    alive = np.ones(len(order), np.bool_)
    for at, index in enumerate(order):
        if len(chosen) >= most:
            break
        if not alive[at]:
            continue
        chosen.append(int(index))
        alive[at + 1 :] &= overlap(boxes[index], boxes[order[at + 1 :]]) <= np.float32(iou)
    return chosen


@frozen
class DetectionPostProcess(Op):
    """Decodes boxes from anchors, and selects the best ones that do not overlap as detections.

    - `encodings`: [1, anchors, 4 or more]: y, x, height and width, relative to `y_scale`, `x_scale` and so on
    - `scores`: [1, anchors, classes or classes + 1]; with one more class than `num_classes`, class 0 is the background
    - `anchors`: [anchors, 4]: centre y, centre x, height, width

    Results, all float32: boxes [1, n, 4] (ymin, xmin, ymax, xmax), classes [1, n], scores [1, n] and their number [1],
    where n = `max_detections * max_classes_per_detection`; unused entries are 0. With `regular_nms` each class is
    suppressed separately and has at most `detections_per_class`; otherwise each selected anchor is listed with its best
    classes. Quantised operands are dequantised. Source: TFLite's detection_postprocess.cc.
    """

    max_detections: int
    max_classes_per_detection: int
    num_classes: int
    score_threshold: float
    iou_threshold: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float
    regular_nms: bool = False
    detections_per_class: int = 100

    def infer(
        self, encodings: TensorType, scores: TensorType, anchors: TensorType
    ) -> tuple[TensorType, TensorType, TensorType, TensorType]:
        self._check_attributes()
        for x, name, rank in (
            (encodings, "box encodings", 3),
            (scores, "class predictions", 3),
            (anchors, "anchors", 2),
        ):
            require(x.rank == rank, f"{name} has rank {x.rank}, expected {rank}")
            require(
                x.dtype is DType.FLOAT32 or (x.dtype.is_integer and x.quantization is not None),
                f"{name} holds {x.dtype.text}, expected f32 or quantised integers",
            )
        require(encodings.shape[0] in (1, None), f"the batch is {encodings.shape[0]}, expected 1")
        require(encodings.shape[2] is None or encodings.shape[2] >= 4, "box encodings have fewer than 4 coordinates")
        require(anchors.shape[1] in (4, None), f"anchors have {anchors.shape[1]} coordinates, expected 4")
        counts = {encodings.shape[1], scores.shape[1], anchors.shape[0]} - {None}
        require(len(counts) <= 1, f"encodings, scores and anchors are for {sorted(map(str, counts))} boxes")
        classes = scores.shape[2]
        require(
            classes is None or classes - self.num_classes in (0, 1),
            f"class predictions are for {classes} classes, expected {self.num_classes} or one more",
        )
        n = self.max_detections * self.max_classes_per_detection
        return (
            TensorType(DType.FLOAT32, (1, n, 4)),
            TensorType(DType.FLOAT32, (1, n)),
            TensorType(DType.FLOAT32, (1, n)),
            TensorType(DType.FLOAT32, (1,)),
        )

    def _check_attributes(self) -> None:
        for name in ("max_detections", "max_classes_per_detection", "num_classes", "detections_per_class"):
            value = getattr(self, name)
            require(1 <= value <= 1 << 20, f"{name} is {value}, expected at least 1")
        for name in ("y_scale", "x_scale", "h_scale", "w_scale"):
            require(getattr(self, name) > 0, f"{name} is {getattr(self, name)}, expected a positive number")
        require(0 < self.iou_threshold <= 1, f"nms_iou_threshold is {self.iou_threshold}, expected 0 to 1")

    def flops(self, types: CallTypes) -> int:
        return 20 * self.rounds(types) * (types.input(2).shape[0] or 0)

    def rounds(self, types: CallTypes) -> int:
        kept = min(self.max_detections, types.input(2).shape[0] or 0)
        return kept * (self.num_classes if self.regular_nms else 1)

    def evaluate(self, encodings: Array, scores: Array, anchors: Array) -> tuple[Array, Array, Array, Array]:
        boxes = self._decode(encodings[0].astype(np.float32), anchors.astype(np.float32))
        offset = scores.shape[2] - self.num_classes
        found = (self._regular if self.regular_nms else self._fast)(boxes, scores[0, :, offset:].astype(np.float32))
        n = self.max_detections * self.max_classes_per_detection
        out = np.zeros((n, 4), np.float32), np.zeros(n, np.float32), np.zeros(n, np.float32)
        for at, (box, label, score) in enumerate(found[:n]):
            out[0][at], out[1][at], out[2][at] = boxes[box], label, score
        count = np.array([min(len(found), n)], np.float32)
        return out[0][None], out[1][None], out[2][None], count

    def _decode(self, encodings: Array, anchors: Array) -> Array:
        """Centres and sizes from the anchors, then corners; in float32 as in the kernel."""
        f = np.float32
        y = encodings[:, 0] / f(self.y_scale) * anchors[:, 2] + anchors[:, 0]
        x = encodings[:, 1] / f(self.x_scale) * anchors[:, 3] + anchors[:, 1]
        h = f(0.5) * (np.exp(encodings[:, 2] / f(self.h_scale)) * anchors[:, 2])
        w = f(0.5) * (np.exp(encodings[:, 3] / f(self.w_scale)) * anchors[:, 3])
        return np.stack([y - h, x - w, y + h, x + w], axis=1)

    def _fast(self, boxes: Array, scores: Array) -> list[tuple[int, int, float]]:
        """Suppress by the best score of each anchor, then list its best classes."""
        per_box = min(self.max_classes_per_detection, self.num_classes)
        labels = np.argsort(-scores, axis=1, kind="stable")[:, :per_box]
        best = np.take_along_axis(scores, labels[:, :1], 1)[:, 0]
        chosen = suppress(boxes, best, self.score_threshold, self.iou_threshold, self.max_detections)
        return [(box, int(c), float(scores[box, c])) for box in chosen for c in labels[box]]

    def _regular(self, boxes: Array, scores: Array) -> list[tuple[int, int, float]]:
        """Suppress class by class, and keep the best over all classes."""
        found: list[tuple[int, int, float]] = []
        for label in range(self.num_classes):
            limit = min(self.detections_per_class, self.max_detections)
            chosen = suppress(boxes, scores[:, label], self.score_threshold, self.iou_threshold, limit)
            found += [(box, label, float(scores[box, label])) for box in chosen]
            found.sort(key=lambda item: -item[2])
            del found[self.max_detections :]
        return found


@frozen
class NonMaxSuppression(Op):
    """Non-maximum suppression: indices of boxes by descending score, padded with 0 to a fixed number.

    - `boxes`: float32 [n, 4]: two opposite corners, y before x
    - `scores`: float32 [n]
    - `most`: one integer: the length of the result
    - `iou`, `threshold`: float32 scalars
    - `sigma`: float32 scalar; if present (V5), the scores of overlapping boxes are reduced by a Gaussian instead of
      dropping the boxes, and the scores are a result too

    Results: indices int32 [most], with `sigma` scores float32 [most], and their number, an int32 scalar.
    Source: TFLite's non_max_suppression.h.
    """

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        most: TensorType,
        iou: TensorType,
        threshold: TensorType,
        sigma: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        require(
            boxes.rank == 2 and boxes.shape[1] in (4, None),
            f"boxes has shape {shapes.text(boxes.shape)}, expected [n, 4]",
        )
        require(
            shapes.compatible(scores.shape, boxes.shape[:1]),
            f"scores has shape {shapes.text(scores.shape)}, expected {shapes.text(boxes.shape[:1])}",
        )
        require_one(most, "max_output_size")
        for name, one in (("iou_threshold", iou), ("score_threshold", threshold), ("soft_nms_sigma", sigma)):
            if one is not None:
                require_one(one, name)
        found = sv.integers(most, "max_output_size")
        size = None if found is None else found[0]
        require(size is None or size >= 0, f"max_output_size is {size}, expected at least 0")
        sv.checked_shape(() if size is None else (size,), "max_output_size")
        indices, count = TensorType(DType.INT32, (size,)), TensorType(DType.INT32, ())
        if sigma is None:
            return indices, count
        return indices, TensorType(DType.FLOAT32, (size,)), count

    def flops(self, types: CallTypes) -> int:
        return 20 * self.rounds(types) * (types.input(0).shape[0] or 0)

    def rounds(self, types: CallTypes) -> int:
        most, boxes = types.input(2).value, types.input(0).shape[0] or 0
        return boxes if most is None else min(boxes, max(int(most.reshape(())[()]), 0))

    def evaluate(
        self, boxes: Array, scores: Array, most: Array, iou: Array, threshold: Array, sigma: Array | None = None
    ) -> tuple[Array, ...]:
        size = int(most.reshape(())[()])
        corners = np.concatenate(
            [np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1
        )
        soft = 0.0 if sigma is None else float(sigma.reshape(())[()])
        limit, floor = float(iou.reshape(())[()]), float(threshold.reshape(())[()])
        chosen = _soft(corners, scores.astype(np.float64), limit, floor, soft, size)
        indices, kept = np.zeros(size, np.int32), np.zeros(size, np.float32)
        indices[: len(chosen)] = [i for i, _ in chosen]
        kept[: len(chosen)] = [s for _, s in chosen]
        count = np.array(len(chosen), np.int32)
        return (indices, count) if sigma is None else (indices, kept, count)

    evaluate_quantized = as_stored  # some converters set quantisation on the int32 result, where it has no meaning


def _soft(
    boxes: Array, scores: Array, iou: float, threshold: float, sigma: float, most: int
) -> list[tuple[int, float]]:
    """Selects the best remaining box at a time; others lose score by their overlap with it, or are dropped."""
    scores = scores.copy()
    alive = scores > threshold
    chosen: list[tuple[int, float]] = []
    while len(chosen) < most and alive.any():
        best = int(np.argmax(np.where(alive, scores, -np.inf)))
        chosen.append((best, float(scores[best])))
        alive[best] = False
        similar = overlap(boxes[best], boxes)
        if sigma > 0:
            weight = np.where(similar <= iou, np.exp(-similar * similar / (2 * sigma)), 0.0)
            scores = np.where(alive, scores * weight, scores)
        else:
            alive &= similar <= iou
        alive &= scores > threshold
    return chosen
