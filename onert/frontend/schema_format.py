"""TFLite and circle files: how they are told apart, and the packages that they are."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path

from onert.ir import Package
from onert.ir.package import Content, Models, State

from .custom import CUSTOM_OPS
from .flatbuffer import Data
from .registry import Format


def schema_format(name: str, identifier: bytes) -> Format:
    """The format of files of this schema that carry `identifier` behind their first four bytes."""

    def recognize(head: bytes, path: Path | None) -> bool:
        return head[4:8] == identifier

    return Format(name, recognize, _load, _unread)


def _load(data: Data, path: Path | None) -> Package:
    content = Content(data, lambda: (model,), partial(_state, path))  # before: it notes the file's state
    model, alone = importlib.import_module("onert.frontend.model").read_package(data, path)
    return _package(content if alone else (model,), path)


def _unread(data: Data, path: Path | None) -> Package | None:
    return None if CUSTOM_OPS else _package(Content(data, partial(_models, data, path), partial(_state, path)), path)


def _models(data: Data, path: Path | None) -> Models:
    return _load(data, path).models


def _state(path: Path | None) -> State | None:
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _package(models: Models | Content, path: Path | None) -> Package:
    names = () if path is None else (path.name,)
    return Package(models, model_names=names)
