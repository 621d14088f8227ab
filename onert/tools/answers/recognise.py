"""Which of all readings suits the outputs of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from onert.ir import ExecutionError

from .classes import is_vector, read_classes
from .ends import Ends
from .found import Answer
from .heads import read_heads
from .masks import read_areas, read_picture
from .poses import read_poses
from .postprocessed import read_lists, read_rows
from .queries import read_queries

Reader = Callable[[Ends], Answer | None]
_READERS: tuple[tuple[tuple[str, ...], Reader], ...] = (
    (("detection", "keypoints", "segmentation"), read_heads),
    (("keypoints",), read_poses),
    (("detection",), read_lists),
    (("detection",), read_rows),
    (("detection",), read_queries),
    (("image",), read_picture),
    (("segmentation",), read_areas),
)
"""Readers and what they give, the most particular first."""


def recognise(ends: Ends, *, asked: bool) -> Answer | None:
    """What outputs say; None where nothing in them tells.

    `asked` is whether the user wants classes by an option. ExecutionError where outputs cannot be read as the task that
    was named, or where classes are wanted and there are none.
    """
    task = ends.wanted.task
    for tasks, reader in _READERS:
        if task is None or task in tasks:
            answer = reader(ends)
            if answer is not None and task in (None, answer.task):
                return answer
    classes: Reader = partial(read_classes, asked=asked or task == "classes")
    answer = classes(ends) if task in (None, "classes") else None
    if answer is None and (asked or task is not None):
        what = "one vector of classes, expected one with --topk or --labels"
        if task not in (None, "classes"):
            what = f"what --task {task} reads"
        raise ExecutionError(f"no output is {what}; the outputs are {ends.named or 'none'}")
    return answer


def hint(ends: Ends) -> str:
    """What the user may say where nothing was recognised; empty where nothing would help."""
    vectors = [i.name for i, a in zip(ends.infos, ends.arrays, strict=True) if is_vector(i, a)]
    if len(vectors) == 1:
        return (
            f"output {vectors[0]!r} may be scores of classes, but they are no probabilities; --task classes ranks them"
        )
    return ""
