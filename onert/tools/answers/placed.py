"""Map answers from the input's plane to the original picture."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.ir import Array
from onert.tools.inputs.placing import Placement

from .found import Answer, Found


def in_picture(answer: Answer, placement: Placement) -> Answer:
    """The answer with boxes, points and areas relative to the picture instead of the plane."""
    found = tuple(_moved(one, placement) for one in answer.found)
    classes = None if answer.classes is None else cut(answer.classes, placement)
    if classes is not None and answer.classes is not None and classes.shape != answer.classes.shape:
        found = tuple(_counted(one, classes) for one in found)
    picture = None if answer.picture is None else cut(answer.picture, placement)
    return evolve(answer, found=found, classes=classes, picture=picture)


def _counted(one: Found, classes: Array) -> Found:
    count = int(np.count_nonzero(classes == one.index))
    return evolve(one, pixels=count, score=count / classes.size)


def _moved(one: Found, placement: Placement) -> Found:
    box = None if one.box is None else placement.box_in_picture(one.box)
    points = tuple((*placement.in_picture(y, x), score) for y, x, score in one.points)
    return evolve(one, box=box, points=points, mask=None if one.mask is None else cut(one.mask, placement))


def cut(over: Array, placement: Placement) -> Array:
    """Crop an output that covers the plane to the part that covers the picture."""
    top, bottom, left, right = placement.window
    rows, columns = over.shape[0] / placement.plane[0], over.shape[1] / placement.plane[1]
    start, stop = round(top * rows), max(round(bottom * rows), round(top * rows) + 1)
    first, last = round(left * columns), max(round(right * columns), round(left * columns) + 1)
    return over[start:stop, first:last]
