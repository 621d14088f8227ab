"""Label files: class names, one per line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onert.frontend.flatbuffer import Data
from onert.frontend.nnpackage.zip_archive import ZipArchive, open_zip_archive
from onert.ir import ModelError

SUFFIXES = (".txt", ".labels")
MAX_LABELS = 1 << 20
"""The maximum size of an unreferenced label file, in bytes; larger files are ignored."""
MAX_FILES = 64
_LONGEST_END = 65557
"""The maximum size of the record at the end of a zip archive, including its comment."""


def lines(text: str) -> tuple[str, ...]:
    """The labels in a file, without empty lines at the end."""
    return tuple(line.strip() for line in text.rstrip().splitlines())


def appended_archive(content: Data) -> ZipArchive | None:
    """The archive that is appended to a model file, or is the file; None if there is none."""
    return open_zip_archive(content) if b"PK\x05\x06" in bytes(content[-_LONGEST_END:]) else None


def label_files(path: Path) -> dict[str, tuple[str, ...]]:
    """The labels in the text files of a package, or of the archive appended to a model, by file name.

    Unreadable files are skipped.
    """
    found = {}
    for name, content in list(_texts(path))[:MAX_FILES]:
        try:
            found[name] = lines(content.decode("utf-8"))
        except UnicodeDecodeError:
            continue
    return {name: labels for name, labels in found.items() if labels}


def _texts(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        if path.is_dir():
            for each in sorted(path.iterdir()):
                if each.suffix.lower() in SUFFIXES and each.is_file() and each.stat().st_size <= MAX_LABELS:
                    yield each.name, each.read_bytes()
            return
        archive = appended_archive(memoryview(path.read_bytes()))
        if archive is not None:
            for name, member in archive.members.items():
                if name.lower().endswith(SUFFIXES) and member.size <= MAX_LABELS:
                    yield name, bytes(archive.read(name))
    except (OSError, ModelError):
        return
