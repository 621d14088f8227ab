"""Files that are there whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def replace(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file. OSError if that fails; what was at the path is then still there, and nothing else is left.

    A link is followed, and what is no plain file, such as a device, is written to as it is.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines(pieces)
        return
    beside = written(path.parent, pieces)
    try:
        beside.replace(path)
    except OSError:
        beside.unlink()
        raise


def written(folder: Path, pieces: Iterable[bytes | memoryview]) -> Path:
    """A new file with a name of its own and the mode of a plain new file. OSError if it cannot be written whole; it is
    then removed."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=".onert-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
        mask = os.umask(0o022)  # it can only be read by setting it
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)
