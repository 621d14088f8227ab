"""Communication between a device's process and its host: shared memory for inputs and outputs, and messages."""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from onert.backend import HOST, Program, TensorInfo
from onert.ir import Array, BackendError
from onert.ir import shape as shapes

_LENGTH = struct.Struct("<I")
_MOST = 1 << 24
"""The most bytes of a message; messages contain no tensors."""
_MOST_FILES = 4


def file_of(name: str, nbytes: int) -> int:
    """Create a file in memory, filled with `nbytes` zeros (at least one), and return its descriptor."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, max(nbytes, 1))
    return fd


def mapped(fd: int) -> Array:
    """A file's bytes as shared memory, aligned to a page."""
    return np.frombuffer(mmap.mmap(fd, 0), np.uint8)


def area_bytes(program: Program) -> int:
    """The bytes of the memory for a program's inputs and outputs. Raises BackendError if one has a dynamic size."""
    for info in (*program.inputs, *program.outputs):
        if not shapes.is_static(info.shape) or info.dtype.is_handle:
            raise BackendError(
                f"{info.name!r} is a tensor of {info.type}, which cannot be in memory shared with another process, "
                "because its size is not known before the run"
            )
    return sum(_room(info) for info in (*program.inputs, *program.outputs))


def tensors(area: Array, program: Program) -> tuple[list[Array], list[Array]]:
    """A program's inputs and outputs as views of that memory, consecutive and aligned to cache lines."""
    found: list[Array] = []
    offset = 0
    for info in (*program.inputs, *program.outputs):
        found.append(HOST.view(area, offset, info.type))
        offset += _room(info)
    return found[: len(program.inputs)], found[len(program.inputs) :]


def _room(info: TensorInfo) -> int:
    return info.type.nbytes + -info.type.nbytes % HOST.alignment


class Channel:
    """Messages between two processes: JSON objects, optionally with open files."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, message: dict[str, Any], files: Sequence[int] = ()) -> None:
        """Send a message and open files. Raises OSError if the other end is gone."""
        body = json.dumps(message).encode()
        data = _LENGTH.pack(len(body)) + body
        if files:
            done = socket.send_fds(self._end, [data], list(files))
            data = data[done:]
        self._end.sendall(data)

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next message and the files sent with it. Raises EOFError if the other end is gone."""
        try:
            data, files, _, _ = socket.recv_fds(self._end, _LENGTH.size, _MOST_FILES)
            data += self._exactly(_LENGTH.size - len(data)) if data else b""
            if not data:
                raise EOFError("the other end is closed")
            (length,) = _LENGTH.unpack(data)
            if length > _MOST:
                raise EOFError(f"a message has {length} bytes, expected at most {_MOST}")
            found: dict[str, Any] = json.loads(self._exactly(length))
        except (OSError, ValueError) as error:
            raise EOFError(str(error)) from error
        return found, list(files)

    def _exactly(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            piece = self._end.recv(count - len(found))
            if not piece:
                raise EOFError("the other end is closed")
            found += piece
        return bytes(found)

    def close(self) -> None:
        """Close this end."""
        self._end.close()
