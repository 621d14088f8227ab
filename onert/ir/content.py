"""The content of model files, read into this process's own memory.

A model file is never mapped: another process could truncate a mapped file, which ends the reader, or write to it, which
changes the weights. Content is read into a private copy from a file that stays open, so replacing or removing the file
does not change what was loaded.

A file of more than `READ_AT_ONCE` bytes whose content was seen before need not be read to be recognised. Its digest is
either supplied by a caller that caches digests under `Content.state` (`recognise`), or computed while the file is
streamed. If its content is needed later, it is read then, and refused unless it still has that digest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

import numpy as np

from onert.ir.process.cached import cached
from onert.ir.process.digests import digest

from .errors import ModelError
from .subgraph import Subgraphs

Models = tuple[Subgraphs, ...]

READ_AT_ONCE = 1 << 20
"""Files of at most this many bytes are read when they are opened."""
_ENDS = 1 << 12
_PIECE = 1 << 18
_LINE = 64


def room(size: int) -> memoryview:
    """Uninitialised memory of `size` bytes that starts on a cache line. Raises MemoryError if there is too little."""
    raw = np.empty(size + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size].data


def read_into(descriptor: int, target: memoryview, offset: int = 0) -> int:
    """Fill `target` from an open file; returns the number of bytes read."""
    done = 0
    while done < len(target):
        count = os.preadv(descriptor, [target[done:]], offset + done)
        if count == 0:
            break
        done += count
    return done


class Source(Protocol):
    """Where the bytes of a model come from."""

    @property
    def size(self) -> int: ...

    def part(self, start: int, size: int) -> bytes:
        """`size` bytes from `start`, or fewer at the end of the content."""

    @property
    def digest(self) -> str:
        """A digest of all bytes."""

    @property
    def state(self) -> tuple[int, ...] | None:
        """What identifies the state of a file: its device, inode, size and times, the time of the last change last.
        None for bytes in memory."""

    def recognise(self, digest: str) -> None:
        """Use `digest` as the digest of all bytes, without reading them."""

    def range(self, start: int, size: int) -> memoryview | None:
        """`size` bytes from `start`, in memory that no other process can change; None if there are fewer."""

    @property
    def data(self) -> memoryview:
        """All bytes, in memory that no other process can change. Raises ModelError if they do not match `digest`."""


class InMemory:
    """Content that is in memory."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = memoryview(data).toreadonly()

    @property
    def size(self) -> int:
        return len(self.data)

    def part(self, start: int, size: int) -> bytes:
        return bytes(self.data[start : start + size])

    def range(self, start: int, size: int) -> memoryview | None:
        return self.data[start : start + size] if 0 <= start <= start + size <= self.size else None

    state = None

    @cached
    def digest(self) -> str:
        return digest(self.data).hexdigest()

    def recognise(self, digest: str) -> None:
        """Does nothing: the bytes are in memory already."""


class File:
    """An open file, read when its bytes are needed."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self.size = size

    def __del__(self) -> None:
        os.close(self._descriptor)

    def part(self, start: int, size: int) -> bytes:
        size = max(0, min(size, self.size - start))
        try:
            found = os.pread(self._descriptor, size, start)
            while len(found) < size and (more := os.pread(self._descriptor, size - len(found), start + len(found))):
                found += more
        except OSError as error:
            raise ModelError(f"cannot be read: {error.strerror}") from error
        return found

    def range(self, start: int, size: int) -> memoryview | None:
        if not 0 <= start <= start + size <= self.size:
            return None
        if "data" in self.__dict__:
            return self.data[start : start + size]
        target = room(size)
        return target.toreadonly() if self._fill(target, start) == size else None

    @cached
    def digest(self) -> str:
        found, piece = digest(), memoryview(bytearray(min(_PIECE, self.size)))
        for start in range(0, self.size, _PIECE):
            found.update(piece[: self._fill(piece[: self.size - start], start)])
        return found.hexdigest()

    @property
    def state(self) -> tuple[int, ...]:
        s = os.fstat(self._descriptor)
        return (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)

    def recognise(self, digest: str) -> None:
        self.__dict__.setdefault("digest", digest)

    @cached
    def data(self) -> memoryview:
        try:
            target = room(self.size)
        except MemoryError as error:
            raise ModelError(f"the file has {self.size} bytes, which do not fit in memory") from error
        if self._fill(target, 0) < self.size:
            raise ModelError(_CHANGED)
        if "digest" in self.__dict__ and digest(target).hexdigest() != self.digest:
            raise ModelError(_CHANGED)
        return target.toreadonly()

    def _fill(self, target: memoryview, start: int) -> int:
        try:
            return read_into(self._descriptor, target, start)
        except OSError as error:
            raise ModelError(f"cannot be read: {error.strerror}") from error


_CHANGED = "the file was written to after it was loaded; load it again"


def opened(descriptor: int) -> Source:
    """The content of an open file, which is closed when nothing refers to the content any more."""
    file = File(descriptor, os.fstat(descriptor).st_size)
    return InMemory(file.data) if file.size <= READ_AT_ONCE else file


class Content:
    """The whole content of a model file, and the models in it, which are parsed on first use.

    The content alone determines the models: contents with equal digests have equal models. `preparation` is the time in
    seconds that was needed before the models could be compiled, a part of the cost of compiling them again. `known`
    says whether equal content was compiled before; None if that was not looked up. `last_program` is what the cache
    recorded about the program that it stored last for this content.
    """

    preparation = 0.0
    known: bool | None = None
    last_program = b""

    def __init__(self, source: Source, read: Callable[[memoryview], Models]) -> None:
        self._source = source
        self._read = read

    @cached
    def models(self) -> Models:
        """The models. Raises ModelError if the content is malformed, or does not match its digest."""
        return self._read(self._source.data)

    @property
    def digest(self) -> str:
        """A digest of all bytes."""
        return self._source.digest

    @property
    def state(self) -> tuple[int, ...] | None:
        """What identifies the state of an open file (`Source.state`)."""
        return self._source.state

    def recognise(self, digest: str) -> None:
        """Use `digest` as the digest of all bytes."""
        self._source.recognise(digest)

    @property
    def data(self) -> memoryview:
        """All bytes."""
        return self._source.data

    def range(self, start: int, size: int) -> memoryview | None:
        """`size` bytes from `start`, which are not compared with the digest; None if there are fewer."""
        return self._source.range(start, size)

    @property
    def outline(self) -> str:
        """The size and a digest of the first and last bytes: differs for most different contents."""
        size = self._source.size
        ends = digest(self._source.part(0, _ENDS))
        ends.update(self._source.part(max(size - _ENDS, 0), _ENDS))
        return f"{size} {ends.hexdigest()}"

    def __eq__(self, other: object) -> bool:
        return self.models == (other.models if isinstance(other, Content) else other)

    def __hash__(self) -> int:
        return hash(self.models)

    def __repr__(self) -> str:
        return repr(self.models)
