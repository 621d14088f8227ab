"""Names of classes that come with a model: packed into its file, or lying in its package."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onert.frontend.metadata import ModelMetadata

METADATA = "the metadata"
MOST_BYTES = 1 << 20
"""Of a file of labels; a longer one is none."""
MOST_FILES = 64
SUFFIXES = (".txt", ".labels")
SHOWN = 1_000
_UNREADABLE = (OSError, ValueError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile, zlib.error)


def labels(path: Path, said: ModelMetadata) -> list[dict[str, Any]]:
    """The files of labels that come with a model: name, how many labels, and the first of them.

    A TFLite file has them in a zip archive at its end, a package as text files beside its models, and an exporter may
    have written them into the metadata. What cannot be read is no label.
    """
    found = []
    for name, data in list(_files(path))[:MOST_FILES]:
        try:
            lines = [line.strip() for line in data.decode("utf-8").rstrip().splitlines()]
        except UnicodeDecodeError:
            continue
        if lines:
            found.append({"file": name, "count": len(lines), "labels": lines[:SHOWN]})
    if said.labels:
        found.append({"file": METADATA, "count": len(said.labels), "labels": list(said.labels[:SHOWN])})
    return found


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        if path.is_dir():
            for each in sorted(path.iterdir()):
                if each.suffix.lower() in SUFFIXES and each.is_file() and each.stat().st_size <= MOST_BYTES:
                    yield each.name, each.read_bytes()
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    if entry.filename.lower().endswith(SUFFIXES) and entry.file_size <= MOST_BYTES:
                        with archive.open(entry) as file:
                            yield entry.filename, file.read(MOST_BYTES)
    except _UNREADABLE:
        return
