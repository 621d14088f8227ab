"""Draw areas in transparent colours with outlines."""

from __future__ import annotations

import numpy as np

from onert.ir import Array
from onert.tools.answers import Found
from onert.tools.inputs.pictures import pillow

from .boxes import name_of
from .canvas import Canvas
from .palette import Color, color_of

_OPACITY = 0.5
_BACKGROUND = 0


def draw_classes(canvas: Canvas, classes: Array, found: tuple[Found, ...]) -> list[tuple[Color | None, str]]:
    """Draw every class except 0 (the background) in its colour. Returns rows of a legend."""
    image_type = pillow()
    capped = np.clip(classes, 0, 255).astype(np.uint8)
    large = np.asarray(
        image_type.fromarray(capped).resize((canvas.width, canvas.height), image_type.Resampling.NEAREST)
    )
    colors = np.array([color_of(index) for index in range(256)], np.uint8)
    _blend(canvas, large != _BACKGROUND, colors[large], _edges(large))
    return [(color_of(one.index), f"{name_of(one)}: {one.score:.1%}") for one in found if one.index != _BACKGROUND]


def draw_masks(canvas: Canvas, found: tuple[Found, ...]) -> None:
    """Draw the mask of each object in its class's colour."""
    image_type = pillow()
    for one in reversed(found):
        if one.mask is not None and one.mask.size:
            small = image_type.fromarray(one.mask.astype(np.uint8) * 255)
            large = np.asarray(small.resize((canvas.width, canvas.height), image_type.Resampling.BILINEAR)) > 127
            color = np.broadcast_to(np.array(color_of(one.index), np.uint8), (*large.shape, 3))
            _blend(canvas, large, color, _edges(large))


def _blend(canvas: Canvas, mask: Array, colors: Array, edges: Array) -> None:
    pixels = np.array(canvas.image.convert("RGB"))
    mixed = (pixels * (1 - _OPACITY) + colors * _OPACITY).astype(np.uint8)
    pixels[mask] = mixed[mask]
    line = edges & mask
    pixels[line] = colors[line]
    canvas.image = pillow().fromarray(pixels)


def _edges(areas: Array) -> Array:
    """The borders between areas, two pixels wide."""
    out = np.zeros(areas.shape, bool)
    for axis in (0, 1):
        changes = np.diff(areas, axis=axis) != 0
        before = [slice(None), slice(None)]
        behind = [slice(None), slice(None)]
        before[axis], behind[axis] = slice(None, -1), slice(1, None)
        out[tuple(before)] |= changes
        out[tuple(behind)] |= changes
    return out
