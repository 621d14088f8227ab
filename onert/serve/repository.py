"""The models of a server: those it was started with, and those in a folder that it may load."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from threading import Lock

from attrs import evolve, frozen

import onert
from onert.compiler import Options
from onert.host import BatchConfig, HostManager, NetworkBusyError
from onert.ir import OnertError
from onert.ir.value import Value

from .errors import ServeError

READY, LOADING, UNLOADING, UNAVAILABLE = "READY", "LOADING", "UNLOADING", "UNAVAILABLE"
_MOST_MODELS = 10_000
_PAUSE = 0.005
"""Seconds between checks whether all requests of a model are answered."""


@frozen
class Loading(Value):
    """How models are placed on devices; see `HostManager.add_network`."""

    copies: int | None = 1
    parts: int | None = None
    batch: BatchConfig | None = None


@frozen
class ModelState(Value):
    """A model in the index. `reason` says why it is not ready, if known."""

    name: str
    state: str
    reason: str = ""


class Repository:
    """Models by name. Requests contain only names of models, never paths.

    `models` are those that the server was started with. `folder` has others: files and package directories, each named
    by its stem. Hidden files, and links that lead out of the folder, are ignored.
    """

    def __init__(
        self, host: HostManager, models: Mapping[str, Path], folder: Path | None, loading: Loading, patience: float
    ) -> None:
        self.host = host
        self._models = dict(models)
        self._folder = folder.resolve() if folder is not None else None
        self._loading = loading
        self._patience = patience
        self._lock = Lock()
        self._states: dict[str, ModelState] = {}

    def places(self) -> dict[str, Path]:
        """The paths of all models that may be loaded. Those that the server was started with take precedence."""
        found = dict(self._models)
        if self._folder is not None and self._folder.is_dir():
            for each in sorted(self._folder.iterdir())[:_MOST_MODELS]:
                if not each.name.startswith(".") and each.resolve().is_relative_to(self._folder):
                    found.setdefault(each.stem, each)
        return found

    def index(self) -> tuple[ModelState, ...]:
        """All models and their states."""
        names = self.places()
        with self._lock:
            states = dict(self._states)
        return tuple(states.get(name, ModelState(name, UNAVAILABLE)) for name in {**names, **states})

    def is_ready(self, name: str) -> bool:
        """Whether requests for a model are accepted."""
        found = self._states.get(name)
        return found is not None and found.state == READY

    def require_ready(self, name: str) -> None:
        """Raises ServeError unless requests for a model are accepted."""
        if not self.is_ready(name):
            state = self._states.get(name)
            how = "unknown" if state is None else f"{state.state.lower()}{': ' * bool(state.reason)}{state.reason}"
            raise ServeError(HTTPStatus.NOT_FOUND, f"model {name[:200]!r} is {how}")

    def load_all(self) -> None:
        """Load the models that the server was started with. Raises the first error."""
        for name in self._models:
            self.load(name)

    def load(self, name: str) -> None:
        """Load a model, or load it again, so that a changed file is read. Raises ServeError if there is no model of
        this name, if it is being loaded or unloaded, or if loading fails, and NetworkBusyError as `unload` does."""
        place = self.places().get(name)
        if place is None:
            raise ServeError(HTTPStatus.NOT_FOUND, f"there is no model {name[:200]!r} in the repository")
        before = self._change(name, LOADING)
        try:
            package = onert.load(place)
            if before == READY:
                self._remove(name)
            chosen = self._loading
            self.host.add_network(
                name,
                package,
                options=Options.from_environment(),
                copies=chosen.copies,
                parts=chosen.parts,
                batch=chosen.batch,
            )
        except BaseException as error:
            # Messages contain the model's path, which clients must not learn: replace it by the name.
            told = str(error).replace(str(place), repr(name)).replace(str(place.parent), "the repository")
            self._settle(name, READY if self.host.network_added(name) else UNAVAILABLE, told)
            if isinstance(error, OnertError) and not isinstance(error, NetworkBusyError):
                raise ServeError(HTTPStatus.BAD_REQUEST, f"model {name!r} cannot be loaded: {told}") from error
            raise
        self._settle(name, READY)

    def unload(self, name: str) -> None:
        """Unload a model after its active and waiting requests are answered; new ones are rejected at once. Raises
        ServeError if it is not loaded, and NetworkBusyError if its requests are not answered in time."""
        if not self.is_ready(name):
            raise ServeError(HTTPStatus.BAD_REQUEST, f"model {name[:200]!r} is not loaded")
        self._change(name, UNLOADING)
        try:
            self._remove(name)
        except BaseException as error:
            self._settle(name, READY, str(error))
            raise
        self._settle(name, UNAVAILABLE, "unloaded")

    def _remove(self, name: str) -> None:
        end = time.monotonic() + self._patience
        while True:
            try:
                self.host.remove_network(name)
                return
            except NetworkBusyError:
                if time.monotonic() >= end:
                    raise
            time.sleep(_PAUSE)

    def _change(self, name: str, state: str) -> str:
        """Set a model's state for the duration of a change. Returns the previous state."""
        with self._lock:
            before = self._states.get(name, ModelState(name, UNAVAILABLE))
            if before.state in (LOADING, UNLOADING):
                raise ServeError(HTTPStatus.CONFLICT, f"model {name!r} is {before.state.lower()}")
            self._states[name] = ModelState(name, state)
            return before.state

    def _settle(self, name: str, state: str, reason: str = "") -> None:
        with self._lock:
            self._states[name] = evolve(self._states[name], state=state, reason=reason)
