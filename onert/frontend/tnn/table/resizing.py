"""Resizing of images.

Source: TNN's upsample_layer_interpreter.cc, upsample_layer.cc and cpu_upsample_layer_acc.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from onert.frontend.tnn.site import Site
from onert.ir import ModelError, Op
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor

from .spans import LARGEST

_NEAREST, _BILINEAR = 1, 2


def _upsample(site: Site) -> Sequence[int]:
    """Resize by factors for height and width, or to a size; corners or centres are aligned."""
    g = site.graph
    shape = site.shape
    if len(shape) != 4:
        raise ModelError(f"its input has the shape {list(shape)}, expected 4 dimensions")
    mode = site.integer("mode")
    if mode not in (_NEAREST, _BILINEAR):
        raise ModelError(f"the mode is {mode}, expected 1 (nearest) or 2 (bilinear)")
    factors = [site.number(f"factor of the {what}") for what in ("height", "width")]
    corners = site.flag("align corners", 0)
    if site.remaining >= 2:
        size = [site.integer(f"new {what}", None, 1, LARGEST) for what in ("height", "width")]
    else:
        size = [math.floor(d * factor + 0.5) for d, factor in zip(shape[2:], factors, strict=True)]
    if not all(1 <= length <= LARGEST for length in size):
        raise ModelError(f"the new size is {size[0]} by {size[1]}, expected 1 to {LARGEST}")
    if tuple(size) == shape[2:]:
        return [site.x]
    x = g.nhwc(site.x)
    op: Op = ResizeNearestNeighbor()
    if mode == _BILINEAR:
        op = ResizeBilinear(align_corners=corners, half_pixel_centers=not corners)
        kept = [1 if new == 1 else d for d, new in zip(shape[2:], size, strict=True)]
        if tuple(kept) != shape[2:]:  # the only row or column of the result is the first of the input
            x = g.move(Slice(), x, g.integers((0, 0, 0, 0)), g.integers((shape[0], *kept, shape[1])))
    return [g.nchw(g.add(op, x, g.integers(size)))]


LAYERS = {"Upsample": _upsample}
