"""Answers as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from .found import Answer, Found
from .poses import NAMES

_SHOWN_POINTS = 100


def answer_lines(answer: Answer) -> list[str]:
    """The findings, under their outputs' names if they come from several."""
    found = answer.found
    if not found:
        nothing = {"detection": "nothing was detected", "keypoints": "no body was found"}
        return [f"  {nothing[answer.task]}"] if answer.task in nothing else []
    lines: list[str] = []
    several = len({one.output for one in found}) > 1
    place = 0
    for at, one in enumerate(found):
        place = 1 if at and found[at - 1].output != one.output else place + 1
        if several and place == 1:
            lines.append(f"output {one.output!r}:")
        lines.append(_line(place, one))
        lines.extend(_points(one))
    return lines


def _line(place: int, one: Found) -> str:
    box = "" if one.box is None else f"  box {' '.join(f'{side:.3f}' for side in one.box)}"
    area = "" if one.pixels is None else f"  {one.pixels} pixels"
    return f"{place:>3}. {one.score:.4f}  {one.index:>4}  {one.label}".rstrip() + box + area


def _points(one: Found) -> Sequence[str]:
    return [
        f"     {NAMES[at] if len(one.points) == len(NAMES) else at:>14}  {y:.3f} {x:.3f}  score {score:.3f}"
        for at, (y, x, score) in enumerate(one.points[:_SHOWN_POINTS])
    ]
