"""Standard input as an input; its first bytes show what it contains."""

from __future__ import annotations

import sys

from onert.backend import TensorInfo
from onert.ir import ExecutionError

from .arrays import numpy_content, raw_content
from .images import from_picture, plane_of
from .input_values import InputValue, ReadSettings
from .pictures import decode
from .recordings import record
from .sounds import from_recording
from .texts import takes_text, text

NAME = "standard input"
MAX_PIPED = 1 << 28
"""The most bytes read from standard input."""
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"BM", b"GIF8", b"II*\0", b"MM\0*", b"P5", b"P6")


def piped(info: TensorInfo, reading: ReadSettings) -> InputValue:
    """Read an image, a .wav, a .npy, text (for an input of strings) or else raw elements from standard input."""
    content = read_piped()
    if takes_text(info):
        return text(content, NAME, info)
    if content.startswith(b"\x93NUMPY"):
        return InputValue(numpy_content(content, NAME), NAME)
    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return from_recording(record(content, NAME), info, reading)
    is_picture = content.startswith(_PICTURES) or (content.startswith(b"RIFF") and content[8:12] == b"WEBP")
    if is_picture and plane_of(info, reading.said.color) is not None:
        return from_picture(decode(content, NAME), info, reading)
    return InputValue(raw_content(content, NAME, info), NAME)


def read_piped() -> bytes:
    """All of standard input. Raises ExecutionError if it is a terminal, empty, or longer than MAX_PIPED."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ExecutionError("--input - reads standard input, which is a terminal; pipe a file into it")
    content = sys.stdin.buffer.read(MAX_PIPED + 1)
    if len(content) > MAX_PIPED:
        raise ExecutionError(f"standard input has more than {MAX_PIPED} bytes, expected at most that many")
    if not content:
        raise ExecutionError("standard input is empty")
    return content
