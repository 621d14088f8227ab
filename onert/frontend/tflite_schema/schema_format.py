"""TFLite and circle files: how they are told apart, and the packages that they are."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from onert.frontend.format import Format
from onert.ir import Package
from onert.ir.content import Content, Held, Models, Source
from onert.ir.process import imports

from .custom_ops import CUSTOM_OPS

if TYPE_CHECKING:
    from onert.frontend.flatbuffer import Data


_READER = "onert.frontend.tflite_schema.model"


def schema_format(name: str, identifier: bytes) -> Format:
    """The format of files of this schema that carry `identifier` behind their first four bytes."""

    def recognize(head: bytes, path: Path | None) -> bool:
        return head[4:8] == identifier

    return Format(name, recognize, _load, _unread, _READER)


def _load(data: Data, path: Path | None) -> Package:
    model, alone = imports.module(_READER).read_package(data, path)
    return _package(Content(Held(data), lambda _: (model,)) if alone else (model,), path)


def _unread(source: Source, path: Path | None) -> Package | None:
    return None if CUSTOM_OPS else _package(Content(source, partial(_models, path)), path)


def _models(path: Path | None, data: Data) -> Models:
    return _load(data, path).models


def _package(models: Models | Content, path: Path | None) -> Package:
    names = () if path is None else (path.name,)
    return Package(models, model_names=names)
