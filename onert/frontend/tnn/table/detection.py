"""Object detection: prior boxes, detected boxes, and regions of interest.

Source: TNN's prior_box_layer.cc, prior_box_layer_interpreter.cc, detection_output_interpreter.cc and naive_compute.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.site import Site
from onert.ir import Array, DType, ModelError
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.vision_audio.boxes import BoxesPerClass
from onert.ir.ops.vision_audio.detection import DetectionPostProcess
from onert.ir.ops.vision_audio.detection_output import BoxCode, DetectionOutput
from onert.ir.ops.vision_audio.sampling import RoiAlign

from .spans import LARGEST, elements


def _numbers(site: Site, what: str) -> list[float]:
    return [site.number(what) for _ in range(site.integer(f"number of {what}s", None, 0, site.remaining))]


def _prior_box(site: Site) -> Sequence[int]:
    """Boxes at every element of a feature map, [1, 2, 4 * boxes, 1]: corners (x, y), then their variances.

    Sizes are truncated to integers, as in TNN.
    """
    g = site.graph
    plane, picture = site.shape, g.shape(site.input(1))
    least, most = _numbers(site, "smallest size"), _numbers(site, "largest size")
    clip = site.flag("clip")
    site.flag("flip")
    variances, ratios = _numbers(site, "variance"), _numbers(site, "aspect ratio")
    image = [site.integer(f"picture {what}", 0, 0) for what in ("width", "height")]
    step = [site.number(f"step in {what}", 0.0) for what in ("width", "height")]
    offset = site.number("offset", 0.5)
    if len(plane) != 4 or len(picture) != 4:
        raise ModelError(f"its inputs have the shapes {list(plane)} and {list(picture)}, expected 4 dimensions")
    if not all(image):
        image = [picture[3], picture[2]]
    if not all(step):
        step = [image[0] / plane[3], image[1] / plane[2]]
    sides = _sides(least, most, ratios)
    if len(variances) not in (1, 4):
        raise ModelError(f"it has {len(variances)} variances, expected 1 or 4")
    if not sides:
        raise ModelError("it has no boxes")
    height, width = plane[2], plane[3]
    elements((height, width, len(sides), 8), LARGEST * 16)
    centre_x = ((np.arange(width) + offset) * step[0]).astype(np.float32).astype(np.float64)
    centre_y = ((np.arange(height) + offset) * step[1]).astype(np.float32).astype(np.float64)
    corners = np.empty((height, width, len(sides), 4), np.float32)
    for at, (across, down) in enumerate(sides):
        corners[:, :, at, 0] = (centre_x - across / 2) / image[0]
        corners[:, :, at, 2] = (centre_x + across / 2) / image[0]
        corners[:, :, at, 1] = ((centre_y - down / 2) / image[1])[:, None]
        corners[:, :, at, 3] = ((centre_y + down / 2) / image[1])[:, None]
    if clip:
        corners = np.clip(corners, 0, 1)
    spread: Array = np.broadcast_to(np.array(variances, np.float32), (corners.size // 4, 4))
    both = np.stack([corners.reshape(-1), spread.reshape(-1)])
    return [g.constant(both.reshape(1, 2, -1, 1))]


def _sides(least: list[float], most: list[float], ratios: list[float]) -> list[tuple[float, float]]:
    """Width and height of each box, in order.

    Raises ModelError if their number differs from TNN's formula, which assumes that the ratio 1 occurs once.
    """
    if most and len(most) != len(least):
        raise ModelError(f"it has {len(least)} smallest and {len(most)} largest sizes, expected equally many")
    sides: list[tuple[float, float]] = []
    for at, size in enumerate(map(int, least)):
        sides.append((size, size))
        if most:
            root = float(np.float32(math.sqrt(max(0, size * int(most[at])))))
            sides.append((root, root))
        for ratio in ratios:
            if abs(ratio - 1) < 1e-6:
                continue
            if ratio <= 0:
                raise ModelError(f"an aspect ratio is {ratio}, expected a positive number")
            sides.append((float(np.float32(size * math.sqrt(ratio))), float(np.float32(size / math.sqrt(ratio)))))
    if len(sides) != len(ratios) * len(least) + len(most):
        raise ModelError(f"the aspect ratios {ratios} do not contain 1 exactly once")
    return sides


def _detection_output(site: Site) -> Sequence[int]:
    g = site.graph
    op = DetectionOutput(
        classes=site.integer("classes", None, 1, LARGEST),
        share_location=site.flag("share location"),
        background=site.integer("background class"),
        variance_in_target=site.flag("variance in target"),
        code=_CODES.get(site.integer("code", None, 1, 3), BoxCode.CORNER_SIZE),
        keep=site.integer("most boxes", None, -1, LARGEST),
        score_threshold=site.number("score threshold"),
        iou_threshold=site.number("overlap threshold"),
        candidates=site.integer("candidates", -1, -1, LARGEST),
        eta=site.number("eta", 1.0),
    )
    return [g.add(op, site.input(0), site.input(1), site.input(2))]


_CODES = {1: BoxCode.CORNER, 2: BoxCode.CENTER_SIZE}


def _aligned_regions(site: Site) -> Sequence[int]:
    """RoI align; a region has a size of at least 1."""
    mode = site.integer("mode", _AVERAGE, 0, _AVERAGE)
    rows, columns = (site.integer(f"output {what}", None, 1, LARGEST) for what in ("height", "width"))
    samples, scale = site.integer("samples", 0, 0, 1 << 10), site.number("scale", 1.0)
    op = RoiAlign(rows, columns, samples, scale, half_pixel=False, largest=mode != _AVERAGE)
    return [site.graph.add(op, site.input(0), site.input(1), site.input(2))]


def _non_max_suppression(site: Site) -> Sequence[int]:
    """Non-maximum suppression: image, class and index of each selected box, int32."""
    g = site.graph
    op = BoxesPerClass(site.flag("centred", 0))
    most = site.integer("most boxes", 0, 0)
    overlap, least = (site.number(what, 0.0) for what in ("overlap threshold", "score threshold"))
    bounds = [g.constant(np.array(most, np.int64)), *(g.constant(np.array(b, np.float32)) for b in (overlap, least))]
    return [g.add(Cast(DType.INT32), g.add(op, site.input(0), site.input(1), *bounds))]


def _post_processed(site: Site) -> Sequence[int]:
    """Boxes, classes, scores and their number, each with four dimensions."""
    g = site.graph
    most, classes_each, per_class = (site.integer(what, None, 1, LARGEST) for what in _MOST_BOXES)
    regular = site.flag("each class by itself")
    score, overlap = (site.number(f"{what} threshold") for what in ("score", "overlap"))
    classes = site.integer("classes", None, 1, LARGEST)
    y, x, height, width = (site.number(f"scale of {what}") for what in ("y", "x", "height", "width"))
    op = DetectionPostProcess(most, classes_each, classes, score, overlap, y, x, height, width, regular, per_class)
    boxes, scores = (g.shape(site.input(at)) for at in (0, 1))
    if not boxes or boxes[0] != 1 or len(boxes) < 2 or len(scores) < 2:
        raise ModelError(f"its inputs have the shapes {list(boxes)} and {list(scores)}, expected one image")
    parted = [g.add(Reshape((1, s[1], math.prod(s[2:]))), site.input(at)) for at, s in enumerate((boxes, scores))]
    anchors = site.required_buffer(WeightRequest("anchors", (boxes[1], 4))).real().reshape(boxes[1], 4)
    found = g.add_many(op, *parted, g.constant(anchors))
    count = most * classes_each
    shapes = ((1, count, 4, 1), (1, count, 1, 1), (1, count, 1, 1), (1, 1, 1, 1))
    return [g.add(Reshape(shape), x) for shape, x in zip(shapes, found, strict=True)]


_AVERAGE = 1
_MOST_BOXES = ("most boxes", "most classes of a box", "most boxes of a class")


def _guide(site: Site) -> Sequence[int]:
    """HDRNet's guide map: a colour matrix, four ReLUs with slopes and shifts per channel, mixed and clipped to 0..1."""
    g = site.graph
    shape = site.shape
    if len(shape) != 4 or shape[1] != 3:
        raise ModelError(f"its input has the shape {list(shape)}, expected 3 channels")
    batch, _, height, width = shape
    sizes = (("matrix", 9, 3), ("offset", 3, 0), ("shifts", 12, 0), ("slopes", 12, 4), ("mix", 3, 3), ("bias", 1, 0))
    matrix, offset, shifts, slopes, mix, bias = (
        site.required_buffer(WeightRequest(p, (n,), terms)).real() for p, n, terms in sizes
    )
    x = g.add(Reshape((batch, 3, height * width)), site.x)
    x = g.add(BatchMatMul(), g.constant(matrix.reshape(3, 3)), x)
    x = g.binary(BinaryKind.ADD, x, offset.reshape(3, 1))
    total: int | None = None
    for at in range(4):
        bent = g.add(Unary(UnaryKind.RELU), g.binary(BinaryKind.SUB, x, shifts[at::4].reshape(3, 1)))
        part = g.binary(BinaryKind.MUL, bent, slopes[at::4].reshape(3, 1))
        total = part if total is None else g.binary(BinaryKind.ADD, total, part)
    assert total is not None
    mixed = g.binary(BinaryKind.ADD, g.add(BatchMatMul(), g.constant(mix.reshape(1, 3)), total), bias)
    cut = g.binary(BinaryKind.MINIMUM, g.binary(BinaryKind.MAXIMUM, mixed, 0.0), 1.0)
    return [g.add(Reshape((batch, 1, height, width)), cut)]


LAYERS = {
    "DetectionOutput": _detection_output,
    "DetectionPostProcess": _post_processed,
    "HDRGuide": _guide,
    "NonMaxSuppression": _non_max_suppression,
    "PriorBox": _prior_box,
    "RoiAlign": _aligned_regions,
}
