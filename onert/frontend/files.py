"""Reading files that a stranger may have put there: regular files only, and every failure is one sentence."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from onert.ir import ModelError
from onert.ir.content import Source, opened

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_file(path: Path) -> Source:
    """The content of a regular file; ModelError with the reason where it cannot be opened.

    Nothing else is opened: a pipe makes whoever opens it wait, and a device may act on it. The check is repeated on the
    open file, because the name may stand for something else by then.
    """
    try:
        _require_regular(os.stat(path).st_mode)
        descriptor = os.open(path, _FLAGS)
        try:
            _require_regular(os.fstat(descriptor).st_mode)
        except BaseException:
            os.close(descriptor)
            raise
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise ModelError(f"cannot be read: {reason(error)}") from error
    return opened(descriptor)


def is_directory(path: Path) -> bool:
    """Whether there is a directory; ModelError if the system cannot tell, as for a path that is too long."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot be read: {reason(error)}") from error


def resolved(path: Path) -> Path:
    """The path without links; one that goes round in a circle is left as it is, and opening it fails."""
    return Path(os.path.realpath(path))


def checked(inside: str, whole: str) -> PurePosixPath:
    """A path inside a whole, such as "the package"; ModelError for one that is absolute, climbs out, or cannot be
    printed."""
    path = PurePosixPath(inside)
    if not inside or path.is_absolute() or ".." in path.parts or "\\" in inside:
        raise ModelError(f"the path {inside!r} leaves {whole}")
    if not inside.isprintable():  # control characters, and halves of characters that no system takes
        raise ModelError(f"the path {inside!r} has characters that are not printable")
    return path


def path_in(folder: Path, inside: str, whole: str) -> Path:
    """Where a file of a folder lies; ModelError as in `checked`, and where a link leads out."""
    path = resolved(folder / checked(inside, whole))
    if not path.is_relative_to(resolved(folder)):
        raise ModelError(f"the path {inside!r} leaves {whole} through a link")
    return path


def path_beside(model: Path, inside: str) -> Path:
    """Where a file in the folder of a model's file lies; ModelError as in `path_in`."""
    return path_in(resolved(model).parent, inside, "the model's folder")


def reason(error: Exception) -> str:
    """What the system says is wrong, without the path, which the caller names."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise ModelError(f"cannot be read: it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, expected a file")
