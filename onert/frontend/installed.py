"""Model formats from other packages, found by entry point.

Their readers are third-party code: any exception becomes a ModelError that names the format, and what they return is
verified.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import evolve

from onert.ir import ModelError, OnertError, Package
from onert.ir.analysis.verify import verify
from onert.ir.content import Source

from .flatbuffer import Data
from .format import GROUP, Format


def installed(own: tuple[Format, ...]) -> tuple[tuple[Format, ...], tuple[str, ...]]:
    """The formats beside `own`, sorted by entry point name, and a sentence for each that cannot be loaded."""
    found: list[Format] = []
    refusals: list[str] = []
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as error:
            refusals.append(_refusal(entry.name, entry.value, f"cannot be loaded: {type(error).__name__}: {error}"))
            continue
        if not isinstance(loaded, Format):
            what = f"is a {type(loaded).__name__}, expected an onert.frontend.Format"
            refusals.append(_refusal(entry.name, entry.value, what))
        elif loaded not in own and loaded not in found:
            found.append(loaded)
    return tuple(map(_guarded, found)), tuple(refusals)


def _refusal(name: str, path: str, what: str) -> str:
    return f"the model format {name!r} at {path} {what}"


def _guarded(format_: Format) -> Format:
    """The format with errors that name it and results that are verified."""
    name = format_.name

    def read(content: Data, path: Path | None) -> Package:
        package = _called(name, format_.load, content, path)
        if not isinstance(package, Package):
            raise ModelError(f"the reader of model format {name!r} returned a {type(package).__name__}, not a Package")
        for model in package.models:
            verify(model)
        return package

    def recognize(head: bytes, path: Path | None) -> bool:
        return bool(_called(name, format_.recognize, head, path))

    def unread(content: Source, path: Path | None) -> Package | None:
        package: Package | None = _called(name, format_.unread, content, path)
        return package

    return evolve(format_, recognize=recognize, load=read, unread=unread)


def _called(name: str, function: Callable[..., Any], *arguments: object) -> Any:
    try:
        return function(*arguments)
    except (OnertError, OSError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"the reader of model format {name!r} failed: {type(error).__name__}: {error}") from error
