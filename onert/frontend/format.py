"""A format of model files: how its files are recognised and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from onert.ir import ModelError, Package, Subgraphs
from onert.ir.content import Content, InMemory, Models, Source
from onert.ir.value import Value

if TYPE_CHECKING:
    from .flatbuffer import Data

GROUP = "onert.frontends"
"""The entry point group of formats from other packages."""
InputShapes = Mapping[int | str, Sequence[int | None]]
"""Shapes of a model's inputs by name or number; None is an open size."""
HEAD = 16
"""The number of leading bytes that are passed to `recognize`."""


class UnknownRankError(ModelError):
    """An operator is given a tensor whose rank depends on the shapes of the model's inputs."""


def ranks_are_missing(error: BaseException | None) -> bool:
    """Whether a model could not be read because a rank is unknown."""
    while error is not None and not isinstance(error, UnknownRankError):
        error = error.__cause__
    return error is not None


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
    be imported while the file is read. `load_of_ranks` reads a model of which `load` says, by an UnknownRankError, that
    ranks depend on the shapes of its inputs; it is given these by name or number.
    """

    name: str
    recognize: Callable[[bytes, Path | None], bool]
    load: Callable[[Data, Path | None], Package]
    unread: Callable[[Source, Path | None], Package | None] = _never
    reader: str = ""
    load_of_ranks: Callable[[Data, Path | None, InputShapes], Package] | None = None


def single_model_format(
    name: str,
    recognize: Callable[[bytes, Path | None], bool],
    read: Callable[[Data, Path | None], tuple[Subgraphs, bool]],
    self_contained: Callable[[Path | None], bool] = lambda path: True,
    reader: str = "",
    read_of_ranks: Callable[[Data, Path | None, InputShapes], Subgraphs] | None = None,
) -> Format:
    """A format whose files hold one model. `read` returns it, and whether the content alone determines it.

    `self_contained` says whether the content alone determines the model for every file at a path; then parsing can be
    deferred. `read_of_ranks` returns the model whose ranks follow from shapes of inputs.
    """

    def load(data: Data, path: Path | None) -> Package:
        model, alone = read(data, path)
        return package_of(Content(InMemory(data), lambda _: (model,)) if alone else (model,), path)

    def unread(source: Source, path: Path | None) -> Package | None:
        return package_of(Content(source, lambda data: load(data, path).models), path) if self_contained(path) else None

    def load_of_ranks(data: Data, path: Path | None, input_shapes: InputShapes) -> Package:
        assert read_of_ranks is not None
        return package_of((read_of_ranks(data, path, input_shapes),), path)

    return Format(name, recognize, load, unread, reader, load_of_ranks if read_of_ranks is not None else None)


def package_of(models: Models | Content, path: Path | None) -> Package:
    """A package of the models in one file, named after the file."""
    return Package(models, model_names=() if path is None else (path.name,))
