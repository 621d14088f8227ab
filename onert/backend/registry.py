"""Finding backends: by entry point, or by import path."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from importlib import metadata

from onert.ir import BackendError

from .backend import API_VERSION, Backend

GROUP = "onert.backends"
ALWAYS = ("builtin", "reference")
"""What is loaded behind every choice: copies and control flow, and every operation in NumPy."""
PREFERRED = ("llvm",)
"""What is tried first where the user names nothing; other plugins run only what they are asked to."""
OWN = {"builtin": "onert_builtin:Builtin", "reference": "onert_reference:Reference", "llvm": "onert_llvm:Llvm"}
"""The project's own backends: a plugin under one of their names does not take their place unasked."""


def available() -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
    """The installed backends by name, none imported; more than one entry for a name is a clash."""
    found: dict[str, tuple[metadata.EntryPoint, ...]] = {}
    for entry in metadata.entry_points(group=GROUP):
        others = found.get(entry.name, ())
        if all(entry.value != other.value for other in others):  # the same package may be on the path twice
            found[entry.name] = (*others, entry)
    return found


def load_backends(names: Iterable[str] = ()) -> tuple[Backend, ...]:
    """The backends of these names or import paths in order, the best installed where there are none.

    `builtin` and `reference` follow where they are not named. BackendError for a name that nothing is installed under,
    a clash, an import that fails, or a backend made for another version of the contract. What no one named is this
    project's own, whatever else is installed under its name.
    """
    installed = available()
    named = dict.fromkeys(names)
    found = [load_backend(name, installed) for name in named]
    for name in (*(PREFERRED if not named else ()), *ALWAYS):
        own = tuple(entry for entry in installed.get(name, ()) if entry.value == OWN[name])
        if name not in named and (own or name in ALWAYS):
            found.append(load_backend(name, {name: own}))
    for at, backend in enumerate(found):
        if backend.name in (other.name for other in found[:at]):
            raise BackendError(f"two backends call themselves {backend.name!r}; choose one of them")
    return tuple(found)


def load_backend(name: str, installed: Mapping[str, tuple[metadata.EntryPoint, ...]] | None = None) -> Backend:
    """One backend by its name or by `package.module:Class`; BackendError as for `load_backends`."""
    if ":" in name:
        return _made(name, name)
    entries = (available() if installed is None else installed).get(name, ())
    if not entries:
        known = ", ".join(sorted(available()))
        raise BackendError(f"no backend is called {name!r}, expected one of {known} or an import path 'module:Class'")
    if len(entries) > 1:
        places = " and ".join(entry.value for entry in entries)
        raise BackendError(f"several backends are called {name!r}: {places}; name one by its import path")
    made = _made(name, entries[0].value)
    if made.name != name:
        raise BackendError(f"backend {name!r} at {entries[0].value} calls itself {made.name!r}, expected {name!r}")
    return made


def _made(name: str, path: str) -> Backend:
    """An instance of the class at an import path; whatever goes wrong in a plugin becomes one BackendError."""
    module, _, attribute = path.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except (
        Exception,
        SystemExit,
    ) as error:  # a plugin is a stranger's code: any of its failures is its own, told in one sentence
        raise BackendError(f"backend {name!r} at {path} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(made, Backend):
        raise BackendError(f"backend {name!r} at {path} is a {type(made).__name__}, expected an onert.backend.Backend")
    if not isinstance(getattr(made, "name", None), str):
        raise BackendError(f"backend {name!r} at {path} has no name")
    if made.api_version != API_VERSION:
        raise BackendError(
            f"backend {name!r} at {path} is made for version {made.api_version} of the contract, this is {API_VERSION}"
        )
    return made
