"""Recognise the format of a file by its content, and load it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import evolve

from onert.ir import ModelError, Package
from onert.ir.content import InMemory, Source
from onert.ir.process import imports

from .files import is_directory, open_file, reason
from .format import HEAD, Format, InputShapes, ranks_are_missing

OWN = (
    "onert.frontend.tflite",
    "onert.frontend.circle",
    "onert.frontend.onnx",
    "onert.frontend.onnx.ort",
    "onert.frontend.nnpackage",
    "onert.frontend.flow",
    "onert.frontend.tnn",
    "onert.frontend.containers.litertlm",
    "onert.frontend.containers.task",
)
"""The project's own formats, each the `FORMAT` of a package or module. They are imported in this order until one
recognises a file, so the common ones and those that import little come first. Installed formats come after them."""


def formats() -> tuple[Format, ...]:
    """The project's own formats and those installed by entry point, except those that cannot be loaded."""
    return (*_own(), *_installed()[0])


def _own() -> Iterator[Format]:
    """Yield the formats one by one, so that a module is imported only when it is reached."""
    for package in OWN:
        yield imports.module(package).FORMAT


def _installed() -> tuple[tuple[Format, ...], tuple[str, ...]]:
    """The installed formats, and why some cannot be loaded. Searched only if no own format recognises the file."""
    found: tuple[tuple[Format, ...], tuple[str, ...]] = imports.module("onert.frontend.installed").installed(
        tuple(_own())
    )
    return found


def _unknown(package: Package) -> bool:
    """The default of `known`: no content is known to be well-formed."""
    return False


def load(
    source: Path | bytes, known: Callable[[Package], bool] = _unknown, input_shapes: InputShapes | None = None
) -> Package:
    """Load a model or package. Raises ModelError with the file's name if it is missing, unrecognised or malformed.

    A package that is `known` to be well-formed is parsed only when its content is accessed. `input_shapes` decide ranks
    that the model leaves open.
    """
    path = source if isinstance(source, Path) else None
    name = str(path) if path is not None else f"{len(source)} bytes" if isinstance(source, bytes) else ""
    try:
        content = InMemory(source) if isinstance(source, bytes) else _content(source)
        head = content.part(0, HEAD)
        format_, refusals = _format_of(head, path)
        if format_ is not None:
            unread = format_.unread(content, path)
            package = unread if unread is not None and known(unread) else _read(format_, content, path, input_shapes)
            return package if package.name else evolve(package, name=path.stem if path is not None else "model")
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    except MemoryError as error:
        raise ModelError(f"{name}: there is not enough memory to read it") from error
    except OSError as error:  # from a reader that opens further files
        raise ModelError(f"{name}: cannot be read: {reason(error)}") from error
    if path is not None and path.is_dir():
        raise ModelError(f"{name}: it is a directory without metadata/MANIFEST, expected a model file or an nnpackage")
    if not content.size:
        raise ModelError(f"{name}: the file is empty")
    expected = ", ".join(format_.name for format_ in formats())
    sentence = f"{name}: begins with {head[:8]!r}, expected one of the formats {expected}"
    raise ModelError("; ".join((sentence, *refusals)))


def _read(format_: Format, content: Source, path: Path | None, input_shapes: InputShapes | None) -> Package:
    """Read the package; its bytes are read while another thread imports the reader."""
    if format_.reader:
        imports.begin(format_.reader)
    try:
        return format_.load(content.data, path)
    except ModelError as error:
        if not input_shapes or format_.load_of_ranks is None or not ranks_are_missing(error):
            raise
    return format_.load_of_ranks(content.data, path, input_shapes)


def _format_of(head: bytes, path: Path | None) -> tuple[Format | None, tuple[str, ...]]:
    """The format that recognises a file, if any, and why some installed formats could not be loaded."""
    for format_ in _own():
        if format_.recognize(head, path):
            return format_, ()
    others, refusals = _installed()
    return next((format_ for format_ in others if format_.recognize(head, path)), None), refusals


def _content(path: Path) -> Source:
    """The content of a file; empty for a directory."""
    return InMemory(b"") if is_directory(path) else open_file(path)
