"""Functions of lengths by name, so that a program in the cache can refer to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from onert.ir.process import imports

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PACKAGES = ("onert", "onert_llvm")
"""The packages whose modules are imported by the name of a function."""

_registered: dict[str, Callable[..., Any]] = {}


def of_lengths(function: _Function) -> _Function:
    """Declare a function of a module that computes something from numbers which depend on lengths: a cache may refer to
    it by its name."""
    _registered[_name(function)] = function
    return function


def name_of(function: Callable[..., Any]) -> str | None:
    """The name of a declared function; None for others."""
    name = _name(function)
    return name if _registered.get(name) is function else None


def named(name: str) -> Callable[..., Any]:
    """The declared function with a name. Raises LookupError if there is none."""
    module = name.partition(":")[0]
    if name not in _registered and module.partition(".")[0] in _PACKAGES:
        imports.module(module)
    return _registered[name]


def _name(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
