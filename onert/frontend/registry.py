"""Formats by content: which reader a file belongs to."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import evolve, frozen

from onert.ir import ModelError, Package
from onert.ir.value import Value

from .files import is_directory, map_file, reason
from .flatbuffer import Data

GROUP = "onert.frontends"
OWN = ("onert.frontend.tflite", "onert.frontend.circle", "onert.frontend.nnpackage")
"""The project's own formats, each `FORMAT` of a package; they are asked before those of strangers."""
HEAD = 16
"""Bytes of a file that a format may look at to recognise it."""


def _never(content: Data, path: Path | None) -> Package | None:
    """Nothing is left unread."""
    return None


@frozen
class Format(Value):
    """A kind of model file.

    `recognize` is given the first bytes of a file (none for a directory) and its path (None for bytes in memory).
    `load` is given the whole content (empty for a directory) and the path; it raises ModelError. `unread` gives the
    same for content that is well-formed, and reads it when it is asked for; None where it cannot.
    """

    name: str
    recognize: Callable[[bytes, Path | None], bool]
    load: Callable[[Data, Path | None], Package]
    unread: Callable[[Data, Path | None], Package | None] = _never


def formats() -> tuple[Format, ...]:
    """The project's own formats and those installed by entry point; ModelError where one cannot be imported."""
    return tuple(_formats())


def _formats() -> Iterator[Format]:
    """The same one after the other: what has not been asked for yet is not imported."""
    found: list[Format] = []
    for package in OWN:
        found.append(importlib.import_module(package).FORMAT)
        yield found[-1]
    yield from (format_ for format_ in _installed() if format_ not in found)


def _installed() -> tuple[Format, ...]:
    import importlib.metadata as metadata  # noqa: PLC0415 # slow, and the project's own formats do without it

    found = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda e: e.name):
        try:
            found.append(entry.load())
        except (ImportError, AttributeError) as error:
            raise ModelError(f"the model format {entry.name!r} at {entry.value} cannot be loaded: {error}") from error
    return tuple(dict.fromkeys(found))


def _unknown(package: Package) -> bool:
    """No content is known to be well-formed."""
    return False


def load(source: Path | bytes, known: Callable[[Package], bool] = _unknown) -> Package:
    """A model or package; ModelError with the file's name where it is missing, unknown or malformed.

    One that is `known` to be well-formed is read when somebody asks what is in it.
    """
    path = source if isinstance(source, Path) else None
    name = str(path) if path is not None else f"{len(source)} bytes" if isinstance(source, bytes) else ""
    try:
        content = memoryview(source) if isinstance(source, bytes) else _content(source)
        for format_ in _formats():
            if format_.recognize(bytes(content[:HEAD]), path):
                unread = format_.unread(content, path)
                package = unread if unread is not None and known(unread) else format_.load(content, path)
                return package if package.name else evolve(package, name=path.stem if path is not None else "model")
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    except MemoryError as error:
        raise ModelError(f"{name}: there is not enough memory to read it") from error
    except OSError as error:  # from a reader that looks at more files than this one
        raise ModelError(f"{name}: cannot be read: {reason(error)}") from error
    if path is not None and path.is_dir():
        raise ModelError(f"{name}: a directory without metadata/MANIFEST is no package")
    if not len(content):
        raise ModelError(f"{name}: the file is empty")
    expected = ", ".join(format_.name for format_ in formats())
    raise ModelError(f"{name}: begins with {bytes(content[:8])!r}, expected one of the formats {expected}")


def _content(path: Path) -> Data:
    """A file memory-mapped; nothing for a directory or an empty file."""
    return memoryview(b"") if is_directory(path) else map_file(path)
