"""Outputs that cover the input picture: a class map, a mask, or another picture."""

from __future__ import annotations

import numpy as np

from onert.image import Layout
from onert.ir import Array

from .boxes import as_scores
from .found import Answer, Found
from .run_outputs import RunOutputs

_MOST_CLASSES = 256
_SMALLEST = 8
"""The fewest rows and columns of an output that covers a picture."""
_HALF = 0.5


def read_areas(outputs: RunOutputs) -> Answer | None:
    """The class of each pixel, from scores per class, class indices or a mask; None for other outputs.

    The output has the size of the input, or a whole fraction or multiple of it, with channels first or last.
    """
    at = _over(outputs)
    if at is None:
        return None
    array, name = outputs.arrays[at], outputs.infos[at].name
    scores, layout = _channels_last(array, outputs)
    if array.dtype.kind in "iu" and scores.shape[-1] == 1:
        return _of_classes(outputs, at, scores[..., 0].astype(np.int64), f"class indices, {name!r}")
    if scores.shape[-1] == 1:
        return _of_mask(outputs, at, scores[..., 0])
    if not 2 <= scores.shape[-1] <= _MOST_CLASSES:
        return None
    return _of_classes(
        outputs, at, np.argmax(scores, -1), f"scores of {scores.shape[-1]} classes, channels {layout}, {name!r}"
    )


def read_picture(outputs: RunOutputs) -> Answer | None:
    """A picture generated from the input: three channels of bytes or reals (0 to 1, -1 to 1, 0 to 255); None for
    others."""
    at = _over(outputs)
    if at is None:
        return None
    pixels, _ = _channels_last(outputs.arrays[at], outputs)
    if pixels.shape[-1] != 3:
        return None
    real = np.nan_to_num(pixels.astype(np.float64))
    low, high = float(real.min()), float(real.max())
    if low < -0.05 and low >= -1.5 and high <= 1.5:
        numbers, real = "-1 to 1", (real + 1) * 127.5
    elif high <= 1.5:
        numbers, real = "0 to 1", real * 255
    else:
        numbers = "0 to 255"
    picture = np.clip(np.rint(real), 0, 255).astype(np.uint8)
    said = (
        f"output {outputs.infos[at].name!r} {list(outputs.arrays[at].shape)} is read as a picture with values from "
        f"{numbers} (--task segmentation reads it as scores of 3 classes)"
    )
    return Answer("image", said, picture=picture)


def _over(outputs: RunOutputs) -> int | None:
    """The output that covers the picture; None unless there is exactly one."""
    if outputs.plane is None:
        return None
    fitting = [at for at, array in enumerate(outputs.arrays) if _layouts(array, outputs.plane)]
    return fitting[0] if len(fitting) == 1 else None


def _layouts(array: Array, plane: tuple[int, int]) -> list[tuple[Layout, tuple[int, int, int]]]:
    """The possible layouts of an array that covers a plane, each with its rows, columns and channels."""
    dims = array.shape[1:] if array.ndim == 4 and array.shape[0] == 1 else array.shape
    if len(dims) == 3 and dims[0] == 1 and _covers(dims[1:], plane):
        return [(Layout.NCHW, (dims[1], dims[2], 1))]
    if len(dims) == 2:
        dims = (*dims, 1)
    if len(dims) != 3:
        return []
    found = []
    if _covers(dims[:2], plane):
        found.append((Layout.NHWC, (dims[0], dims[1], dims[2])))
    if _covers(dims[1:], plane):
        found.append((Layout.NCHW, (dims[1], dims[2], dims[0])))
    return found


def _covers(dims: tuple[int, ...], plane: tuple[int, int]) -> bool:
    """Whether both sides are the same whole fraction or multiple of the input's (possibly of sides minus 1)."""
    rows, columns = dims
    if min(rows, columns) < min(_SMALLEST, *plane):
        return False
    if plane[0] % rows == 0 and plane[1] % columns == 0 and plane[0] // rows == plane[1] // columns:
        return True
    if rows % plane[0] == 0 and columns % plane[1] == 0 and rows // plane[0] == columns // plane[1]:
        return True
    return (rows - 1) * (plane[1] - 1) == (columns - 1) * (plane[0] - 1) and (plane[0] - 1) % (rows - 1) == 0


def _channels_last(array: Array, outputs: RunOutputs) -> tuple[Array, str]:
    assert outputs.plane is not None
    layout, (rows, columns, channels) = _layouts(array, outputs.plane)[0]
    if layout is Layout.NHWC:
        return array.reshape(rows, columns, channels), "last"
    return np.moveaxis(array.reshape(channels, rows, columns), 0, -1), "first"


def _of_classes(outputs: RunOutputs, at: int, classes: Array, what: str) -> Answer:
    numbers, counts = np.unique(classes, return_counts=True)
    labels = outputs.labels(at).names
    found = [
        Found(
            int(n),
            int(c) / classes.size,
            labels[n] if 0 <= n < len(labels) else "",
            outputs.infos[at].name,
            pixels=int(c),
        )
        for n, c in zip(numbers.tolist(), counts.tolist(), strict=True)
    ]
    found.sort(key=lambda one: -(one.pixels or 0))
    said = f"output {outputs.infos[at].name!r} {list(outputs.arrays[at].shape)} is read as areas of classes ({what})"
    return Answer("segmentation", said, tuple(found[: outputs.wanted.count]), classes)


def _of_mask(outputs: RunOutputs, at: int, values: Array) -> Answer:
    """The area where a mask reaches the lowest score, by default one half."""
    real, how = as_scores(values)
    least = outputs.wanted.score if outputs.wanted.score is not None else _HALF
    mask = real >= least
    labels = outputs.labels(at).names
    name = outputs.infos[at].name
    count = int(mask.sum())
    found = Found(1, count / mask.size, labels[0] if len(labels) == 1 else "", name, pixels=count)
    said = f"output {name!r} {list(outputs.arrays[at].shape)} is read as a mask{how}, of values of at least {least:g}"
    return Answer("segmentation", said, (found,), mask.astype(np.int64))
