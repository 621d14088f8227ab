"""Find backends by entry point or by import path."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

from onert.ir import BackendError, OnertWarning
from onert.ir.process import imports

from .backend import API_VERSION, Backend
from .cache import is_settled

GROUP = "onert.backends"
ALWAYS = ("builtin", "reference")
"""Loaded after every choice: `builtin` for copies and control flow, `reference` for every operation in NumPy."""
PREFERRED = ("llvm",)
"""Tried first if the user names no backend. Other plugins run only what the user assigns to them."""
OWN = {"builtin": "onert_builtin:Builtin", "reference": "onert_reference:Reference", "llvm": "onert_llvm:Llvm"}
"""The project's own backends. A plugin under one of these names replaces it only if the user names it."""


def available() -> Mapping[str, tuple[str, ...]]:
    """The import paths of the installed backends by name, none imported; several paths for a name are a clash.

    They are looked for again when a folder on the path has changed, as an installation changes it.
    """
    folders = tuple((folder, _changed(folder)) for folder in sys.path)
    if all(is_settled(changed) for _, changed in folders):
        return _available(folders)
    return _available.__wrapped__(folders)


def _changed(folder: str) -> int:
    """When a folder or archive was last changed, in nanoseconds since the epoch; 0 if there is none."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _available(_folders: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[str, ...]]:
    """Cached because reading what all packages declare takes ten milliseconds."""
    import importlib.metadata as metadata  # noqa: PLC0415 # slow, and only needed if a plugin is named

    found: dict[str, tuple[str, ...]] = {}
    for entry in metadata.entry_points(group=GROUP):
        others = found.get(entry.name, ())
        if entry.value not in others:  # the same package may be on the path twice
            found[entry.name] = (*others, entry.value)
    return MappingProxyType(found)


def load_backends(names: Iterable[str] = ()) -> tuple[Backend, ...]:
    """The backends that `find_backends` finds, with an OnertWarning for each name that is skipped."""
    found, notes = find_backends(names)
    for note in notes:
        warnings.warn(note, OnertWarning, stacklevel=3)  # points to the caller of `compile`
    return found


def find_backends(names: Iterable[str] = ()) -> tuple[tuple[Backend, ...], tuple[str, ...]]:
    """The backends of these names or import paths in order, and a sentence for each that cannot be loaded.

    Without names, the best installed. `builtin` and `reference` follow unless they are named. A name is skipped if
    nothing is installed under it, if it is ambiguous, if its import fails, or if its backend is made for another
    version of the contract; if no name can be loaded, this raises BackendError. A backend that is not named is this
    project's own, whatever else is installed under its name.
    """
    named = dict.fromkeys(names)
    found: list[Backend] = []
    refusals: list[BackendError] = []
    for name in named:
        try:
            found.append(load_backend(name))
        except BackendError as error:
            refusals.append(error)
    if refusals and not found:
        raise refusals[0] if len(refusals) == 1 else BackendError("; ".join(map(str, refusals)))
    next_ = found[0].name if found else ""
    notes = tuple(f"{refusal}; continuing without it, {next_!r} comes first" for refusal in refusals)
    own = (*(PREFERRED if not named else ()), *ALWAYS)
    imports.ahead(OWN[name].partition(":")[0] for name in own if name not in named)
    for name in own:
        if name not in named and (name in ALWAYS or _is_there(OWN[name])):
            found.append(_made(name, OWN[name]))
    for at, backend in enumerate(found):
        if backend.name in (other.name for other in found[:at]):
            raise BackendError(f"two backends call themselves {backend.name!r}; choose one of them")
    return tuple(found), notes


def _is_there(path: str) -> bool:
    """Whether the package of an import path is installed, even if it is broken."""
    package, _, _ = path.partition(":")
    try:
        imports.module(package)
    except ModuleNotFoundError as error:
        return error.name != package
    except Exception:  # any other problem is reported when the backend is instantiated
        return True
    return True


def load_backend(name: str) -> Backend:
    """One backend by its name or by `package.module:Class`. Raises BackendError if it cannot be loaded."""
    if ":" in name:
        return _made(name, name)
    installed = available()
    paths = installed.get(name, ())
    if not paths:
        known = ", ".join(sorted(installed))
        raise BackendError(f"no backend is called {name!r}, expected one of {known} or an import path 'module:Class'")
    if len(paths) > 1:
        places = " and ".join(paths)
        raise BackendError(f"several backends are called {name!r}: {places}; name one by its import path")
    made = _made(name, paths[0])
    if made.name != name:
        raise BackendError(f"backend {name!r} at {paths[0]} calls itself {made.name!r}, expected {name!r}")
    return made


def _made(name: str, path: str) -> Backend:
    """An instance of the class at an import path. Every failure of a plugin is raised as one BackendError."""
    module, _, attribute = path.partition(":")
    try:
        made = getattr(imports.module(module), attribute)()
    except (
        Exception,
        SystemExit,
    ) as error:  # plugins are foreign code: report whatever they raise in one sentence
        raise BackendError(f"backend {name!r} at {path} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(made, Backend):
        raise BackendError(f"backend {name!r} at {path} is a {type(made).__name__}, expected an onert.backend.Backend")
    if not isinstance(getattr(made, "name", None), str):
        raise BackendError(f"backend {name!r} at {path} has no name")
    own = type(made).__mro__[: type(made).__mro__.index(Backend)]
    if not any("api_version" in vars(kind) for kind in own):
        raise BackendError(
            f"backend {name!r} at {path} does not say which version of the contract it is made for; this is "
            f"{API_VERSION}: write api_version = {API_VERSION}"
        )
    if made.api_version != API_VERSION:
        raise BackendError(
            f"backend {name!r} at {path} is made for version {made.api_version} of the contract, this is {API_VERSION}"
        )
    return made
