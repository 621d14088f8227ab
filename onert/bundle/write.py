"""Write files atomically."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from onert.ir import CompileError
from onert.ir.process.replacing import write_new


def write_all(directory: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files by name into a directory, which is created if missing, and return their paths.

    All are written under temporary names first and renamed when the last is complete. Raises CompileError if that
    fails; temporary files are then removed.
    """
    made = [d for d in (directory, *directory.parents) if not d.exists()]
    begun: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for content in contents.values():
            begun.append(write_new(directory, (content,)))
        paths = [directory / name for name in contents]
        for path in paths:
            if path.is_dir():
                raise IsADirectoryError(None, "a directory has this name", str(path))
        for temporary, path in zip(begun, paths, strict=True):
            temporary.replace(path)
    except OSError as error:
        for path in begun:
            path.unlink(missing_ok=True)
        for path in made:
            with contextlib.suppress(OSError):  # not made yet, or not empty
                path.rmdir()
        raise CompileError(f"the bundle cannot be written to {directory}: {error.strerror or error}") from error
    return paths
