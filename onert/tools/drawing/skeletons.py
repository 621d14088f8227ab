"""Draw body points as skeletons."""

from __future__ import annotations

from onert.tools.answers import Found
from onert.tools.answers.poses import BODY

from .canvas import Canvas
from .palette import BLACK, Color

SURE = 0.3
"""Points with a lower score are not drawn."""
_LEFT: Color = (0, 200, 255)
_RIGHT: Color = (255, 140, 0)
_MIDDLE: Color = (120, 230, 80)
BONES = (
    (0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (7, 9), (6, 8), (8, 10), (5, 11), (6, 12), (11, 12), (11, 13),
    (13, 15), (12, 14), (14, 16),
)  # fmt: skip
"""The pairs of COCO's 17 points that are joined by lines."""


def draw_points(canvas: Canvas, found: tuple[Found, ...]) -> None:
    """Draw bones and points with dark edges, the left side in blue and the right in orange."""
    for one in reversed(found):
        at = [(round(x * (canvas.width - 1)), round(y * (canvas.height - 1))) for y, x, _ in one.points]
        seen = [score >= SURE for _, _, score in one.points]
        pen, stroke = canvas.pen, canvas.stroke
        bones = [(a, b) for a, b in BONES if len(at) == BODY and seen[a] and seen[b]]
        for a, b in bones:
            pen.line((*at[a], *at[b]), fill=BLACK, width=stroke + 2)
        for a, b in bones:
            pen.line((*at[a], *at[b]), fill=_side(a, b), width=stroke)
        radius = stroke + 1
        for number, (x, y) in enumerate(at):
            if seen[number]:
                circle = (x - radius, y - radius, x + radius, y + radius)
                pen.ellipse(circle, fill=_side(number, number), outline=BLACK)


def _side(a: int, b: int) -> Color:
    """The colour of a bone or point. Point 0 (the nose) is in the middle; left points are odd, right ones even."""
    if 0 in (a, b) or a % 2 != b % 2:
        return _MIDDLE
    return _LEFT if a % 2 else _RIGHT
