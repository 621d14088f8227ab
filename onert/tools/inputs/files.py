"""One input from a file of any kind that is read."""

from __future__ import annotations

from pathlib import Path

from onert.backend import TensorInfo
from onert.ir import ExecutionError

from .arrays import numpy_file, raw
from .given import Given, Reading
from .images import IMAGES, image
from .sounds import SOUNDS, sound


def from_file(path: Path, info: TensorInfo, reading: Reading) -> Given:
    """One input from a file: .npy, an image, a .wav, or raw elements. ExecutionError if it does not fit."""
    if not path.is_file():
        raise ExecutionError(f"{path} for input {info.name!r} is no file")
    suffix = path.suffix.lower()
    if suffix in IMAGES:
        return image(path, info, reading)
    if suffix in SOUNDS:
        return sound(path, info, reading)
    return Given(numpy_file(path) if suffix == ".npy" else raw(path, info), str(path))
