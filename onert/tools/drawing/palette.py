"""Colours of classes, and black or white for text on them."""

from __future__ import annotations

import colorsys

Color = tuple[int, int, int]

_TURN = 0.61803398875
"""Hues that are a golden section of the circle apart stay well separated, however many there are."""
_TONES = ((0.85, 0.95), (0.65, 0.75), (0.95, 0.65))
_ROUND = 12
WHITE: Color = (255, 255, 255)
BLACK: Color = (0, 0, 0)


def color_of(index: int) -> Color:
    """The colour of a class, always the same."""
    saturation, value = _TONES[(index // _ROUND) % len(_TONES)]
    red, green, blue = colorsys.hsv_to_rgb((0.02 + index * _TURN) % 1.0, saturation, value)
    return round(red * 255), round(green * 255), round(blue * 255)


def ink_on(color: Color) -> Color:
    """Black or white, whichever stands out more from a colour (by ITU-R BT.601's luma)."""
    return BLACK if 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2] > 140 else WHITE
