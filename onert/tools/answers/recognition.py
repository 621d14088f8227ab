"""Choose the interpretation that fits the outputs of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from onert.ir import ExecutionError

from .classes import is_vector, read_classes
from .found import Answer
from .heads import read_heads
from .masks import read_areas, read_picture
from .poses import read_poses
from .postprocessed import read_lists, read_rows
from .queries import read_queries
from .run_outputs import RunOutputs

Reader = Callable[[RunOutputs], Answer | None]
_READERS: tuple[tuple[tuple[str, ...], Reader], ...] = (
    (("detection", "keypoints", "segmentation"), read_heads),
    (("keypoints",), read_poses),
    (("detection",), read_lists),
    (("detection",), read_rows),
    (("detection",), read_queries),
    (("image",), read_picture),
    (("segmentation",), read_areas),
)
"""Readers and the tasks that they can recognise, the most specific first."""


def recognise(outputs: RunOutputs, *, asked: bool) -> Answer | None:
    """Interpret the outputs; None if they are not recognised.

    `asked` is whether an option demands classes. Raises ExecutionError if the outputs cannot be read as the task given,
    or if classes are demanded and there are none.
    """
    task = outputs.wanted.task
    for tasks, reader in _READERS:
        if task is None or task in tasks:
            answer = reader(outputs)
            if answer is not None and task in (None, answer.task):
                return answer
    classes: Reader = partial(read_classes, asked=asked or task == "classes")
    answer = classes(outputs) if task in (None, "classes") else None
    if answer is None and (asked or task is not None):
        what = "a vector of class scores, which --topk and --labels need"
        if task not in (None, "classes"):
            what = f"suitable for --task {task}"
        raise ExecutionError(f"no output is {what}; the outputs are {outputs.named or 'none'}")
    return answer


def hint(outputs: RunOutputs) -> str:
    """An option that may help if nothing was recognised; empty if there is none."""
    vectors = [i.name for i, a in zip(outputs.infos, outputs.arrays, strict=True) if is_vector(i, a)]
    if len(vectors) == 1:
        return f"output {vectors[0]!r} may be class scores, but they are not probabilities; --task classes ranks them"
    return ""
