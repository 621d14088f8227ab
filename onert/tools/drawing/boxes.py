"""Draw boxes with labels."""

from __future__ import annotations

from onert.tools.answers import Found

from .canvas import Canvas, Rectangle
from .palette import Color, color_of

_LABELLED = 40
"""With more boxes than this, labels would hide them, so a legend names the classes instead."""


def draw_boxes(canvas: Canvas, found: tuple[Found, ...]) -> list[tuple[Color | None, str]]:
    """Draw boxes with class and score, small ones on top. Returns legend rows for labels without room."""
    boxed = [one for one in found if one.box is not None]
    places = [(one, _pixels(canvas, one)) for one in boxed]
    for one, place in sorted(places, key=lambda pair: -_area(pair[1])):
        canvas.frame(place, color_of(one.index))
    unnamed = [
        one
        for one, place in places
        if len(boxed) > _LABELLED or not canvas.label(place, name_of(one), f"{one.score:.2f}", color_of(one.index))
    ]
    classes = {one.index: one for one in unnamed}
    counts = {index: sum(one.index == index for one in boxed) for index in classes}
    return [(color_of(index), f"{name_of(one)}: {counts[index]}") for index, one in classes.items()]


def name_of(one: Found) -> str:
    """The name of a class, or its number if it has none."""
    return one.label or f"class {one.index}"


def _pixels(canvas: Canvas, one: Found) -> Rectangle:
    """The box on the canvas (left, top, right, bottom), clipped to it."""
    assert one.box is not None
    top, left, bottom, right = (min(max(side, 0.0), 1.0) for side in one.box)
    x, y = canvas.width - 1, canvas.height - 1
    found = (round(left * x), round(top * y), round(right * x), round(bottom * y))
    return (found[0], found[1], max(found[0], found[2]), max(found[1], found[3]))


def _area(place: Rectangle) -> int:
    return (place[2] - place[0]) * (place[3] - place[1])
