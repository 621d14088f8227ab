"""Folders as inputs: their files one after the other."""

from __future__ import annotations

import os
from pathlib import Path

from onert.ir import ExecutionError

MAX_ENTRIES = 100_000
"""Of a folder that is listed."""


def files_in(folder: Path, suffixes: frozenset[str]) -> list[Path]:
    """The files of these kinds in a folder, by name; hidden ones and folders in it are left out.

    ExecutionError where there is none, or more than MAX_ENTRIES of any kind.
    """
    found = []
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries, 1):
                if count > MAX_ENTRIES:
                    raise ExecutionError(f"{folder} has more than {MAX_ENTRIES} entries, expected at most that many")
                is_kind = os.path.splitext(entry.name)[1].lower() in suffixes
                if is_kind and not entry.name.startswith(".") and entry.is_file():
                    found.append(entry.name)
    except OSError as error:
        raise ExecutionError(f"{folder} cannot be listed: {error.strerror or error}") from error
    if not found:
        raise ExecutionError(f"{folder} has no file of a kind that is read: {', '.join(sorted(suffixes))}")
    return [folder / name for name in sorted(found)]
