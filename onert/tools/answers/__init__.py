"""Interpret outputs as classes, detections, body points, areas or pictures."""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .found import TASKS, Answer, Found

if TYPE_CHECKING:
    from .classes import top_classes
    from .labels import Labels, read_labels
    from .lines import answer_lines
    from .placed import in_picture
    from .recognition import hint, recognise
    from .run_outputs import RunOutputs, Wanted, real_outputs

__all__ = [
    "TASKS",
    "Answer",
    "Found",
    "Labels",
    "RunOutputs",
    "Wanted",
    "answer_lines",
    "hint",
    "in_picture",
    "read_labels",
    "real_outputs",
    "recognise",
    "top_classes",
]

__getattr__ = later(
    __name__,
    {
        "answer_lines": "onert.tools.answers.lines",
        "in_picture": "onert.tools.answers.placed",
        "top_classes": "onert.tools.answers.classes",
        **dict.fromkeys(("Labels", "read_labels"), "onert.tools.answers.labels"),
        **dict.fromkeys(("hint", "recognise"), "onert.tools.answers.recognition"),
        **dict.fromkeys(("RunOutputs", "Wanted", "real_outputs"), "onert.tools.answers.run_outputs"),
    },
)
