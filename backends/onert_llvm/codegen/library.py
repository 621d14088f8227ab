"""Shipped code: kernels that many models need, generated before this package was installed, one library per target.

A library is a file beside this package (`onert_llvm_library/TARGET.kernels`), so that a first run compiles next to
nothing. It holds object files under the keys that they have in the user's cache, less the LLVM version:
- magic, 16 bytes; the digest of the sources that made it, 32 bytes; two 8-byte numbers: the number of objects, and the
  CRC-32 of the rows
- for each object a row, sorted by key: its key, 32 bytes; two 8-byte numbers: its offset in the file and its size; its
  CRC-32, 8 bytes
- the objects

A library made by other sources is not used, nor is one that someone else may have written: its owner must be the owner
of this very file, and nobody else may have write access. Anyone who could write to it can write to this package too. As
in the cache, the checksums detect damage and are not signatures. Missing or damaged code is generated.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path

from onert.backend.cache import Cache

from .fingerprint import own_sources

MAGIC = b"onert kernels 1\0"
_HEAD = struct.Struct("<16s32sQQ")
_ROW = struct.Struct("<32sQQQ")
_MOST = 1 << 20
"""The most objects in a library, and bytes of one object: larger numbers mean damage."""

FOLDER = Path(__file__).parents[2] / "onert_llvm_library"
"""The folder of libraries, all optional."""


class Library:
    """The intact objects of one target's library."""

    def __init__(self, descriptor: int, rows: bytes) -> None:
        self._descriptor = descriptor
        self._rows = {name: place for name, *place in _ROW.iter_unpack(rows)}

    def __del__(self) -> None:
        os.close(self._descriptor)

    def __len__(self) -> int:
        return len(self._rows)

    def load(self, key: str) -> bytes | None:
        """The object of a key; None if it is missing or damaged."""
        start, size, crc = self._rows.get(bytes.fromhex(key), (0, 0, 0))
        if not 0 < size <= _MOST:
            return None
        try:
            found = os.pread(self._descriptor, size, start)
        except (OSError, OverflowError):
            return None
        return found if len(found) == size and zlib.crc32(found) == crc else None


def key(*parts: bytes | str) -> str:
    """An object's key in a library, from everything that determines it except this package's sources (see the head)."""
    return Cache.key("library", *parts)


@cache
def library(target: str) -> Library | None:
    """The library of a target; None if there is none that can be used."""
    path = FOLDER / f"{target}.kernels"
    return open_library(path, own_sources()) if path.exists() else None  # digesting all sources takes ten milliseconds


def open_library(path: Path, sources: str) -> Library | None:
    """The library in a file, which these sources must have made; None if it cannot be used."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        mine = status.st_uid == os.stat(__file__).st_uid and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        rows = _rows(descriptor, bytes.fromhex(sources)) if mine and stat.S_ISREG(status.st_mode) else None
    except (OSError, struct.error):
        rows = None
    if rows is None:
        os.close(descriptor)
        return None
    return Library(descriptor, rows)


def _rows(descriptor: int, sources: bytes) -> bytes | None:
    """The rows of a library; None if it is damaged or was made by other sources."""
    magic, made_by, count, crc = _HEAD.unpack(os.pread(descriptor, _HEAD.size, 0))
    if magic != MAGIC or made_by != sources or count > _MOST:
        return None
    rows = os.pread(descriptor, count * _ROW.size, _HEAD.size)
    return rows if len(rows) == count * _ROW.size and zlib.crc32(rows) == crc else None


def library_bytes(objects: Mapping[str, bytes], sources: str) -> bytes:
    """The content of a library of these objects by key, made by these sources."""
    listed = sorted(objects.items())
    starts = accumulate(map(len, (content for _, content in listed)), initial=_HEAD.size + _ROW.size * len(listed))
    rows = b"".join(
        _ROW.pack(bytes.fromhex(name), start, len(content), zlib.crc32(content))
        for (name, content), start in zip(listed, starts, strict=False)
    )
    head = _HEAD.pack(MAGIC, bytes.fromhex(sources), len(listed), zlib.crc32(rows))
    return b"".join((head, rows, *(content for _, content in listed)))
