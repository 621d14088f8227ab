"""Passes and decompositions contributed by other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from types import NoneType
from typing import Any

from attrs import evolve, field, frozen

from onert.ir import CompileError, Op, Subgraph
from onert.ir.errors import call_foreign
from onert.ir.process import imports
from onert.ir.value import Value

from .legalize.decomposition import Decomposition, decompositions
from .rewrite.contract import Pass

GROUP = "onert.passes"
"""The entry-point group of extensions."""
API_VERSION = 1
"""The version of the contract; extensions for another version are rejected."""


@frozen
class Extension(Value):
    """What another package adds to the compiler.

    `passes` run after the compiler's own in each round, and must reach a fixed point. `decompositions` may be for any
    kind and compete with the compiler's: the cheapest whose operations are all better supported than the original wins.
    """

    passes: tuple[Pass, ...] = ()
    decompositions: Mapping[type[Op], tuple[Decomposition, ...]] = field(factory=dict)
    api_version: int = API_VERSION


def load_extensions(given: Iterable[str | Extension]) -> tuple[Extension, ...]:
    """The given extensions; a string names an entry point `onert.passes` or an import path `module:NAME`.

    Raises CompileError for a name that is unknown or installed more than once, a failing import, an object that is not
    an `Extension`, and an extension for another version of the contract.
    """
    return tuple(_load(each) if isinstance(each, str) else _verified(each, "an extension") for each in given)


def _load(name: str) -> Extension:
    path = name if ":" in name else _installed(name)
    module, _, attribute = path.partition(":")
    try:
        found: Any = getattr(imports.module(module), attribute)
    except (Exception, SystemExit) as error:  # third-party code may raise anything
        raise CompileError(f"extension {name!r} at {path} cannot be loaded: {type(error).__name__}: {error}") from error
    return _verified(found, f"extension {name!r} at {path}")


def _verified(found: object, what: str) -> Extension:
    if not isinstance(found, Extension):
        raise CompileError(f"{what} is a {type(found).__name__}, expected an Extension")
    if found.api_version != API_VERSION:
        raise CompileError(f"{what} is for version {found.api_version} of the contract, this is {API_VERSION}")
    return found


def _installed(name: str) -> str:
    """The import path of an entry point."""
    import importlib.metadata as metadata  # noqa: PLC0415 # slow, and needed only for named extensions

    entries = metadata.entry_points(group=GROUP)
    paths = sorted({entry.value for entry in entries if entry.name == name})
    if not paths:
        known = ", ".join(sorted({entry.name for entry in entries})) or "none is installed"
        raise CompileError(f"no extension is called {name!r} ({known}); expected an installed one, or 'module:NAME'")
    if len(paths) > 1:
        raise CompileError(
            f"several extensions are called {name!r}: {' and '.join(paths)}; name one by its import path"
        )
    return paths[0]


def passes_of(extensions: Iterable[Extension]) -> tuple[Pass, ...]:
    """The passes of extensions. Any failure in one becomes a CompileError that names it."""
    passes = (each for extension in extensions for each in extension.passes)
    return tuple(evolve(each, rewrite=_wrapped(each.rewrite, f"pass {each.name}", Subgraph)) for each in passes)


def decompositions_with(extensions: Iterable[Extension]) -> Callable[[type[Op]], tuple[Decomposition, ...]]:
    """A function returning a kind's decompositions, the compiler's first. Failures in others become a CompileError."""
    added = tuple(extensions)
    if not added:
        return decompositions

    def find(kind: type[Op]) -> tuple[Decomposition, ...]:
        name = f"decomposition of {kind.__name__}"
        others = (each for extension in added for each in extension.decompositions.get(kind, ()))
        wrapped = (
            evolve(d, why_not=_wrapped(d.why_not, name, str, NoneType), write=_wrapped(d.write, name, Sequence))
            for d in others
        )
        return (*decompositions(kind), *wrapped)

    return find


def _wrapped(function: Callable[..., Any], name: str, *kinds: type[Any]) -> Callable[..., Any]:
    """Wrap a third-party function: an exception, or a result of none of these types, becomes a CompileError."""

    @wraps(function)
    def called(*arguments: Any) -> Any:
        found = call_foreign(CompileError, lambda: f"{name} of an extension failed", function, *arguments)
        if not isinstance(found, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise CompileError(f"{name} of an extension returned a {type(found).__name__}, expected {expected}")
        return found

    return called
