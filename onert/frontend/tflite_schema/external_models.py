"""Models in other files, for operators that run another model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import field, frozen

from onert.frontend.files import open_file, path_beside, resolved
from onert.frontend.flatbuffer import Data
from onert.ir import ModelError, Subgraph, Subgraphs
from onert.ir.link import renumber
from onert.ir.process.budget import Budget
from onert.ir.value import ByIdentity, Value

MAX_DEPTH = 8
MAX_SUBGRAPHS = 1 << 12

Read = Callable[[Data, "ExternalModels"], Subgraphs]
"""Reads a model, given the models it may run."""


@frozen
class Chain(Value):
    """The chain of files being read, outermost first, and the models already read."""

    files: tuple[Path, ...] = ()
    found: dict[Path, Subgraphs] = field(factory=dict)


@frozen(eq=False)
class ExternalModels(ByIdentity):
    """The files beside a model, and the subgraphs appended to the model from them.

    `path` is the model's own file, None for a model in memory; `own` is the number of its own subgraphs. Only files in
    the model's folder or below it can be named.
    """

    path: Path | None
    read: Read
    own: int = 0
    budget: Budget | None = None
    chain: Chain = field(factory=Chain)
    appended: list[Subgraph] = field(factory=list)
    _entries: dict[tuple[Path, str], int] = field(factory=dict)

    def entry(self, location: str, signature: str) -> int:
        """The index of the subgraph that a call of another model enters: a signature's, or the first one.

        Raises ModelError if the path leaves the folder, the file cannot be read, files run one another in a cycle, or
        the model does not have the signature.
        """
        path = self._place(location)
        if (path, signature) not in self._entries:
            model = self._model(path, location)
            first = self.own + len(self.appended)
            if first + len(model) > MAX_SUBGRAPHS:
                raise ModelError(f"the models that it runs have more than {MAX_SUBGRAPHS} subgraphs in total")
            if self.budget is not None:
                self.budget.spend(sum(1 + len(graph.operations) for graph in model.subgraphs), "adding other models")
            number = {index: first + index for index in range(len(model))}
            self.appended.extend(renumber(graph, number) for graph in model.subgraphs)
            self._entries.update({(path, s.key): number[s.subgraph] for s in model.signatures})
            self._entries[path, ""] = number[0]
        if (path, signature) not in self._entries:
            raise ModelError(f"{location} has no signature {signature!r}")
        return self._entries[path, signature]

    def _place(self, location: str) -> Path:
        if self.path is None:
            raise ModelError(f"the model {location!r} is to be run, but this model was not loaded from a file")
        return path_beside(self.path, location)

    def _model(self, path: Path, location: str) -> Subgraphs:
        files = (*self.chain.files, resolved(self.path or path))
        if path in files:
            raise ModelError(f"the model {location!r} runs itself")
        if len(files) > MAX_DEPTH:
            raise ModelError(f"models run one another more than {MAX_DEPTH} deep")
        if path not in self.chain.found:
            try:
                content = open_file(path).data
            except ModelError as error:
                raise ModelError(f"the model {location!r} {error}") from error
            if not content:
                raise ModelError(f"the model {location!r} cannot be read: it is empty")
            try:
                inner = ExternalModels(path, self.read, chain=Chain(files, self.chain.found))
                self.chain.found[path] = self.read(content, inner)
            except ModelError as error:
                raise ModelError(f"the model {location!r}: {error}") from error
        return self.chain.found[path]

    def for_model(self, own: int, budget: Budget) -> ExternalModels:
        """The same files for a model with `own` subgraphs that is read within `budget`."""
        return ExternalModels(self.path, self.read, own, budget, self.chain)
