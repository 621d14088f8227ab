"""Packages: one model, or several of which some outputs feed others' inputs."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from .subgraph import Signature, Subgraphs


@frozen
class Port:
    """An input or an output of a package's model: which model, which subgraph of it, which position."""

    model: int
    subgraph: int
    position: int

    def __str__(self) -> str:
        return f"{self.model}:{self.subgraph}:{self.position}"


@frozen
class Connection:
    """An output of one model that is an input of others."""

    source: Port
    targets: tuple[Port, ...]


@frozen
class Package:
    """What `load` gives: models, how they are connected, and the package's own configuration.

    With one model, `inputs`, `outputs` and `connections` may be empty: the model's own inputs and outputs count.
    `config` holds the keys and values of the package's configuration file. `name` is what errors call it.
    """

    models: tuple[Subgraphs, ...]
    name: str = ""
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    connections: tuple[Connection, ...] = ()
    config: Mapping[str, str] = field(factory=dict)
    model_names: tuple[str, ...] = ()

    @property
    def model(self) -> Subgraphs:
        """The first model, which is the whole of most packages."""
        return self.models[0]

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The first model's signatures by key."""
        return {s.key: s for s in self.models[0].signatures}
