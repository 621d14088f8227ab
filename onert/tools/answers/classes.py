"""The best classes of a vector of scores."""

from __future__ import annotations

import numpy as np

from onert.backend import TensorInfo
from onert.frontend.metadata.model_metadata import Calibration
from onert.ir import Array, ExecutionError

from .found import Answer, Found
from .labels import Labels
from .run_outputs import RunOutputs

_SHOWN = 5
_SUM = (0.8, 1.2)
"""Bounds of the sum of probabilities, which are rounded if the output is quantised."""


def is_vector(info: TensorInfo, array: Array) -> bool:
    """Whether an output could be scores of classes: several real numbers along a single dimension."""
    scores = info.dtype.is_float or array.dtype.kind == "f" or info.quantization is not None
    return scores and array.size > 1 and max(array.shape) == array.size


def read_classes(outputs: RunOutputs, *, asked: bool) -> Answer | None:
    """The best classes of each output that is a vector of scores; None if there is none.

    Unless the user `asked` for classes, a vector counts only if the number of labels fits or its elements are
    probabilities. Raises ExecutionError if the number of the user's labels fits no vector.
    """
    vectors = [at for at, (info, a) in enumerate(zip(outputs.infos, outputs.arrays, strict=True)) if is_vector(info, a)]
    given = outputs.wanted.labels
    fitting = [at for at in vectors if not given.names or _fits(outputs.arrays[at].size, given)]
    if vectors and not fitting:
        sizes = " and ".join(
            f"output {outputs.infos[at].name!r} has {outputs.arrays[at].size} classes" for at in vectors
        )
        raise ExecutionError(
            f"{given.place} has {len(given.names)} labels, but {sizes}; expected as many labels as classes, or one "
            "fewer if the first class is the background"
        )
    chosen = [at for at in fitting if asked or _labelled(outputs, at) or _is_probabilities(outputs.arrays[at])]
    if not chosen:
        return None
    found: list[Found] = []
    said = []
    for at in chosen:
        info, scores = outputs.infos[at], outputs.arrays[at]
        labels = outputs.labels(at)
        labels = labels if _fits(scores.size, labels) else Labels()
        calibration = outputs.metadata.output(at).calibration
        how = ""
        if calibration is not None:
            scores = calibrated(scores, calibration)
            how = ", calibrated as the model's metadata says"
        least = outputs.wanted.score if outputs.wanted.score is not None else outputs.metadata.output(at).threshold
        best = top_classes(info, scores, outputs.wanted.count or _SHOWN, labels)
        found.extend(one for one in best if least is None or one.score >= least)
        said.append(f"output {info.name!r} is read as the scores of {scores.size} classes{how}")
    return Answer("classes", "; ".join(said), tuple(found))


def _fits(size: int, labels: Labels) -> bool:
    return size - len(labels.names) in (0, 1)


def _labelled(outputs: RunOutputs, at: int) -> bool:
    labels = outputs.labels(at)
    return bool(labels.names) and _fits(outputs.arrays[at].size, labels)


def _is_probabilities(scores: Array) -> bool:
    """Whether all scores lie between 0 and 1 and they add up to about 1."""
    real = scores.astype(np.float64)
    return bool(((real >= 0) & (real <= 1)).all() and _SUM[0] <= real.sum() <= _SUM[1])


def top_classes(info: TensorInfo, scores: Array, count: int, labels: Labels) -> list[Found]:
    """The classes with the highest scores; equal scores keep their order. `scores` are real numbers.

    If there is one label fewer than classes, class 0 is the background.
    """
    flat = scores.reshape(-1)
    order = np.argsort(-flat.astype(np.float64), kind="stable")[:count]
    names = labels.names
    offset = 1 if len(flat) - len(names) == 1 else 0
    found = []
    for index in order.tolist():
        at = index - offset
        label = names[at] if 0 <= at < len(names) else ("background" if names and at == -1 else "")
        found.append(Found(index, float(flat[index]), label, info.name))
    return found


def calibrated(scores: Array, calibration: Calibration) -> Array:
    """Scores calibrated as the metadata says (`Calibration`). Classes are the last dimension."""
    flat = scores.astype(np.float64)
    out = np.full(flat.shape, calibration.default)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        moved = flat
        if calibration.transformation == "log":
            moved = np.log(flat)
        elif calibration.transformation == "inverse_logistic":
            moved = np.log(flat) - np.log1p(-flat)
        for index, row in enumerate(calibration.rows[: flat.shape[-1]]):
            if row is not None:
                scale, slope, offset, lowest = row
                value = scale / (1 + np.exp(-(slope * moved[..., index] + offset)))
                counts = np.isfinite(value) & (flat[..., index] >= (-np.inf if lowest is None else lowest))
                out[..., index] = np.where(counts, value, calibration.default)
    return out
