"""Write drawn pictures as the frames of a video."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from onert.ir import ExecutionError
from onert.tools.inputs.videos import av_library

USUAL_RATE = Fraction(25)
"""Frames per second if the rate is unknown."""
_MOST_RATE = 1000
_FORMAT = "yuv420p"
"""The pixel format that all players support. It subsamples colours, so sizes must be even."""


class Film:
    """A video written frame by frame, in the size of the first frame. Methods raise ExecutionError if writing fails."""

    def __init__(self, path: Path, rate: Fraction | None) -> None:
        self.path = path
        self.count = 0
        self._rate = rate if rate is not None and 0 < rate <= _MOST_RATE else USUAL_RATE
        self._container: Any = None
        self._stream: Any = None

    def add(self, image: Any) -> None:
        """Add a Pillow image as a frame. Other sizes are cropped or padded with white, at the bottom and right."""
        av = av_library()
        try:
            if self._container is None:
                self._open(av, image.width, image.height)
            pixels = np.full((self._stream.height, self._stream.width, 3), 255, np.uint8)
            drawn = np.asarray(image.convert("RGB"))[: pixels.shape[0], : pixels.shape[1]]
            pixels[: drawn.shape[0], : drawn.shape[1]] = drawn
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            self._container.mux(self._stream.encode(frame))
        except (av.FFmpegError, OSError, ValueError) as error:
            raise ExecutionError(f"{self.path} cannot be written: {_reason(error)}") from error
        self.count += 1

    def close(self) -> None:
        """Finish the video. Does nothing if it has no frames."""
        container, self._container = self._container, None
        if container is None:
            return
        av = av_library()
        try:
            try:
                container.mux(self._stream.encode())
            finally:
                container.close()
        except (av.FFmpegError, OSError, ValueError) as error:
            raise ExecutionError(f"{self.path} cannot be written: {_reason(error)}") from error

    def _open(self, av: Any, width: int, height: int) -> None:
        self.path.open("wb").close()  # reports an unwritable path with the system's reason
        self._container = av.open(str(self.path), "w")
        stream = self._container.add_stream(self._container.default_video_codec, rate=self._rate)
        stream.width, stream.height = width + width % 2, height + height % 2
        stream.pix_fmt = _FORMAT
        self._stream = stream


def _reason(error: Exception) -> object:
    return error.strerror if isinstance(error, OSError) and error.strerror else error
