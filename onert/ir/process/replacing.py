"""Atomic file replacement: files are written next to their target, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def replace(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file. If that raises OSError, the old content of the path is unchanged and no other file is left behind.

    Links are followed; anything but a regular file, such as a device, is written to directly.
    """
    with replacing(path) as file:
        file.writelines(pieces)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to be written piece by piece, or by another library, that replaces the file at the path in the end.

    Has the guarantees of `replace`, whatever is raised before the end.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            yield device
        return
    path = path.resolve()
    with _begun(path.parent) as file:
        yield file
    try:
        os.replace(file.name, path)
    except OSError:
        os.unlink(file.name)
        raise


def write_new(folder: Path, pieces: Iterable[bytes | memoryview]) -> Path:
    """A new file with a unique name and the mode of a regular new file. Raises OSError if it cannot be written
    completely; it is then removed."""
    with _begun(folder) as file:
        file.writelines(pieces)
    return Path(file.name)


@contextmanager
def _begun(folder: Path) -> Iterator[BinaryIO]:
    """A new file with a unique name, which is removed unless it is written completely."""
    file = (folder / f".onert-{os.getpid()}-{os.urandom(8).hex()}").open("x+b")
    try:
        with file:
            yield file
    except BaseException:
        os.unlink(file.name)
        raise
