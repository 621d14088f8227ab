"""Boxes: those that are laid over a picture beforehand, and those that are found in it.

Source: TNN's prior_box_layer.cc, prior_box_layer_interpreter.cc, detection_output_interpreter.cc and naive_compute.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.frontend.tnn.site import Site
from onert.ir import Array, ModelError
from onert.ir.ops.vision_audio.detection_output import BoxCode, DetectionOutput

from .spans import LARGEST, elements


def _numbers(site: Site, what: str) -> list[float]:
    return [site.number(what) for _ in range(site.integer(f"number of {what}s", None, 0, site.left))]


def _prior_box(site: Site) -> Sequence[int]:
    """Boxes at every element of a plane, [1, 2, 4 * boxes, 1]: corners x before y, then their variances.

    Sizes are cut to whole numbers, as TNN does.
    """
    g = site.graph
    plane, picture = g.shape(site.x), g.shape(site.input(1))
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
        raise ModelError("it has no box")
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
    """Width and height of each box, in the order in which they are laid.

    ModelError where TNN's count of them, which takes the ratio 1 for granted, would be another.
    """
    if most and len(most) != len(least):
        raise ModelError(f"it has {len(least)} smallest and {len(most)} largest sizes, expected as many of each")
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
        raise ModelError(f"the aspect ratios {ratios} do not have 1 just once")
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

LAYERS = {"PriorBox": _prior_box, "DetectionOutput": _detection_output}
