"""Reading the model of a session, if need be once the shapes of a run's inputs are known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onert.frontend.onnx.declarations import Declarations, read_declarations
from onert.frontend.onnx.messages import UnknownRankError, ValueDeclaration
from onert.frontend.onnx.onnx_format import given as read_given
from onert.ir import Array, DType, OnertError, Package, Shape
from onert.ir.shape import MAX_RANK
from onert.runtime.api import load
from onert.runtime.errors import ArgumentError

from .choices import SessionOptions
from .errors import InvalidGraph, InvalidProtobuf, NoSuchFile

MOST_RANKS = 32
"""For how many combinations of ranks a session keeps programs."""


def ranks_are_missing(error: BaseException | None, declared: Declarations | None) -> bool:
    """Whether a model could not be read because a rank is unknown that the inputs of a run may determine."""
    while error is not None and not isinstance(error, UnknownRankError):
        error = error.__cause__
    return error is not None and declared is not None and any(map(_is_open, declared.inputs))


def _is_open(end: ValueDeclaration) -> bool:
    """Whether an input has no declared rank, or is a vector of integers of any length, which may be a shape."""
    type_ = end.type
    if type_ is None or type_.kind != "tensor":
        return False
    vector = type_.dtype in (DType.INT32, DType.INT64) and type_.shape is not None and len(type_.shape) == 1
    return type_.shape is None or (vector and not isinstance(type_.shape[0], int))


def shapes_of(inputs: Sequence[ValueDeclaration], feed: Mapping[str, Array]) -> dict[str, Shape]:
    """The shapes to read a model with: the ranks of inputs without one, and the lengths of short vectors of integers,
    which may be shapes. Other sizes are left open."""
    found: dict[str, Shape] = {}
    for end in filter(_is_open, inputs):
        array = feed.get(end.name)
        if array is not None:
            short = array.ndim == 1 and array.dtype.kind == "i" and len(array) <= MAX_RANK
            found[end.name] = (len(array),) if short else (None,) * array.ndim
    return found


def loaded(
    source: Path | bytes, choices: SessionOptions, shapes: Mapping[str, Shape]
) -> tuple[Package, Declarations | None]:
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
