"""Draw an answer onto its picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onert.ir import Array, ExecutionError
from onert.tools.answers import Answer

from .areas import draw_classes, draw_masks
from .boxes import draw_boxes, name_of
from .canvas import Canvas
from .palette import Color
from .skeletons import draw_points


def drawn(answer: Answer, pixels: Array) -> Any:
    """A Pillow image of the picture (uint8 `[height, width, 3]`) with the answer drawn onto it.

    Areas, masks, boxes and points are drawn on the picture; classes, and labels without room, are listed below it.
    """
    if answer.picture is not None:
        return Canvas.of(answer.picture).image
    canvas = Canvas.of(pixels)
    legend: list[tuple[Color | None, str]] = []
    if answer.classes is not None:
        legend.extend(draw_classes(canvas, answer.classes, answer.found))
    draw_masks(canvas, answer.found)
    draw_points(canvas, answer.found)
    legend.extend(draw_boxes(canvas, answer.found))
    if answer.task == "classes":
        legend.extend((None, f"{one.score:.3f}  {name_of(one)}") for one in answer.found)
    if not legend and not answer.found:
        legend.append((None, "nothing was found"))
    canvas.legend(legend)
    return canvas.image


def write_picture(image: Any, path: Path) -> None:
    """Write a Pillow image. Raises ExecutionError if that fails."""
    try:
        image.save(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ExecutionError(f"{path} cannot be written: {reason}") from error
