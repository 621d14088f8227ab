"""Files that are there whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def replace(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file. OSError if that fails; what was at the path is then still there, and nothing else is left.

    A link is followed, and what is no plain file, such as a device, is written to as it is.
    """
    with replacing(path) as file:
        file.writelines(pieces)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to be written piece by piece, or by another library, that takes the place of another in the end.

    What holds for `replace` holds here too, whatever is raised before the end.
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


def written(folder: Path, pieces: Iterable[bytes | memoryview]) -> Path:
    """A new file with a name of its own and the mode of a plain new file. OSError if it cannot be written whole; it is
    then removed."""
    with _begun(folder) as file:
        file.writelines(pieces)
    return Path(file.name)


@contextmanager
def _begun(folder: Path) -> Iterator[BinaryIO]:
    """A new file with a name of its own, which is removed where it does not become whole."""
    file = (folder / f".onert-{os.getpid()}-{os.urandom(8).hex()}").open("x+b")
    try:
        with file:
            yield file
    except BaseException:
        os.unlink(file.name)
        raise
