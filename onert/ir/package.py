"""Packages: one model, or several of which some outputs feed others' inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property

from attrs import field, frozen

from .errors import ModelError
from .subgraph import Signature, Subgraphs
from .value import Value


@frozen
class Port(Value):
    """An input or an output of a package's model: which model, which subgraph of it, which position."""

    model: int
    subgraph: int
    position: int

    def __str__(self) -> str:
        return f"{self.model}:{self.subgraph}:{self.position}"


@frozen
class Connection(Value):
    """An output of one model that is an input of others."""

    source: Port
    targets: tuple[Port, ...]


Models = tuple[Subgraphs, ...]

State = tuple[int, int, int]
"""A file's number in its file system, its size in bytes, and when it was last written to in nanoseconds."""

_ENDS = 1 << 12


class Content:
    """The whole content of a model file, and the models in it, which are read when somebody asks for them.

    Nothing else decides what these are: two contents with one digest have the same models. `state` tells which file is
    mapped into memory, its size and when it was written to; None where there is none, or none any more. `preparation`
    is how many seconds it took to get ready to compile the models, which is part of what it costs to do that again.
    """

    preparation = 0.0

    def __init__(self, data: memoryview, read: Callable[[], Models], state: Callable[[], State | None]) -> None:
        self._data = data
        self._read = read
        self._state = state
        self._before = state()

    @cached_property
    def models(self) -> Models:
        """The models; ModelError where the content is malformed, or not what its digest was made of."""
        if "digest" in self.__dict__ and not self.stays:
            raise ModelError("the file was written to after it was loaded; load it again")
        return self._read()

    @property
    def stays(self) -> bool:
        """Whether the content is sure to be what it was. A file that was removed or replaced stays mapped as it was."""
        before, after = self._before, self._state()
        if before is None or after is None or before == after or before[0] != after[0]:
            return True
        known = before[1] == after[1] and "digest" in self.__dict__
        return known and hashlib.sha256(self._data).hexdigest() == self.digest

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all bytes."""
        return hashlib.sha256(self._data).hexdigest()

    @property
    def outline(self) -> str:
        """Tells most contents apart by a few of their bytes."""
        ends = hashlib.sha256(self._data[:_ENDS])
        ends.update(self._data[-_ENDS:])
        return f"{len(self._data)} {ends.hexdigest()}"

    def __eq__(self, other: object) -> bool:
        return self.models == (other.models if isinstance(other, Content) else other)

    def __hash__(self) -> int:
        return hash(self.models)

    def __repr__(self) -> str:
        return repr(self.models)


@frozen
class Package(Value):
    """What `load` gives: models, how they are connected, and the package's own configuration.

    With one model, `inputs`, `outputs` and `connections` may be empty: the model's own inputs and outputs count.
    `config` holds the keys and values of the package's configuration file. `name` is what errors call it. Models that
    are all that a file's content says may be given as that.
    """

    _models: Models | Content
    name: str = ""
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    connections: tuple[Connection, ...] = ()
    config: Mapping[str, str] = field(factory=dict)
    model_names: tuple[str, ...] = ()

    @property
    def models(self) -> Models:
        """The models in their order."""
        return self._models.models if isinstance(self._models, Content) else self._models

    @property
    def content(self) -> Content | None:
        """The content that says all of the models, where there is one."""
        return self._models if isinstance(self._models, Content) else None

    @property
    def model(self) -> Subgraphs:
        """The first model, which is the whole of most packages."""
        return self.models[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What in the files was ignored, and why: one sentence each, naming the model where there are several."""
        models = self.models
        names = self.model_names if len(models) > 1 and len(self.model_names) == len(models) else ("",) * len(models)
        return tuple(
            f"{name}: {note}" if name else note
            for name, model in zip(names, models, strict=True)
            for note in model.notes
        )

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The first model's signatures by key."""
        return {s.key: s for s in self.models[0].signatures}
