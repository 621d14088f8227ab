"""The best classes of an output, with their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onert.backend import TensorInfo
from onert.ir import Array, ExecutionError, dequantize


def read_labels(path: Path) -> list[str]:
    """Names, one a line."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ExecutionError(f"{path} cannot be read as a file of labels: {error}") from error


def top_classes(info: TensorInfo, scores: Array, count: int, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The classes with the highest scores, real numbers where the output is quantised.

    Labels are for the classes from the back: with one label fewer than classes, class 0 is the background.
    """
    real = scores if info.quantization is None else dequantize(scores, info.quantization)
    flat = real.reshape(-1)
    order = np.argsort(-flat.astype(np.float64), kind="stable")[:count]
    offset = len(flat) - len(labels) if len(flat) - len(labels) == 1 else 0
    found = []
    for index in order.tolist():
        at = index - offset
        label = labels[at] if 0 <= at < len(labels) else ("background" if labels and at == -1 else "")
        found.append({"class": index, "score": float(flat[index]), "label": label})
    return found
