"""Reading the model of a session, if need be once the shapes of a run's inputs are known."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from onert.frontend.format import InputShapes
from onert.frontend.onnx.declarations import Declarations, read_declarations
from onert.frontend.onnx.onnx_format import given as read_given
from onert.ir import OnertError, Package
from onert.runtime.api import load
from onert.runtime.errors import ArgumentError

from .choices import SessionOptions
from .errors import InvalidGraph, InvalidProtobuf, NoSuchFile

MOST_RANKS = 32
"""For how many combinations of ranks a session keeps programs."""


def loaded(source: Path | bytes, choices: SessionOptions, shapes: InputShapes) -> tuple[Package, Declarations | None]:
    """The model, read with some shapes of inputs, and its declarations. Errors are ONNX Runtime's."""
    if isinstance(source, Path) and not source.exists():
        raise NoSuchFile(f"there is no file {source}")
    try:
        given = choices.initializers
        package = read_given(source, given, shapes) if given or shapes else load(source)
        return package, read_declarations(source)
    except OnertError as error:
        raise _kind(source)(str(error)) from error


def place(source: Any) -> Path | bytes:
    """The path of a model, or its content. Raises TypeError for anything else."""
    if not isinstance(source, bytes | str | os.PathLike):
        raise TypeError(f"a session is given a {type(source).__name__}, expected a path or bytes")
    return source if isinstance(source, bytes) else Path(os.fspath(source))


def _kind(source: Path | bytes) -> type[ArgumentError]:
    """The error class for a model that cannot be loaded: InvalidGraph if it has a graph, else InvalidProtobuf."""
    try:
        return InvalidProtobuf if read_declarations(source) is None else InvalidGraph
    except (OnertError, OSError):
        return InvalidProtobuf
