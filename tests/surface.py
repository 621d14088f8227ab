"""Writes docs/surface.md, the project's public interface: `python tests/surface.py > docs/surface.md`."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

API = {
    "onert": "load, compile, run",
    "onert.ir": "models as values: subgraphs, operations, types, errors",
    "onert.ir.builder": "building models by hand",
    "onert.ir.text": "models as text",
    "onert.exec": "executions, shared arenas, cancelling",
    "onert.exec.observers": "traces, profiles, memory timelines, value ranges",
    "onert.flow": "flows in the style of Myelin",
    "onert.image": "images as inputs and outputs",
    "onert.bundle": "ahead-of-time bundles",
}
"""The modules that applications call."""

CONTRACTS = {
    "onert.backend": "backends (entry points `onert.backends`); `API_VERSION` counts its versions",
    "onert.frontend": "model formats (entry points `onert.frontends`)",
    "onert.flow.library": "transformations of flows and kernels for their operations",
    "onert.compiler.extension": "passes and decompositions (entry points `onert.passes`)",
    "onert.compiler.rewrite.contract": "passes: the properties they require and ensure",
    "onert.compiler.rewrite.edit": "passes: editing a subgraph",
    "onert.compiler.legalize.decomposition": "decompositions",
    "onert.compiler.legalize.draft": "decompositions: writing a graph",
}
"""The modules that plugins are written against."""

HEAD = """# Public interface

Written by `python tests/surface.py > docs/surface.md`; a test fails when it is not up to date, and when a name on this
page lacks a docstring or a type. Operation kinds are on [their own page](ops.md), options [on theirs](options.md).

- **API**: what applications call. It changes incompatibly only with the major version.
- **Plugin contracts**: what third-party backends, formats, passes and decompositions are written against. The contracts
  of backends and of extensions have versions: an incompatible change raises the version, and a plugin for another
  version is refused.
- Every other module is internal: read it, but expect it to change.
"""


def names(module: str) -> tuple[str, ...]:
    """The public names of a module: its `__all__`, or what it defines itself."""
    found = importlib.import_module(module)
    listed: list[str] | None = getattr(found, "__all__", None)
    if listed is not None:
        return tuple(listed)
    own = (n for n, value in vars(found).items() if getattr(value, "__module__", None) == module)
    return tuple(sorted(n for n in own if not n.startswith("_")))


def value(module: str, name: str) -> Any:
    """The value of a public name."""
    return getattr(importlib.import_module(module), name)


def _line(module: str, name: str) -> str:
    found = value(module, name)
    has_words = inspect.ismodule(found) or (callable(found) and not _is_alias(found))
    described = inspect.getdoc(found) if has_words else None
    what = f"| `{name}` | {described.splitlines()[0] if described else ''} |"
    return what.replace("|  |", "| |")


def _is_alias(found: Any) -> bool:
    """Whether this is a type alias, whose documentation is only in the source."""
    return not (inspect.isclass(found) or inspect.isroutine(found))


def described(module: str) -> tuple[tuple[str, Any], ...]:
    """The classes and functions among a module's public names."""
    found = ((name, value(module, name)) for name in names(module))
    return tuple((name, each) for name, each in found if inspect.isclass(each) or inspect.isroutine(each))


def lines() -> Iterator[str]:
    """The page, line by line."""
    yield from HEAD.rstrip("\n").split("\n")
    for title, modules in (("API", API), ("Plugin contracts", CONTRACTS)):
        yield ""
        yield f"## {title}"
        for module, what in modules.items():
            yield ""
            yield f"### `{module}`: {what}"
            yield ""
            yield "| name | |"
            yield "|---|---|"
            yield from (_line(module, name) for name in sorted(names(module)))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
