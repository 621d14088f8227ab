"""Writes docs/surface.md, what of the project others may rely on: `python tests/surface.py > docs/surface.md`."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

API = {
    "onert": "load, compile, run",
    "onert.ir": "models as values: subgraphs, operations, types, errors",
    "onert.ir.builder": "making models by hand",
    "onert.ir.text": "models as text",
    "onert.exec": "executions, shared arenas, cancelling",
    "onert.exec.observers": "traces, profiles, memory timelines, value ranges",
    "onert.flow": "flows in the manner of Myelin",
    "onert.image": "images as inputs and outputs",
    "onert.bundle": "ahead-of-time bundles",
}
"""What applications call, by module."""

CONTRACTS = {
    "onert.backend": "backends (entry points `onert.backends`); `API_VERSION` counts its versions",
    "onert.frontend": "model formats (entry points `onert.frontends`)",
    "onert.flow.library": "transformations of flows and kernels for their operations",
    "onert.compiler.extension": "passes and decompositions (entry points `onert.passes`)",
    "onert.compiler.rewrite.contract": "passes: what they require and ensure",
    "onert.compiler.rewrite.edit": "passes: editing a subgraph",
    "onert.compiler.legalize.decomposition": "decompositions",
    "onert.compiler.legalize.draft": "decompositions: writing a graph",
}
"""What plugins are written against, by module."""

HEAD = """# What others may rely on

Written by `python tests/surface.py > docs/surface.md`; a test fails when it is not up to date, and when a name on this
page lacks a docstring or a type. Operation kinds are on [their own page](ops.md), options [on theirs](options.md).

- **API**: what applications call. It changes in a way that breaks callers only with the first number of the version.
- **Plugin contracts**: what backends, formats, passes and decompositions of others are written against. The
  contracts of backends and of extensions have versions: a change that breaks one raises it, and a plugin for another
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
    """What a public name stands for."""
    return getattr(importlib.import_module(module), name)


def _line(module: str, name: str) -> str:
    found = value(module, name)
    has_words = inspect.ismodule(found) or (callable(found) and not _is_alias(found))
    described = inspect.getdoc(found) if has_words else None
    what = f"| `{name}` | {described.splitlines()[0] if described else ''} |"
    return what.replace("|  |", "| |")


def _is_alias(found: Any) -> bool:
    """Whether this is a type alias, which has its documentation in the source."""
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
