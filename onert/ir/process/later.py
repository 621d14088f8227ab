"""Names of a package that are read when somebody asks for them: few programs need them, and imports take time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import imports


def later(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` that takes names from the modules that `places` says.

    The last part of a module's own name stands for the module, unless it has something of that name. Names that the
    package has already are never asked for, so `places` may list them.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = imports.module(places[name])
        itself = places[name].endswith(f".{name}") and not hasattr(found, name)
        return found if itself else getattr(found, name)

    return get
