"""A process's resident memory: its peak, and what it is now."""

from __future__ import annotations

import inspect
import os


def peak() -> int:
    """In KiB. What `getrusage` gives starts from that of the process that started this one."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def current() -> int:
    """Of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


SOURCE = inspect.getsource(peak)
"""For programs that tests start from a text."""
