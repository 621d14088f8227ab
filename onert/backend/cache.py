"""A cache of compiled programs, code and packed weights on disk, keyed by content.

Each entry is one file: magic, lengths of payload and label, CRC-32 of both, payload at a 64-byte boundary, and a label
for people: what kind of entry it is, its name, and options, with tabs between. An entry is written to a temporary name
and renamed, so that a reader sees all of it or nothing; one that is cut, changed or foreign is ignored and removed. Any
number of processes may use one directory at once: the worst that a race costs is work done twice.
An entry is read into memory of this process, not mapped, and checked there: whoever truncates or writes to its file
later changes nothing.

Entries hold machine code, so the directory must be the user's own: it is made for the user alone, and one that belongs
to another or that others may write to is not used, nor is such a file. The checksum finds damage; it is no signature,
for who can write to the directory can write to the user's programs as well.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import time
import zlib
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path

from attrs import frozen

from onert.ir.content import read_into, room
from onert.ir.process import imports
from onert.ir.process.digests import digest
from onert.ir.value import Value

MAGIC = b"onert cache 4\n\0\0"
HEADER = 64
DEFAULT_LIMIT = 512 << 20
_LIMITS = "limits"
"""The file of a directory's limits."""
_FIELDS = struct.Struct("<QII")
_LONGEST_LABEL = 1 << 12
_KEPT_AFTER_EVICTION = 0.8  # leave room, so that not every store evicts
_SMALL, _COUNTED = 256, 16
"""Of the entries under a 256th of the limit, one in 16 has the directory counted: that costs more the more is there."""
_UNFINISHED = ".new-"
_ABANDONED = 3600.0
"""Seconds after which no writer is still at a file."""


def default_directory(environment: Mapping[str, str]) -> Path:
    """`ONERT_CACHE_DIR`, else `onert` in the user's cache directory (XDG base directory specification)."""
    if chosen := environment.get("ONERT_CACHE_DIR"):
        return Path(chosen)
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "onert"


def sources(package: Path) -> str:
    """A digest of the names and contents of all files below a folder but Python's own caches.

    OSError if the folder cannot be read.
    """
    paths, _ = _files(str(package))
    return _digest_of({os.path.relpath(path, package).replace(os.sep, "/"): _row(_content(path)) for path in paths})


def recorded(package: Path, distribution: str) -> str:
    """What `sources` gives, taken from the installer's record where there is one, so that only that is read."""
    inside, found = f"{package.name}/", {}
    for record in _records(package, distribution):
        for line in record.read_text("utf-8", "surrogateescape").splitlines():
            name, _, row = line.partition(",")
            if name.startswith(inside) and row.startswith(_ALGORITHM) and "/__pycache__/" not in name:
                found[name[len(inside) :]] = row
    return _digest_of(found) if found else sources(package)


_ALGORITHM = "sha256="
"""How digests begin in records of installed files (PyPA's "Recording installed projects")."""


def _row(content: bytes) -> str:
    """What a record says of a file, behind its name: its digest in URL-safe base 64, and its size in bytes."""
    text = b2a_base64(imports.module("hashlib").sha256(content).digest(), newline=False).decode().rstrip("=")
    return f"{_ALGORITHM}{text.replace('+', '-').replace('/', '_')},{len(content)}"


def _digest_of(rows: Mapping[str, str]) -> str:
    text = "\n".join(f"{name},{rows[name]}" for name in sorted(rows))
    return digest(text.encode(errors="surrogateescape")).hexdigest()


_SETTLED = 2_000_000_000
"""Nanoseconds after which a change gets another time than one before it, in every file system."""

_STATE = 5
"""Numbers that the system says of a file and that change with each change of it."""


def is_settled(changed: int) -> bool:
    """Whether a later change would have another time than one at `changed`, in nanoseconds since the epoch."""
    return changed < time.time_ns() - _SETTLED


