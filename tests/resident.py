"""A process's resident memory: its peak and its current value."""

from __future__ import annotations

import inspect
import os


def peak() -> int:
    """The peak in KiB. `getrusage` is not used because its value starts at the parent process's peak."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def current() -> int:
    """The current value in bytes."""
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


SOURCE = inspect.getsource(peak)
"""The source of `peak`, for programs that tests start from source text."""
