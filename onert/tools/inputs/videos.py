"""The frames of videos as pictures."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from onert.ir import ExecutionError

from .pictures import MAX_PIXELS, Picture


def frames(path: Path) -> Iterator[Picture]:
    """A video's frames, decoded lazily one at a time, and rotated as the video says. Raises ExecutionError if PyAV is
    missing, the file is not a video, or frames have more than MAX_PIXELS pixels."""
    av = av_library()
    count = 0
    try:
        with av.open(str(path), metadata_errors="replace") as container:
            if not container.streams.video:
                raise ExecutionError(f"{path} has no pictures, expected a video")
            stream = container.streams.video[0]
            if stream.width * stream.height > MAX_PIXELS:
                raise ExecutionError(
                    f"{path} has frames of {stream.width} x {stream.height} pixels, expected at most {MAX_PIXELS}"
                )
            for count, frame in enumerate(container.decode(stream), 1):
                yield Picture(f"{path} frame {count}", _pixels(frame), _said(frame))
    except (av.FFmpegError, OSError, ValueError) as error:
        if count == 0:
            raise ExecutionError(f"{path} cannot be read as a video: {error}") from error
        raise ExecutionError(f"{path} cannot be read after frame {count}: {error}") from error
    if count == 0:
        raise ExecutionError(f"{path} has no frame that can be decoded")


def frame_count(path: Path) -> int | None:
    """The number of frames that the file declares, None if it declares none."""
    av = av_library()
    try:
        with av.open(str(path), metadata_errors="replace") as container:
            return int(container.streams.video[0].frames) or None if container.streams.video else None
    except (av.FFmpegError, OSError, ValueError) as error:
        raise ExecutionError(f"{path} cannot be read as a video: {error}") from error


def frame_rate(path: Path) -> Fraction | None:
    """The frame rate in frames per second that the file declares, None if it declares none."""
    av = av_library()
    try:
        with av.open(str(path), metadata_errors="replace") as container:
            rate = container.streams.video[0].average_rate if container.streams.video else None
            return Fraction(rate) if rate else None
    except (av.FFmpegError, OSError, ValueError) as error:
        raise ExecutionError(f"{path} cannot be read as a video: {error}") from error


def av_library() -> Any:
    """PyAV. Raises ExecutionError if it is not installed."""
    try:
        import av  # noqa: PLC0415 # heavy and optional
    except ImportError as error:
        raise ExecutionError("videos need PyAV; pip install 'onert-toolkit[video]'") from error
    return av


def _pixels(frame: Any) -> Any:
    """Red, green, blue and opacity, upright."""
    pixels = frame.to_ndarray(format="rgba")
    return np.ascontiguousarray(np.rot90(pixels, _quarters(frame)))


def _quarters(frame: Any) -> int:
    """The number of counter-clockwise quarter turns that make a frame upright, as written by phones."""
    return round(getattr(frame, "rotation", 0) / 90) % 4


def _said(frame: Any) -> tuple[str, ...]:
    turned = ("rotated as the video says",) if _quarters(frame) else ()
    return (f"at {frame.time:.2f} s", *turned) if frame.time is not None else turned
