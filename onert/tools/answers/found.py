"""Interpreted outputs of a model as values: classes, boxes, points, masks."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from onert.ir import Array
from onert.ir.value import Value

Box = tuple[float, float, float, float]
"""Top, left, bottom and right as fractions of a picture."""
Point = tuple[float, float, float]
"""y and x as fractions of a picture, and a score from 0 to 1."""


def as_box(sides: Array) -> Box:
    top, left, bottom, right = map(float, sides)
    return top, left, bottom, right


@frozen(eq=False)
class Found(Value):
    """One finding: a class, detection, pose or area.

    - `index`, `label`: its class and the class's name, empty if unknown
    - `score`: the model's confidence; for an area, its fraction of the picture
    - `output`: the name of the output that it was read from
    - `box`, `points`: where it is
    - `mask`: which elements of the input's plane it covers, bool `[height, width]`
    - `pixels`: how many elements of the output it covers
    """

    index: int
    score: float
    label: str = ""
    output: str = ""
    box: Box | None = None
    points: tuple[Point, ...] = ()
    mask: Array | None = None
    pixels: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The finding for --json, without masks."""
        out: dict[str, Any] = {"class": self.index, "score": self.score, "label": self.label, "output": self.output}
        if self.box is not None:
            out["box"] = [round(side, 4) for side in self.box]
        if self.points:
            out["points"] = [[round(n, 4) for n in point] for point in self.points]
        if self.pixels is not None:
            out["pixels"] = self.pixels
        return out


@frozen(eq=False)
class Answer(Value):
    """The interpretation of a run's outputs.

    - `task`: one of `TASKS`
    - `said`: one sentence on how the outputs were read
    - `found`: the findings, highest score first
    - `classes`: the class of each element, int `[height, width]`, if the whole picture is divided into areas
    - `picture`: uint8 `[height, width, 3]`, if the model generates a picture
    """

    task: str
    said: str
    found: tuple[Found, ...] = ()
    classes: Array | None = None
    picture: Array | None = None


TASKS = ("classes", "detection", "segmentation", "keypoints", "image")
"""How outputs can be interpreted."""
