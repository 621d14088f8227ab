"""What is known about this machine's processor before anything is compiled: its name and measured figures.

Generated code depends on it, so it is part of every program's cache key and every process reads it. What follows from
it is worked out only when something is compiled (`machines.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from onert.backend.cache import Cache, default_directory

CPUINFO, CACHES = Path("/proc/cpuinfo"), Path("/sys/devices/system/cpu/cpu0/cache")
_NAMED = (("vendor_id", "cpu family", "model"), ("CPU implementer", "CPU part"))
"""The fields that identify a processor, on x86-64 and on Arm."""
_HEAD_BYTES = 2048
"""Bytes of `cpuinfo` that contain everything about the first processor."""
_LEVELS = {"1": "first_cache", "2": "second_cache"}
_UNITS = {"K": 1 << 10, "M": 1 << 20}


@cache
def processor() -> str:
    """This machine's processor as `description` describes it, then, after a "+", its stored figures."""
    found = description()
    measured = _figures_cache().load(_key(found))
    return found if measured is None else f"{found} + {bytes(measured).decode('ascii', 'replace')}"


def description(cpuinfo: Path = CPUINFO, caches: Path = CACHES) -> str:
    """The system's description of its first processor: vendor, family and model, then, after a ":", the sizes in bytes
    of its own data caches. What the system does not report is left out."""
    lines = (line.partition(":") for line in _read(cpuinfo).splitlines())
    values: dict[str, str] = {}
    for name, _, value in lines:
        values.setdefault(name.strip(), value.strip())
    words = next(([values[key] for key in keys] for keys in _NAMED if all(key in values for key in keys)), [])
    sizes = " ".join(f"{name}={size}" for name, size in _sizes(caches).items())
    return f"{' '.join(words)} : {sizes}"


def store_figures(figures: Mapping[str, float]) -> None:
    """Store figures of this machine's processor for the cost models; they override stored and built-in ones. Raises
    OSError if the cache cannot be written to."""
    text = " ".join(f"{name}={value:.3g}" for name, value in figures.items())
    if not _figures_cache().store(
        _key(description()), text.encode("ascii"), label="machine\tfigures of this processor"
    ):
        raise OSError(f"{_figures_cache().directory} cannot be written to, or is not the user's own")
    processor.cache_clear()


def _figures_cache() -> Cache:
    return Cache(default_directory(os.environ))


def _key(found: str) -> str:
    return Cache.key("machine 1", found)


def _sizes(folder: Path) -> dict[str, int]:
    """Sizes in bytes of the first- and second-level data caches, as Linux lists them."""
    found: dict[str, int] = {}
    for index in range(4):
        level, kind, size = (_read(f"{folder}/index{index}/{name}").strip() for name in ("level", "type", "size"))
        unit = _UNITS.get(size[-1:], 0)
        if kind in ("Data", "Unified") and level in _LEVELS and size[:-1].isdecimal() and unit:
            found[_LEVELS[level]] = int(size[:-1]) * unit
    return found


def _read(path: str | Path) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_HEAD_BYTES).decode("ascii", "replace")
    except OSError:
        return ""  # another operating system: no such files
