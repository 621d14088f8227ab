"""The cache of compiled programs: its contents and limits.

`onert.compile` loads programs from here that were compiled before. Any number of processes may share a directory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from onert.backend.cache import DEFAULT_LIMIT, Cache, Limits, default_directory
from onert.ir import ExecutionError
from onert.ir.value import Value

__all__ = ["CacheEntry", "Limits", "directory", "entries", "limits", "remove", "set_limits"]


@frozen
class CacheEntry(Value):
    """An entry of the cache.

    - `key`: its name in the cache
    - `kind`: "program", "code" and "array" (kernels and weights that programs share), "interface" (a model's inputs,
      outputs and signatures), "digest" (of this package's files), or empty for an entry that only records a fact
    - `name`: the model's name
    - `options`: the backends, and options other than the defaults, each `name=value`
    - `size`: in bytes
    - `used`: when it was last used, in seconds since the epoch
    """

    key: str
    kind: str
    name: str
    options: tuple[str, ...]
    size: int
    used: float


def directory() -> Path:
    """The cache directory: `ONERT_CACHE_DIR`, else `onert` in the user's cache directory."""
    return default_directory(os.environ)


def entries(place: Path | None = None) -> list[CacheEntry]:
    """The entries of the cache, or of the directory `place`, least recently used first."""
    cache = _cache(place)
    found = []
    for entry in cache.entries():
        kind, name, *options = [*cache.label(entry.key).split("\t"), "", ""][:64]
        found.append(CacheEntry(entry.key, kind, name, tuple(filter(None, options)), entry.size, entry.used))
    return found


def remove(keys: Sequence[str] | None = None, place: Path | None = None) -> int:
    """Remove the entries with these keys, or all entries if `keys` is None. Returns how many were removed.

    A removed program is compiled again when it is needed.
    """
    return _cache(place).remove(None if keys is None else list(keys))


def limits(place: Path | None = None) -> Limits:
    """The limits: `size`, the bytes of all entries, and `age`, the seconds an entry may stay unused (None: forever)."""
    found = _cache(place).limits()
    return Limits(DEFAULT_LIMIT if found.size is None else found.size, found.age)


def set_limits(*, size: int | None = None, age: float | None = None, place: Path | None = None) -> Limits:
    """Set the limits: `size` in bytes, `age` in seconds, which may be infinite. None leaves a limit unchanged.

    The limits apply to every process that uses the directory. Entries beyond them are removed now and at every write.
    Raises ExecutionError if a number is negative or NaN, or if the directory cannot be written to.
    """
    for name, value in (("size", size), ("age", age)):
        if value is not None and not value >= 0:
            raise ExecutionError(f"{name} is {value}, expected at least 0")
    cache = _cache(place)
    now = cache.limits()
    wanted = Limits(now.size if size is None else size, now.age if age is None else age)
    try:
        cache.set_limits(Limits(wanted.size, None if wanted.age == float("inf") else wanted.age))
    except OSError as error:
        raise ExecutionError(f"{cache.directory} cannot be written to: {error.strerror or error}") from error
    return limits(place)


def _cache(place: Path | None) -> Cache:
    return Cache(directory() if place is None else place)
