"""Formats by content: which reader a file belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import evolve

from onert.ir import ModelError, Package
from onert.ir.content import Held, Source
from onert.ir.process import imports

from .files import is_directory, open_file, reason
from .format import HEAD, Format

OWN = (
    "onert.frontend.tflite",
    "onert.frontend.circle",
    "onert.frontend.nnpackage",
    "onert.frontend.flow",
    "onert.frontend.tnn",
    "onert.frontend.onnx",
    "onert.frontend.containers.litertlm",
    "onert.frontend.containers.task",
)
"""The project's own formats, each `FORMAT` of a package or a module; they are asked before those of strangers."""


def formats() -> tuple[Format, ...]:
    """The project's own formats and those installed by entry point; one that cannot be loaded is left out."""
    return (*_own(), *_installed()[0])


def _own() -> Iterator[Format]:
    """One after the other: what has not been asked for yet is not imported."""
    for package in OWN:
        yield imports.module(package).FORMAT


def _installed() -> tuple[tuple[Format, ...], tuple[str, ...]]:
    """The formats of others, and why some of them cannot be loaded; looked for when none of our own will do."""
    found: tuple[tuple[Format, ...], tuple[str, ...]] = imports.module("onert.frontend.installed").installed(
        tuple(_own())
    )
    return found


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
        content = Held(source) if isinstance(source, bytes) else _content(source)
        head = content.part(0, HEAD)
        format_, refusals = _format_of(head, path)
        if format_ is not None:
            unread = format_.unread(content, path)
            package = unread if unread is not None and known(unread) else _read(format_, content, path)
            return package if package.name else evolve(package, name=path.stem if path is not None else "model")
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    except MemoryError as error:
        raise ModelError(f"{name}: there is not enough memory to read it") from error
    except OSError as error:  # from a reader that looks at more files than this one
        raise ModelError(f"{name}: cannot be read: {reason(error)}") from error
    if path is not None and path.is_dir():
        raise ModelError(f"{name}: it is a directory without metadata/MANIFEST, expected a model file or an nnpackage")
    if not content.size:
        raise ModelError(f"{name}: the file is empty")
    expected = ", ".join(format_.name for format_ in formats())
    sentence = f"{name}: begins with {head[:8]!r}, expected one of the formats {expected}"
    raise ModelError("; ".join((sentence, *refusals)))


def _read(format_: Format, content: Source, path: Path | None) -> Package:
    """The package that a content is, its bytes read while another thread imports what reads them."""
    if format_.reader:
        imports.begin(format_.reader)
    return format_.load(content.data, path)


def _format_of(head: bytes, path: Path | None) -> tuple[Format | None, tuple[str, ...]]:
    """The format that recognises a file, if any, and why some formats could not be asked."""
    for format_ in _own():
        if format_.recognize(head, path):
            return format_, ()
    others, refusals = _installed()
    return next((format_ for format_ in others if format_.recognize(head, path)), None), refusals


def _content(path: Path) -> Source:
    """The content of a file; nothing for a directory."""
    return Held(b"") if is_directory(path) else open_file(path)
