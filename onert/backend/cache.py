"""An on-disk cache of compiled programs, code and packed weights, keyed by content.

Each entry is one file: magic, lengths of payload and label, CRC-32 of both, payload at a 64-byte boundary, and a label
for people: kind of entry, name and options, separated by tabs. An entry is written under a temporary name and renamed,
so a reader sees a complete entry or none; a truncated, modified or foreign file is ignored and removed. Any number of
processes may share a directory: the worst outcome of a race is duplicated work. An entry is read into this process's
memory, not mapped, and checked there, so later changes to its file have no effect.

Entries contain machine code, so the directory must be the user's own. It is created for the user alone; a directory or
file that belongs to another user, or that others may write to, is not used. The checksum detects damage and is not a
signature: whoever can write to the directory can write to the user's programs as well.
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
DEFAULT_LIMIT = 2 << 30
_LIMITS = "limits"
"""The name of the file with a directory's limits."""
_FIELDS = struct.Struct("<QII")
_LONGEST_LABEL = 1 << 12
_KEPT_AFTER_EVICTION = 0.8  # leave room, so that not every store evicts
_PER_LIMIT = 64
"""How often a directory is scanned while entries of the limit's total size are stored. A scan's cost grows with the
number of entries, so the probability that storing an entry triggers one is proportional to the entry's size."""
_UNFINISHED = ".new-"
_ABANDONED = 3600.0
"""Seconds after which a temporary file is considered abandoned."""


def default_directory(environment: Mapping[str, str]) -> Path:
    """`ONERT_CACHE_DIR`, else `onert` in the user's cache directory (XDG base directory specification)."""
    if chosen := environment.get("ONERT_CACHE_DIR"):
        return Path(chosen)
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "onert"


def sources(package: Path) -> str:
    """A digest of the names and contents of all files below a folder, except Python's caches.

    Raises OSError if the folder cannot be read.
    """
    paths, _ = _files(str(package))
    return _digest_of({os.path.relpath(path, package).replace(os.sep, "/"): _row(_content(path)) for path in paths})


def recorded(package: Path, distribution: str) -> str:
    """The same digest as `sources`, computed from the installer's record alone if there is one."""
    inside, found = f"{package.name}/", {}
    for record in _records(package, distribution):
        for line in record.read_text("utf-8", "surrogateescape").splitlines():
            name, _, row = line.partition(",")
            if name.startswith(inside) and row.startswith(_ALGORITHM) and "/__pycache__/" not in name:
                found[name[len(inside) :]] = row
    return _digest_of(found) if found else sources(package)


_ALGORITHM = "sha256="
"""The prefix of digests in records of installed files (PyPA's "Recording installed projects")."""


def _row(content: bytes) -> str:
    """A record's fields for a file, after its name: its digest in URL-safe base 64, and its size in bytes."""
    text = b2a_base64(imports.module("hashlib").sha256(content).digest(), newline=False).decode().rstrip("=")
    return f"{_ALGORITHM}{text.replace('+', '-').replace('/', '_')},{len(content)}"


def _digest_of(rows: Mapping[str, str]) -> str:
    text = "\n".join(f"{name},{rows[name]}" for name in sorted(rows))
    return digest(text.encode(errors="surrogateescape")).hexdigest()


_SETTLED = 2_000_000_000
"""Nanoseconds after which two changes get different times on every file system."""

_STATE = 5
"""The number of `stat` values per file, which differ after every change."""


def is_settled(changed: int) -> bool:
    """Whether a later change would get another time than one at `changed`, in nanoseconds since the epoch."""
    return changed < time.time_ns() - _SETTLED


def _files(folder: str) -> tuple[list[str], list[int]]:
    """The files below a folder: their paths, and for each the `stat` values that any change alters, ctime last.

    Every start visits some eight hundred files: one flat list takes half the time of a tuple for each.
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
    """The content of a file, in a third of the time of `Path` and a buffered file: a first run reads hundreds."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        return b"".join(iter(lambda: os.read(descriptor, 1 << 16), b""))
    finally:
        os.close(descriptor)


def installed(package: Path, distribution: str) -> str:
    """A text identifying the version of a distribution that installed a package, and the digests of its files.

    Both are read from the installer's record beside the package. Without one, as for a package under development, the
    files themselves are examined.
    """
    found = (f"{r.parent.name} {digest(r.read_bytes()).hexdigest()}" for r in _records(package, distribution))
    return " ".join(sorted(found)) or worked_on(package)


def worked_on(package: Path) -> str:
    """A text that differs after every change of a file below a folder.

    Reading all files would take ten milliseconds, so the text depends on each file's inode, size, mtime and ctime
    (which nobody can set). The content is used instead if a file was changed so recently that another change could get
    the same time. Raises OSError if the folder cannot be read.
    """
    paths, states = _files(str(package))
    if not is_settled(max(states[_STATE - 1 :: _STATE], default=0)):
        return sources(package)
    return Cache.key("states", os.fsencode("\0".join(paths)), repr(states))


def _records(package: Path, distribution: str) -> list[Path]:
    """The records of a distribution installed beside a package."""
    beside = os.listdir(package.parent)
    named = (name for name in beside if name.startswith(f"{distribution}-") and name.endswith(".dist-info"))
    return [record for name in named if (record := package.parent / name / "RECORD").is_file()]


DISTRIBUTION = "onert_toolkit"
"""The distribution that installs this package and its own backends."""


