"""Read input files according to their suffixes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onert.backend import TensorInfo
from onert.ir import ExecutionError

from .arrays import numpy_file, raw
from .folders import files_in
from .images import from_picture, image
from .input_values import InputValue, ReadSettings, Stream
from .piped import piped
from .recordings import record
from .sounds import piece_count, seconds, sound, windows
from .suffixes import ARRAYS, IMAGES, PIPED, SOUNDS, TEXTS, VIDEOS
from .texts import MAX_TEXT, takes_text, text
from .videos import frame_count, frame_rate, frames

KINDS = IMAGES | SOUNDS | ARRAYS | TEXTS
"""Suffixes of the files in a folder that are read."""


def from_file(path: Path, info: TensorInfo, reading: ReadSettings) -> InputValue:
    """Read an input from a .npy, image, sound, text, or file of raw elements. Raises ExecutionError if it does not
    fit."""
    _require_file(path, info)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        raise ExecutionError(f"{path} holds several named arrays, expected one array; use --load for such a file")
    if takes_text(info) and suffix not in ARRAYS:
        if path.stat().st_size > MAX_TEXT:
            raise ExecutionError(f"{path} has {path.stat().st_size} bytes, expected text of at most {MAX_TEXT}")
        return text(path.read_bytes(), str(path), info)
    if suffix in IMAGES:
        return image(path, info, reading)
    if suffix in SOUNDS:
        return sound(path, info, reading)
    return InputValue(numpy_file(path) if suffix in ARRAYS else raw(path, info), str(path))


def stream(paths: Sequence[str], info: TensorInfo, reading: ReadSettings) -> Stream:
    """The values of an input from files, folders, videos and standard input (`-`), one after another.

    A sound that is longer than the input is cut into pieces unless its start is given. Raises ExecutionError at once
    for a missing file; for data that does not fit, the iterator raises it when it gets there.
    """
    found = [_one(path, info, reading) for path in paths]
    if len(found) == 1:
        return found[0]
    counts = [each.count for each in found]
    total = None if None in counts else sum(c for c in counts if c is not None)
    return Stream((given for each in found for given in each.items), total)


def _one(path: str, info: TensorInfo, reading: ReadSettings) -> Stream:
    if path == PIPED:
        return Stream(iter([piped(info, reading)]))
    place = Path(path)
    if place.is_dir():
        files = files_in(place, KINDS)
        return Stream((from_file(file, info, reading) for file in files), len(files))
    _require_file(place, info)
    suffix = place.suffix.lower()
    if suffix in VIDEOS:
        pictures = (from_picture(picture, info, reading) for picture in frames(place))
        return Stream(pictures, frame_count(place), continuous=True, rate=frame_rate(place))
    if suffix in SOUNDS and not reading.start and not takes_text(info):
        recording = record(place, path)
        length = seconds(recording, info, reading)
        there = len(recording.samples) / recording.rate
        if length is not None and there > length:
            count = piece_count(recording, length)
            return Stream(windows(recording, info, reading), count, pieces=True, continuous=True)
    return Stream(iter([from_file(place, info, reading)]))


def _require_file(path: Path, info: TensorInfo) -> None:
    if not path.is_file():
        what = " but a pipe; redirect it to --input -" if path.is_fifo() else ""
        raise ExecutionError(f"{path} for input {info.name!r} is not a file{what}")
