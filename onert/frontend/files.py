"""Reading untrusted files: regular files only, and every failure is reported as one sentence."""

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
    """Open a regular file for reading. Raises ModelError with the reason if it cannot be opened.

    Nothing else is opened: opening a pipe can block, and opening a device may have side effects. The check is repeated
    on the open descriptor, because the path may refer to something else by then.
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
    """Whether the path is a directory. Raises ModelError if the system cannot tell, e.g. because it is too long."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot be read: {reason(error)}") from error


def resolved(path: Path) -> Path:
    """The path with links resolved. A cycle of links is left as it is; opening it fails later."""
    return Path(os.path.realpath(path))


def contained_path(inside: str, container: str) -> PurePosixPath:
    """A path relative to `container` ("the package"). Raises ModelError if it is absolute, contains "..", or is not
    printable."""
    path = PurePosixPath(inside)
    if not inside or path.is_absolute() or ".." in path.parts or "\\" in inside:
        raise ModelError(f"the path {inside!r} leaves {container}")
    if not inside.isprintable():  # control characters and lone surrogates
        raise ModelError(f"the path {inside!r} has characters that are not printable")
    return path


def path_in(folder: Path, inside: str, container: str) -> Path:
    """The path of a file inside a folder. Raises ModelError as in `contained_path`, or if a link leads out of it."""
    path = resolved(folder / contained_path(inside, container))
    if not path.is_relative_to(resolved(folder)):
        raise ModelError(f"the path {inside!r} leaves {container} through a link")
    return path


def path_beside(model: Path, inside: str) -> Path:
    """The path of a file in the folder of a model's file. Raises ModelError as in `path_in`."""
    return path_in(resolved(model).parent, inside, "the model's folder")


def reason(error: Exception) -> str:
    """The system's description of the error, without the path, which the caller adds."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise ModelError(f"cannot be read: it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, expected a file")
