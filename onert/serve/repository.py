"""The models of a server: those that it was started with, and those of one folder that it may load."""

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
"""Seconds between two looks at whether a model's requests are answered."""


@frozen
class Loading(Value):
    """How models are put on devices: see `HostManager.add_network`."""

    copies: int | None = 1
    parts: int | None = None
    batch: BatchConfig | None = None


@frozen
class ModelState(Value):
    """A model as the index shows it: `reason` says why it is not ready, if there is something to say."""

    name: str
    state: str
    reason: str = ""


class Repository:
    """Models by name. No request names a path: it names a model, and where that is the server knows.

    `models` are those given when the server is started. `folder` has others: files, and directories that are packages,
    each named by its stem. Files that are hidden, and links out of the folder, are not among them.
    """

    def __init__(
        self,
        host: HostManager,
        models: Mapping[str, Path],
        folder: Path | None = None,
        loading: Loading | None = None,
        patience: float = 30.0,
    ) -> None:
        self.host = host
        self._models = dict(models)
        self._folder = folder.resolve() if folder is not None else None
        self._loading = Loading() if loading is None else loading
        self._patience = patience
        self._lock = Lock()
        self._states: dict[str, ModelState] = {}

    def places(self) -> dict[str, Path]:
        """Where each model is that may be loaded; those that the server was started with come first."""
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
        """Whether requests for a model are taken."""
        found = self._states.get(name)
        return found is not None and found.state == READY

    def require_ready(self, name: str) -> None:
        """ServeError where requests for a model are not taken."""
        if not self.is_ready(name):
            state = self._states.get(name)
            how = "unknown" if state is None else f"{state.state.lower()}{': ' * bool(state.reason)}{state.reason}"
            raise ServeError(HTTPStatus.NOT_FOUND, f"model {name[:200]!r} is {how}")

    def load_all(self) -> None:
        """Load the models that the server was started with; the first error is raised."""
        for name in self._models:
            self.load(name)

    def load(self, name: str) -> None:
        """Load a model; anew where it is loaded already, so that a file that changed is read again.

        ServeError where there is none of this name, or where it is being loaded or unloaded; errors of loading.
        """
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
            # Messages name the file, which is the server's own affair: requests are told the model's name.
            told = str(error).replace(str(place), repr(name)).replace(str(place.parent), "the repository")
            self._settle(name, READY if self.host.network_added(name) else UNAVAILABLE, told)
            if isinstance(error, OnertError):
                raise ServeError(HTTPStatus.BAD_REQUEST, f"model {name!r} cannot be loaded: {told}") from error
            raise
        self._settle(name, READY)

    def unload(self, name: str) -> None:
        """Unload a model when its requests are answered, those that wait included; more are refused at once.

        ServeError where it is not loaded, or where its requests are not answered in time.
        """
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
        """Begin to change a model's state; what it was."""
        with self._lock:
            before = self._states.get(name, ModelState(name, UNAVAILABLE))
            if before.state in (LOADING, UNLOADING):
                raise ServeError(HTTPStatus.CONFLICT, f"model {name!r} is {before.state.lower()}")
            self._states[name] = ModelState(name, state)
            return before.state

    def _settle(self, name: str, state: str, reason: str = "") -> None:
        with self._lock:
            self._states[name] = evolve(self._states[name], state=state, reason=reason)
