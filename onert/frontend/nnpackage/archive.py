"""Access to the files of a package, in a directory or a zip archive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from attrs import frozen

from onert.frontend.files import contained_path, open_file, path_in
from onert.frontend.flatbuffer import Data
from onert.ir import ModelError
from onert.ir.content import InMemory, Source
from onert.ir.value import ByIdentity, Value

from .zip_archive import ZipArchive, open_zip_archive


class Archive(Protocol):
    """Reads files by paths relative to the package's root."""

    def path(self, inside: str) -> Path | None:
        """The path of a file in the file system; None if it is inside an archive."""

    def has(self, inside: str) -> bool: ...

    def source(self, inside: str) -> Source:
        """The content of a file, read on demand.

        Raises ModelError if it is missing or unreadable, or if its path leaves the package.
        """

    def read(self, inside: str, most: int | None = None) -> Data:
        """The content of a file. Raises ModelError as `source`, or if it has more than `most` bytes."""


WHOLE = "the package"


@frozen
class Directory(Value):
    """A package as a directory."""

    root: Path

    def path(self, inside: str) -> Path:
        return path_in(self.root, inside, WHOLE)

    def has(self, inside: str) -> bool:
        return os.path.isfile(self.path(inside))

    def source(self, inside: str) -> Source:
        path = self.path(inside)
        try:
            return open_file(path)
        except ModelError as error:
            raise ModelError(f"{inside} {error}") from error

    def read(self, inside: str, most: int | None = None) -> Data:
        source = self.source(inside)
        if most is not None and source.size > most:
            raise ModelError(f"{inside} has {source.size} bytes, more than {most}")
        try:
            return source.data
        except ModelError as error:
            raise ModelError(f"{inside}: {error}") from error


@frozen(eq=False)
class Zip(ByIdentity):
    """A package as a zip archive; its files may be in one top-level folder."""

    files: ZipArchive
    prefix: str

    def path(self, inside: str) -> Path | None:
        return None

    def _name(self, inside: str) -> str:
        return f"{self.prefix}{contained_path(inside, WHOLE)}"

    def has(self, inside: str) -> bool:
        return self._name(inside) in self.files.members

    def source(self, inside: str) -> Source:
        return InMemory(self.read(inside))

    def read(self, inside: str, most: int | None = None) -> Data:
        return self.files.read(self._name(inside), most)


def open_zip(content: Data, manifest: str) -> Zip:
    """The archive in `content`. Raises ModelError if it is not an archive, or does not have exactly one `manifest`."""
    files = open_zip_archive(content)
    found = [
        name
        for name in files.members
        if name == manifest or (name.endswith(f"/{manifest}") and name.count("/") == manifest.count("/") + 1)
    ]
    if len(found) != 1:
        raise ModelError(f"the archive has {len(found) or 'no'} {manifest}")
    return Zip(files, found[0].removesuffix(manifest))
