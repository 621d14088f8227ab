"""Packages: one model, or several of which some outputs feed others' inputs."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from .content import Content, Models
from .subgraph import Signature, Subgraphs
from .value import Value


@frozen
class Port(Value):
    """An input or an output of a model in a package: the model, the subgraph in it, and the position."""

    model: int
    subgraph: int
    position: int

    def __str__(self) -> str:
        return f"{self.model}:{self.subgraph}:{self.position}"


@frozen
class Connection(Value):
    """An output of one model, and the inputs of other models that it feeds."""

    source: Port
    targets: tuple[Port, ...]


@frozen
class Package(Value):
    """What `load` returns: models, how they are connected, and the package's own configuration.

    With one model, `inputs`, `outputs` and `connections` may be empty: the package then has the model's own inputs and
    outputs. `config` holds the keys and values of the package's configuration file. `name` is what errors call the
    package. If a file's content alone determines the models, a `Content` may be given in their place.
    """

    _models: Models | Content
    name: str = ""
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    connections: tuple[Connection, ...] = ()
    config: Mapping[str, str] = field(factory=dict)
    model_names: tuple[str, ...] = ()

    def __hash__(self) -> int:
        ports = (self.inputs, self.outputs, self.connections)
        return hash((self._models, self.name, *ports, frozenset(self.config.items()), self.model_names))

    def __repr__(self) -> str:
        """The name, and whatever is known without parsing a model."""
        models = f", models {', '.join(map(repr, self.model_names))}" if len(self.model_names) > 1 else ""
        return f"<Package {self.name!r}{models}>"

    @property
    def models(self) -> Models:
        """The models, in order."""
        return self._models.models if isinstance(self._models, Content) else self._models

    @property
    def content(self) -> Content | None:
        """The content that alone determines the models, if there is one."""
        return self._models if isinstance(self._models, Content) else None

    @property
    def model(self) -> Subgraphs:
        """The first model; most packages have no other."""
        return self.models[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was ignored in the files, and why: one sentence each, with the model's name if there are several."""
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
