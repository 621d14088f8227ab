"""Two reports side by side: of two models, or of one model with two sets of options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from onert import frontend
from onert.compiler import Options
from onert.ir import Package
from onert.ir.process.cpus import MAX_THREADS
from onert.tools.arguments import backend_names
from onert.tools.exits import UsageError

from .report import report


@frozen(eq=False)
class Side:
    """One side of a comparison: a package, its path, and the options to compile it with."""

    path: Path
    package: Package
    options: Options


def reports(sides: Sequence[Side], *, profile: bool, graphs: bool) -> list[dict[str, Any]]:
    """A report of each side."""
    return [report(side.path, side.package, side.options, profile=profile, graphs=graphs) for side in sides]


def other(text: str, first: Side) -> Side:
    """The side to compare with `first`: the model in a file, or the same with options `name=value`, comma-separated.
    Raises UsageError for unknown options or invalid values, and ModelError for a file that is not a model."""
    path = Path(text)
    if path.exists() or "=" not in text:
        return Side(path, frontend.load(path, input_shapes=first.options.input_shapes), first.options)
    return Side(first.path, first.package, first.options.choose(**_chosen(text)))


def _chosen(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        if name not in _READ:
            known = ", ".join(_READ)
            raise UsageError(
                f"--compare is {text!r}, with unknown option {name!r}; expected a model or some of {known}"
            )
        if name in found:
            raise UsageError(f"--compare sets {name} twice")
        found[name] = _READ[name](name, value)
    return found


def _words(name: str, value: str) -> str:
    if not value:
        raise UsageError(f"--compare sets {name} without a value")
    return value


def _count(name: str, value: str) -> int:
    if not value.isdecimal() or len(value) > 6 or not 1 <= int(value) <= MAX_THREADS:
        raise UsageError(f"--compare sets {name} to {value!r}, expected a number from 1 to {MAX_THREADS}")
    return int(value)


def _truth(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise UsageError(f"--compare sets {name} to {value!r}, expected true or false")
    return value.lower() == "true"


def _list(name: str, value: str) -> tuple[str, ...]:
    return backend_names(_words(name, value))


_READ: dict[str, Callable[[str, str], Any]] = {
    "backends": _list,
    "disabled_passes": lambda name, value: frozenset(_list(name, value)),
    "executor": _words,
    "num_threads": _count,
    "optimize": _truth,
    "planner": _words,
    "signature": _words,
}
"""The options that may differ between the sides, and the parsers of their values."""