def _own(status: os.stat_result) -> bool:
    """Whether a directory or a file belongs to this user and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _header(payload: Iterable[bytes | memoryview], label: bytes | memoryview) -> bytes:
    length = checksum = 0
    for piece in payload:
        length += len(piece)
        checksum = zlib.crc32(piece, checksum)
    return (MAGIC + _FIELDS.pack(length, zlib.crc32(label, checksum), len(label))).ljust(HEADER, b"\0")


def _read(path: Path) -> memoryview:
    """A copy of a file owned by this user, as far as it can be read. Raises OSError if it is not such a file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not (_own(status) and stat.S_ISREG(status.st_mode)):
            raise PermissionError(f"{path} is not a file that only its owner may write to")
        target = room(status.st_size)
        return target[: read_into(descriptor, target)].toreadonly()
    finally:
        os.close(descriptor)


def _write(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Create a file that only this user may read. Raises OSError if it exists."""
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
    """The total size in bytes allowed for a directory's entries, and the age in seconds after which one unused expires.

    With None for `size`, DEFAULT_LIMIT applies; with None for `age`, entries never expire.
    """

    size: int | None = None
    age: float | None = None


@frozen
class Cache(Value):
    """Entries in a directory of at most `limit` bytes, temporarily a sixteenth more: least recently used are evicted.

    If `limit` is None, the directory's own limit applies (`limits`).
    """

    directory: Path
    limit: int | None = None

    @staticmethod
    def key(*parts: bytes | memoryview | str) -> str:
        """A digest of everything that the content depends on; parts are delimited, so that they cannot run together."""
        found = digest()
        for part in parts:
            raw = part.encode() if isinstance(part, str) else part
            found.update(len(raw).to_bytes(8, "little"))
            found.update(raw)
        return found.hexdigest()

    def load(self, key: str) -> memoryview | None:
        """The payload, a private read-only copy; None if it is missing or damaged."""
        path = self._path(key)
        try:
            if not _own(os.stat(self.directory)):
                return None
            found = _read(path)
        except (OSError, MemoryError):  # missing, unreadable, another user's, or too large
            return None
        length = _FIELDS.unpack_from(found, len(MAGIC))[0] if len(found) >= HEADER else 0
        payload, label = found[HEADER : HEADER + length], found[HEADER + length :]
        if found[:HEADER] != _header((payload,), label):
            self._remove(path)
            return None
        with contextlib.suppress(OSError):  # a read-only cache works too
            os.utime(path)
        return payload

    def has(self, key: str) -> bool:
        """Whether there is an entry, which counts as used now."""
        with contextlib.suppress(OSError):
            os.utime(self._path(key))
            return True
        return False

    def store(self, key: str, *payload: bytes | memoryview, label: str = "") -> bool:
        """Store the pieces of a payload in order. Returns False if the directory is another user's or cannot be written
        to, or if the payload exceeds the limit. `label` is for people; a label that is too long is left out."""
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
        if zlib.crc32(key.encode()) * limit < (size * _PER_LIMIT) << 32:
            self.evict()
        return True

    def label(self, key: str) -> str:
        """The label of an entry; empty if it has none or cannot be read. Only header and label are read, without
        verifying the checksum: this is for people."""
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
        """The directory's limits, each None if it is not set or cannot be read."""
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
        """Set the directory's limits and evict what exceeds them. Raises OSError if the directory cannot be written to,
        or is another user's."""
        self.directory.mkdir(0o700, parents=True, exist_ok=True)
        if not _own(os.stat(self.directory)):
            raise PermissionError("it is not a directory that only its owner may write to")
        fields = (("size", limits.size), ("age", limits.age))
        temporary = self.directory / f"{_UNFINISHED}{os.getpid()}-{os.urandom(8).hex()}"
        _write(temporary, ["".join(f"{name} {value}\n" for name, value in fields if value is not None).encode()])
        temporary.replace(self.directory / _LIMITS)
        self.evict()

    def _most(self, limits: Limits) -> int:
        """The total size in bytes allowed for entries."""
        if self.limit is not None:
            return self.limit
        return DEFAULT_LIMIT if limits.size is None else limits.size

    def entries(self) -> list[Entry]:
        """The entries, least recently used first."""
        return sorted(self._scan(), key=lambda e: (e.used, e.key))

    @property
    def has_entries(self) -> bool:
        """Whether there are any entries."""
        return next(self._scan(), None) is not None

    def remove(self, keys: list[str] | None = None) -> int:
        """Remove the entries with these keys, or all entries; returns how many were removed."""
        chosen = [e.key for e in self.entries()] if keys is None else keys
        return sum(self._remove(self._path(key)) for key in chosen)

    def _scan(self) -> Iterator[Entry]:
        """The entries in the directory's order, read as far as they are asked for."""
        with contextlib.suppress(OSError), os.scandir(self.directory) as found:
            for item in found:
                with contextlib.suppress(OSError):  # another process removed it meanwhile
                    if item.name.endswith(".onert") and item.is_file():
                        status = item.stat()
                        yield Entry(item.name.removesuffix(".onert"), status.st_size, status.st_mtime)

    def evict(self) -> None:
        """Remove entries beyond the limits: first expired ones, then, if the total exceeds the limit, the least
        recently used until four fifths of it are left."""
        self._sweep()
        limits, entries = self.limits(), self.entries()
        if limits.age is not None:
            oldest = time.time() - limits.age
            self.remove([entry.key for entry in entries if entry.used < oldest])
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
        """Remove temporary files of writers that were killed."""
        with contextlib.suppress(OSError), os.scandir(self.directory) as found:
            for item in found:
                with contextlib.suppress(OSError):  # another process removed it meanwhile
                    if item.name.startswith(_UNFINISHED) and time.time() - item.stat().st_mtime > _ABANDONED:
                        os.unlink(item.path)

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}.onert"

    @staticmethod
    def _remove(path: Path) -> bool:
        with contextlib.suppress(OSError):
            path.unlink()
            return True
        return False
