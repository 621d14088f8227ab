"""The CPUs that this process may use: their number and features."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

MAX_THREADS = 1024
"""The maximum number of threads of a program: each uses memory, and some systems do not allow more."""
_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def detected_features() -> Mapping[str, bool]:
    """Features of processors by NumPy's names, and whether NumPy detected them on this one."""
    umath = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    found: Mapping[str, bool] = getattr(umath, "__cpu_features__", {})
    return found


def available_cpus(cgroups: Path = _CGROUPS, membership: Path = _MEMBERSHIP) -> int:
    """The number of CPUs that the process is bound to, or fewer if a cgroup's quota grants less CPU time."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [math.ceil(quota) for quota in _quotas(cgroups, membership)]
    return max(1, min([bound, *quotas, MAX_THREADS]))


def _quotas(cgroups: Path, membership: Path) -> Iterator[float]:
    """The quota of each enclosing cgroup in CPUs, for both versions of the interface."""
    for controllers, path in _groups(membership):
        # Version 1 is mounted under its controllers' names; on some systems there is no mount under "cpu" alone.
        folders = (cgroups,) if controllers == "" else dict.fromkeys((cgroups / "cpu", cgroups / controllers))
        for folder in folders:
            inside = (folder / path.lstrip("/")).resolve()
            for level in (inside, *inside.parents):
                quota = _version_2(level) if controllers == "" else _version_1(level)
                if quota is not None:
                    yield quota
                if level == folder.resolve():
                    break


def _groups(membership: Path) -> Iterator[tuple[str, str]]:
    """Controllers and path of each group that can limit CPU time; controllers are empty in version 2."""
    for line in _read(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "" or "cpu" in controllers.split(","):
            yield controllers, path


def _version_2(folder: Path) -> float | None:
    return _ratio(_read(folder / "cpu.max").split())


def _version_1(folder: Path) -> float | None:
    return _ratio([_read(folder / "cpu.cfs_quota_us").strip(), _read(folder / "cpu.cfs_period_us").strip()])


def _ratio(words: list[str]) -> float | None:
    """Quota divided by period; None if there is no limit ("max", -1, no such file)."""
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    quota, period = (int(word) for word in words)
    return quota / period if quota > 0 and period > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""  # this version of the interface does not exist, so there is no limit
