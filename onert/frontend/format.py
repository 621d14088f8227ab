"""What a format of model files is: how its files are recognised and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from onert.ir import Package, Subgraphs
from onert.ir.content import Content, Held, Models, Source
from onert.ir.value import Value

if TYPE_CHECKING:
    from .flatbuffer import Data

GROUP = "onert.frontends"
"""The entry points of formats that other packages bring."""
HEAD = 16
"""Bytes of a file that a format may look at to recognise it."""


def _never(source: Source, path: Path | None) -> Package | None:
    """Nothing is left unread."""
    return None


@frozen
class Format(Value):
    """A kind of model file.

    `recognize` is given the first bytes of a file (none for a directory) and its path (None for bytes in memory).
    `load` is given the whole content (empty for a directory) and the path; it raises ModelError. The content is in
    memory that nobody else can change. `unread` gives the same package for content that is known to be well-formed,
    without reading it before something asks what is in it; None if it cannot. `reader` names the module that `load`
    imports, if any: that can be done while a file is read.
    """

    name: str
    recognize: Callable[[bytes, Path | None], bool]
    load: Callable[[Data, Path | None], Package]
    unread: Callable[[Source, Path | None], Package | None] = _never
    reader: str = ""


def of_one_model(
    name: str,
    recognize: Callable[[bytes, Path | None], bool],
    read: Callable[[Data, Path | None], tuple[Subgraphs, bool]],
    whole: Callable[[Path | None], bool] = lambda path: True,
    reader: str = "",
) -> Format:
    """The format of files with one model, which `read` gives, and whether the content alone says all of it.

    `whole` says whether this is so of every file at a path, so that one may be left unread.
    """

    def load(data: Data, path: Path | None) -> Package:
        model, alone = read(data, path)
        return package_of(Content(Held(data), lambda _: (model,)) if alone else (model,), path)

    def unread(source: Source, path: Path | None) -> Package | None:
        return package_of(Content(source, lambda data: load(data, path).models), path) if whole(path) else None

    return Format(name, recognize, load, unread, reader)


def package_of(models: Models | Content, path: Path | None) -> Package:
    """A package of the models of one file, which is called by the file's name."""
    return Package(models, model_names=() if path is None else (path.name,))
