"""Lazily imported names of a package: few programs need them, and imports take time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import imports


def later(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """A module `__getattr__` that imports each name of `places` from the module that it maps to.

    A name that equals the last part of the module's name stands for the module, unless the module defines it. Names
    that the package already has never get here, so `places` may include them.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = imports.module(places[name])
        itself = places[name].endswith(f".{name}") and not hasattr(found, name)
        return found if itself else getattr(found, name)

    return get
