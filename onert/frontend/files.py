"""Reading files that a stranger may have put there: regular files only, and every failure is one sentence."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path

from onert.ir import ModelError

from .flatbuffer import Data

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def map_file(path: Path) -> Data:
    """The content of a regular file, memory-mapped; ModelError with the reason where it cannot be read.

    Nothing else is opened: a pipe makes whoever opens it wait, and a device may act on it. The check is repeated on the
    open file, because the name may stand for something else by then.
    """
    try:
        _require_regular(os.stat(path).st_mode)
        descriptor = os.open(path, _FLAGS)
        try:
            status = os.fstat(descriptor)
            _require_regular(status.st_mode)
            if status.st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte, or a file cut short meanwhile
        raise ModelError(f"cannot be read: {reason(error)}") from error


def is_directory(path: Path) -> bool:
    """Whether there is a directory; ModelError where the system cannot tell, as for a path that is too long."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot be read: {reason(error)}") from error


def resolved(path: Path) -> Path:
    """The path without links; one that goes round in a circle is left as it is, and opening it fails."""
    return Path(os.path.realpath(path))


def reason(error: Exception) -> str:
    """What the system says is wrong, without the path, which the caller names."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise ModelError(f"cannot be read: it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, expected a file")
