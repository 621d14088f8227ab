"""A format of model files: how its files are recognised and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from onert.ir import Package, Subgraphs
from onert.ir.content import Content, InMemory, Models, Source
from onert.ir.value import Value

if TYPE_CHECKING:
    from .flatbuffer import Data

GROUP = "onert.frontends"
"""The entry point group of formats from other packages."""
HEAD = 16
"""The number of leading bytes that are passed to `recognize`."""


def _never(source: Source, path: Path | None) -> Package | None:
    """The default of `unread`: every file is read."""
    return None


@frozen
class Format(Value):
    """A model file format.

    `recognize` gets the first bytes of a file (none for a directory) and its path (None for bytes in memory).
    `load` gets the whole content (empty for a directory) and the path; it raises ModelError. The content is in private
    memory that nothing else can modify. `unread` returns the same package for content that is known to be well-formed,
    parsing it only on demand; None if it cannot. `reader` names the module that `load` imports, if any, so that it can
    be imported while the file is read.
    """

    name: str
    recognize: Callable[[bytes, Path | None], bool]
    load: Callable[[Data, Path | None], Package]
    unread: Callable[[Source, Path | None], Package | None] = _never
    reader: str = ""


def single_model_format(
    name: str,
    recognize: Callable[[bytes, Path | None], bool],
    read: Callable[[Data, Path | None], tuple[Subgraphs, bool]],
    self_contained: Callable[[Path | None], bool] = lambda path: True,
    reader: str = "",
) -> Format:
    """A format whose files hold one model. `read` returns it, and whether the content alone determines it.

    `self_contained` says whether the content alone determines the model for every file at a path; then parsing can be
    deferred.
    """

    def load(data: Data, path: Path | None) -> Package:
        model, alone = read(data, path)
        return package_of(Content(InMemory(data), lambda _: (model,)) if alone else (model,), path)

    def unread(source: Source, path: Path | None) -> Package | None:
        return package_of(Content(source, lambda data: load(data, path).models), path) if self_contained(path) else None

    return Format(name, recognize, load, unread, reader)


def package_of(models: Models | Content, path: Path | None) -> Package:
    """A package of the models in one file, named after the file."""
    return Package(models, model_names=() if path is None else (path.name,))