def _files(folder: str) -> tuple[list[str], list[int]]:
    """The files below a folder: paths, and of each what changes with each change, the time of the last one at the end.

    Every start looks at some eight hundred files: numbers in one list take half of the time that a tuple for each does.
    """
    paths: list[str] = []
    states: list[int] = []
    folders = [folder]
    for each in folders:
        for item in sorted(os.scandir(each), key=_NAME):
            if item.is_dir():
                if item.name != "__pycache__":
                    folders.append(item.path)
            else:
                s = item.stat()
                paths.append(item.path)
                states += (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
    return paths, states


_NAME = attrgetter("name")


def _content(path: str) -> bytes:
    """All of a file, in a third of the time that `Path` and a buffered file take: a first run reads hundreds."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        return b"".join(iter(lambda: os.read(descriptor, _PIECE), b""))
    finally:
        os.close(descriptor)


_PIECE = 1 << 16


def installed(package: Path, distribution: str) -> str:
    """Names the version of a distribution that a package is installed by, and the digests of its files.

    Both are in the installer's record beside the package; where there is none, as for a package that is worked on, the
    files themselves are looked at.
    """
    found = (f"{r.parent.name} {digest(r.read_bytes()).hexdigest()}" for r in _records(package, distribution))
    return " ".join(sorted(found)) or worked_on(package)


def worked_on(package: Path) -> str:
    """Another text after every change of a file below a folder.

    To read all files takes ten milliseconds, so it is what the system says of each: inode, size, and the times of the
    last change of content and of state. The latter nobody can set. Where a file was changed so recently that another
    change could bear the same time, it is their content. OSError if the folder cannot be read.
    """
    paths, states = _files(str(package))
    if not is_settled(max(states[_STATE - 1 :: _STATE], default=0)):
        return sources(package)
    return Cache.key("states", os.fsencode("\0".join(paths)), repr(states))


def _records(package: Path, distribution: str) -> list[Path]:
    """The records of what a distribution installed beside a package."""
    beside = os.listdir(package.parent)
    named = (name for name in beside if name.startswith(f"{distribution}-") and name.endswith(".dist-info"))
    return [record for name in named if (record := package.parent / name / "RECORD").is_file()]


DISTRIBUTION = "onert_toolkit"
"""What this package and its own backends are installed by."""


def _own(status: os.stat_result) -> bool:
    """Whether a directory or a file is this user's, and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _header(payload: Iterable[bytes | memoryview], label: bytes | memoryview) -> bytes:
    length = checksum = 0
    for piece in payload:
        length += len(piece)
        checksum = zlib.crc32(piece, checksum)
    return (MAGIC + _FIELDS.pack(length, zlib.crc32(label, checksum), len(label))).ljust(HEADER, b"\0")


def _read(path: Path) -> memoryview:
    """A copy of a file of this user's, as much as there is of it; OSError if it is not that."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not (_own(status) and stat.S_ISREG(status.st_mode)):
            raise PermissionError(f"{path} is not a file that only its user may write to")
        target = room(status.st_size)
        return target[: read_into(descriptor, target)].toreadonly()
    finally:
        os.close(descriptor)


def _write(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """A new file that only this user may read; OSError if it is there already."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for piece in pieces:
            file.write(piece)


@frozen
class Entry(Value):
    """A file in the cache: its key, its size in bytes and when it was last used (seconds since the epoch)."""

    key: str
    size: int
    used: float


@frozen
class Limits(Value):
    """How many bytes a directory's entries may take together, and for how many seconds one may lie unused.

    None for `size` is DEFAULT_LIMIT, for `age` any time.
    """

    size: int | None = None
    age: float | None = None


@frozen
class Cache(Value):
    """Entries in a directory, at most `limit` bytes and for a while a sixteenth more: the longest unused go first.

    Where `limit` is None it is that of the directory (`limits`).
    """

    directory: Path
    limit: int | None = None

    @staticmethod
    def key(*parts: bytes | memoryview | str) -> str:
        """A key of everything that the content depends on; parts are delimited, so that they cannot run together."""
        found = digest()
        for part in parts:
            raw = part.encode() if isinstance(part, str) else part
            found.update(len(raw).to_bytes(8, "little"))
            found.update(raw)
        return found.hexdigest()

    def load(self, key: str) -> memoryview | None:
        """The payload, a private copy that is read-only; None if it is not there or not whole."""
        path = self._path(key)
        try:
            if not _own(os.stat(self.directory)):
                return None
            found = _read(path)
        except (OSError, MemoryError):  # not there, not readable, not the user's own, or too large
            return None
        length = _FIELDS.unpack_from(found, len(MAGIC))[0] if len(found) >= HEADER else 0
        payload, label = found[HEADER : HEADER + length], found[HEADER + length :]
        if found[:HEADER] != _header((payload,), label):
            self._remove(path)
            return None
        with contextlib.suppress(OSError):  # a read-only cache serves as well
            os.utime(path)
        return payload

    def store(self, key: str, *payload: bytes | memoryview, label: str = "") -> bool:
        """Keep the pieces of a payload one after the other; False where the directory cannot be written to, is not the
        user's own, or the payload is over the limit. `label` is for people; what is too long of it is left out."""
        words = label.encode(errors="replace") if len(label) <= _LONGEST_LABEL // 4 else b""
        size, limit = sum(map(len, payload)) + HEADER + len(words), self._most(self.limits())
        if size > limit:
            return False
        temporary = self.directory / f"{_UNFINISHED}{os.getpid()}-{os.urandom(8).hex()}"
        try:
            self.directory.mkdir(0o700, parents=True, exist_ok=True)
            if not _own(os.stat(self.directory)):
                return False
            _write(temporary, (_header(payload, words), *payload, words))
            temporary.replace(self._path(key))
        except OSError:
            self._remove(temporary)
            return False
        if size > limit // _SMALL or zlib.crc32(key.encode()) % _COUNTED == 0:
            self.evict()
        return True

    def label(self, key: str) -> str:
        """What an entry was labelled; empty where it has no label or cannot be read. Only its ends are read, and not
        checked: this is for people."""
        try:
            descriptor = os.open(self._path(key), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return ""
        with open(descriptor, "rb") as file:
            try:
                head = file.read(HEADER)
                if len(head) < HEADER or not head.startswith(MAGIC):
                    return ""
                length, _, count = _FIELDS.unpack_from(head, len(MAGIC))
                if count > _LONGEST_LABEL or length > os.fstat(descriptor).st_size:
                    return ""
                file.seek(HEADER + length)
                return file.read(count).decode(errors="replace")
            except OSError:
                return ""

    def limits(self) -> Limits:
        """The directory's limits, none where they were not set or cannot be read."""
        try:
            words = bytes(_read(self.directory / _LIMITS)[:_LONGEST_LABEL]).decode().split()
            found = dict(zip(words[::2], map(float, words[1::2]), strict=True))
        except (OSError, MemoryError, ValueError):
            return Limits()
        size, age = found.get("size"), found.get("age")
        return Limits(
            int(size) if size is not None and 0 <= size < 1 << 62 else None,
            age if age is not None and age >= 0 else None,
        )

    def set_limits(self, limits: Limits) -> None:
        """Set the directory's limits, and remove what is beyond them. OSError where it cannot be written to, or is not
        the user's own."""
        self.directory.mkdir(0o700, parents=True, exist_ok=True)
        if not _own(os.stat(self.directory)):
            raise PermissionError("it is not a directory that only its user may write to")
        said = (("size", limits.size), ("age", limits.age))
        temporary = self.directory / f"{_UNFINISHED}{os.getpid()}-{os.urandom(8).hex()}"
        _write(temporary, ["".join(f"{name} {value}\n" for name, value in said if value is not None).encode()])
        temporary.replace(self.directory / _LIMITS)
        self.evict()

    def _most(self, limits: Limits) -> int:
        """How many bytes entries may take together."""
        if self.limit is not None:
            return self.limit
        return DEFAULT_LIMIT if limits.size is None else limits.size

    def entries(self) -> list[Entry]:
        """What is there, the longest unused first."""
        return sorted(self._scan(), key=lambda e: (e.used, e.key))

    @property
    def has_entries(self) -> bool:
        """Whether anything is there."""
        return next(self._scan(), None) is not None

    def remove(self, keys: list[str] | None = None) -> int:
        """Remove entries by key, all without; how many were removed."""
        chosen = [e.key for e in self.entries()] if keys is None else keys
        return sum(self._remove(self._path(key)) for key in chosen)

    def _scan(self) -> Iterator[Entry]:
        try:
            found = list(os.scandir(self.directory))
        except OSError:
            return
        for item in found:
            with contextlib.suppress(OSError):  # another process removed it meanwhile
                if item.name.endswith(".onert") and item.is_file():
                    status = item.stat()
                    yield Entry(item.name.removesuffix(".onert"), status.st_size, status.st_mtime)

    def evict(self) -> None:
        """Remove what is beyond the limits: entries that were too long unused, then the longest unused ones until four
        fifths of what they may take are left."""
        self._sweep()
        limits, entries = self.limits(), self.entries()
        if limits.age is not None:
            oldest = time.time() - limits.age
            for entry in entries:
                if entry.used < oldest:
                    self._remove(self._path(entry.key))
            entries = [entry for entry in entries if entry.used >= oldest]
        limit = self._most(limits)
        total = sum(e.size for e in entries)
        if total <= limit:
            return
        for entry in entries:
            if total <= limit * _KEPT_AFTER_EVICTION:
                break
            self._remove(self._path(entry.key))
            total -= entry.size

    def _sweep(self) -> None:
        """Remove what writers left that were killed."""
        for path in self.directory.glob(f"{_UNFINISHED}*"):
            with contextlib.suppress(OSError):  # another process removed it meanwhile
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}.onert"

    @staticmethod
    def _remove(path: Path) -> bool:
        try:
            path.unlink()
        except OSError:
            return False
        return True
