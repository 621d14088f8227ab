"""Interpret outputs as classes, detections, body points, areas or pictures."""

from .classes import top_classes
from .found import TASKS, Answer, Found
from .labels import Labels, read_labels
from .lines import answer_lines
from .placed import in_picture
from .recognise import hint, recognise
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
