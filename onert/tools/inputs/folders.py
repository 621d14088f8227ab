"""Folders as inputs: their files, one after another."""

from __future__ import annotations

import os
from pathlib import Path

from onert.ir import ExecutionError

MAX_ENTRIES = 100_000
"""The most entries of a folder that are listed."""


def files_in(folder: Path, suffixes: frozenset[str]) -> list[Path]:
    """The files in a folder with these suffixes, sorted by name, without hidden files and subfolders. Raises
    ExecutionError if there is none, or if the folder has more than MAX_ENTRIES entries of any kind."""
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
        raise ExecutionError(f"{folder} has no file with one of the suffixes {', '.join(sorted(suffixes))}")
    return [folder / name for name in sorted(found)]
