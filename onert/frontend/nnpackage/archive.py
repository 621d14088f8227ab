"""The files of a package, in a directory or in a zip archive, by their paths inside."""

from __future__ import annotations

import io
import mmap
import zipfile
from pathlib import Path, PurePosixPath
from typing import Protocol

from attrs import frozen

from onert.frontend.flatbuffer import Data
from onert.ir import ModelError
from onert.ir.value import Value

MAX_MEMBER = 1 << 32
"""Most bytes that one file of an archive may unpack to: more than any model, less than what fills a machine."""


class Archive(Protocol):
    """Reads files by paths relative to the package's root."""

    def path(self, inside: str) -> Path | None:
        """Where a file lies; None where it is none of its own."""
        ...

    def has(self, inside: str) -> bool: ...

    def read(self, inside: str) -> Data:
        """The content of a file; ModelError where it is missing, cannot be read, or its path leaves the package."""
        ...


def checked(inside: str) -> PurePosixPath:
    """A path inside the package; ModelError for one that is absolute or climbs out."""
    path = PurePosixPath(inside)
    if not inside or path.is_absolute() or ".." in path.parts or "\\" in inside or "\0" in inside:
        raise ModelError(f"the path {inside!r} leaves the package")
    return path


@frozen
class Directory(Value):
    """A package as a directory; files are memory-mapped."""

    root: Path

    def path(self, inside: str) -> Path:
        path = self.root / checked(inside)
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise ModelError(f"the path {inside!r} leaves the package through a link")
        return path

    def has(self, inside: str) -> bool:
        return self.path(inside).is_file()

    def read(self, inside: str) -> Data:
        try:
            with self.path(inside).open("rb") as file:
                if file.seek(0, io.SEEK_END) == 0:
                    return memoryview(b"")
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise ModelError(f"{inside} cannot be read: {error.strerror}") from error


@frozen(eq=False)
class Zip:
    """A package as a zip archive; its files may lie in one folder at the top."""

    file: zipfile.ZipFile
    prefix: str

    def path(self, inside: str) -> Path | None:
        return None

    def _name(self, inside: str) -> str:
        return f"{self.prefix}{checked(inside)}"

    def has(self, inside: str) -> bool:
        return self._name(inside) in self.file.NameToInfo

    def read(self, inside: str) -> Data:
        try:
            member = self.file.getinfo(self._name(inside))
            if member.file_size > MAX_MEMBER:
                raise ModelError(f"{inside} unpacks to {member.file_size} bytes, more than {MAX_MEMBER}")
            with self.file.open(member) as stream:
                content = stream.read(member.file_size + 1)
        except KeyError as error:
            raise ModelError(f"{inside} is not in the archive") from error
        except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
            raise ModelError(f"{inside} cannot be unpacked: {error}") from error
        if len(content) != member.file_size:
            raise ModelError(f"{inside} unpacks to other than the {member.file_size} bytes that the archive says")
        return memoryview(content)


def open_zip(content: Data, manifest: str) -> Zip:
    """The archive in `content`; ModelError where it is none or has no `manifest`."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ModelError(f"the zip archive cannot be opened: {error}") from error
    for name in archive.namelist():
        if name == manifest or (name.endswith(f"/{manifest}") and name.count("/") == manifest.count("/") + 1):
            return Zip(archive, name.removesuffix(manifest))
    raise ModelError(f"the archive has no {manifest}")
