"""What outputs mean to people: the best classes of a vector of scores, the detections of a detector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onert.backend import TensorInfo
from onert.ir import Array, ExecutionError, dequantize

SHOWN_SCORE = 0.3
"""Detections of a lower score are left out where nobody says how many are wanted."""


def read_labels(path: Path) -> list[str]:
    """Names, one a line; empty lines at the end are none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExecutionError(f"{path} cannot be read as a file of labels: {error}") from error
    labels = [line.strip() for line in text.rstrip().splitlines()]
    if not labels:
        raise ExecutionError(f"{path} has no labels")
    return labels


def read_answers(
    infos: Sequence[TensorInfo], outputs: Sequence[Array], count: int | None, labels: Sequence[str], place: str
) -> list[dict[str, Any]]:
    """The detections of a detector, else the best classes of each output that is one vector of classes.

    `count` is how many of each, None what suits them. ExecutionError where no output has classes, or labels do not fit
    in number; `place` is where these are from.
    """
    if is_detector(infos, outputs):
        return detections(infos, outputs, count, labels, place)
    vectors = [at for at, (info, array) in enumerate(zip(infos, outputs, strict=True)) if is_vector(info, array)]
    if not vectors:
        found = ", ".join(
            f"{info.name!r} {info.dtype.numpy}{list(a.shape)}" for info, a in zip(infos, outputs, strict=True)
        )
        raise ExecutionError(
            "no output is one vector of classes, expected one with --topk or --labels; the outputs are "
            f"{found or 'none'}"
        )
    fitting = [at for at in vectors if not labels or outputs[at].size - len(labels) in (0, 1)]
    if not fitting:
        sizes = " and ".join(f"output {infos[at].name!r} has {outputs[at].size} classes" for at in vectors)
        raise ExecutionError(
            f"{place} has {len(labels)} labels, but {sizes}; expected as many, or one fewer where the first class is "
            "the background"
        )
    return [found for at in fitting for found in top_classes(infos[at], outputs[at], count or 5, labels)]


def is_vector(info: TensorInfo, array: Array) -> bool:
    """Whether an output is scores of classes: real numbers, more than one, along a single dimension."""
    scores = info.dtype.is_float or array.dtype.kind == "f" or info.quantization is not None
    return scores and array.size > 1 and max(array.shape) == array.size


def is_detector(infos: Sequence[TensorInfo], outputs: Sequence[Array]) -> bool:
    """Whether outputs are those of `TFLite_Detection_PostProcess`: boxes, classes, scores, and how many there are."""
    if len(outputs) != 4 or any(array.dtype.kind != "f" for array in outputs):
        return False
    boxes, classes, scores, number = (array.shape for array in outputs)
    return len(boxes) == 3 and boxes[0] == 1 and boxes[2] == 4 and classes == scores == boxes[:2] and number == (1,)


def detections(
    infos: Sequence[TensorInfo], outputs: Sequence[Array], count: int | None, labels: Sequence[str], place: str
) -> list[dict[str, Any]]:
    """What was detected, the best first: class, score, and box from top left to bottom right in parts of the image.

    ExecutionError where a class has no label.
    """
    boxes, classes, scores = (np.asarray(array, np.float64)[0] for array in outputs[:3])
    there = min(max(int(outputs[3][0]), 0), len(scores))
    order = np.argsort(-scores[:there], kind="stable").tolist()
    chosen = [at for at in order if scores[at] >= SHOWN_SCORE] if count is None else order[:count]
    found = []
    for at in chosen:
        index = int(classes[at])
        if labels and not 0 <= index < len(labels):
            raise ExecutionError(f"{place} has {len(labels)} labels, but class {index} was detected")
        found.append(
            {
                "class": index,
                "score": float(scores[at]),
                "label": labels[index] if labels else "",
                "output": infos[0].name,
                "box": [round(side, 4) for side in boxes[at].tolist()],
            }
        )
    return found


def top_classes(info: TensorInfo, scores: Array, count: int, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The classes with the highest scores, real numbers where the output is quantised.

    Labels are for the classes from the back: with one label fewer than classes, class 0 is the background.
    """
    real = scores if info.quantization is None or scores.dtype.kind == "f" else dequantize(scores, info.quantization)
    flat = real.reshape(-1)
    order = np.argsort(-flat.astype(np.float64), kind="stable")[:count]
    offset = len(flat) - len(labels) if len(flat) - len(labels) == 1 else 0
    found = []
    for index in order.tolist():
        at = index - offset
        label = labels[at] if 0 <= at < len(labels) else ("background" if labels and at == -1 else "")
        found.append({"class": index, "score": float(flat[index]), "label": label, "output": info.name})
    return found


def answer_lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """Answers as lines, under the output's name where there are several."""
    lines: list[str] = []
    several = len({item["output"] for item in found}) > 1
    place = 0
    for at, item in enumerate(found):
        place = 1 if at and found[at - 1]["output"] != item["output"] else place + 1
        if several and place == 1:
            lines.append(f"output {item['output']!r}:")
        box = f"  box {' '.join(f'{side:.3f}' for side in item['box'])}" if "box" in item else ""
        lines.append(f"{place:>3}. {item['score']:.4f}  {item['class']:>4}  {item['label']}".rstrip() + box)
    return lines
