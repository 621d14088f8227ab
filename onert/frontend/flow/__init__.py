"""Flow files of Myelin: each function is a subgraph, and a signature of its name."""

from __future__ import annotations

from pathlib import Path

from onert.frontend.flatbuffer import Data
from onert.frontend.format import Format
from onert.ir import Package
from onert.ir.content import Content, Held, Models, Source
from onert.ir.process import imports

MAGIC = b"flow"


def _recognize(head: bytes, path: Path | None) -> bool:
    return head.startswith(MAGIC)


def _models(data: Data) -> Models:
    return (imports.module("onert.frontend.flow.model").read_model(data),)


def _load(data: Data, path: Path | None) -> Package:
    models = _models(data)
    return _package(Content(Held(data), lambda _: models), path)


def _unread(source: Source, path: Path | None) -> Package | None:
    return _package(Content(source, _models), path)


def _package(models: Content, path: Path | None) -> Package:
    return Package(models, model_names=() if path is None else (path.name,))


FORMAT = Format("flow", _recognize, _load, _unread)
