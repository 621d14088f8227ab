"""The names of inputs and outputs: each has its own name and further unambiguous ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .program import TensorInfo

_EXPORTED = "serving_default_"
"""The prefix that TensorFlow's converter puts before a signature's name; the output's number follows the name."""


def position_named(name: str, infos: Sequence[TensorInfo]) -> int | None:
    """The position of the input or output with this name; None if there is none."""
    for position, info in enumerate(infos):
        if info.name == name:
            return position
    for position, info in enumerate(infos):
        if name in info.other_names:
            return position
    return None


def offered(infos: Sequence[TensorInfo]) -> str:
    """All valid names of these inputs or outputs, for messages."""
    return ", ".join(" or ".join(map(repr, (info.name, *info.other_names))) for info in infos) or "none"


def other_names(names: Sequence[str], candidates: Iterable[tuple[int, str]]) -> tuple[tuple[str, ...], ...]:
    """For each of `names`, the other names that are unambiguous.

    `candidates` are positions with further names for them. A candidate that is also a name of another position is left
    out. `serving_default_x:0` yields `x` too, unless something else has that name.
    """
    owners: dict[str, set[int]] = {}
    for position, name in candidates:
        owners.setdefault(name, set()).add(position)
    short: dict[str, set[int]] = {}
    for position, name in (*enumerate(names), *((p, n) for n, where in owners.items() for p in where)):
        if name.startswith(_EXPORTED):
            short.setdefault(name.removeprefix(_EXPORTED).rpartition(":")[0] or name, set()).add(position)
    found: Mapping[int, list[str]] = {position: [] for position in range(len(names))}
    own = set(names)
    for name, where in (*owners.items(), *((n, w) for n, w in short.items() if n not in owners)):
        if name and name not in own and len(where) == 1:
            found[next(iter(where))].append(name)
    return tuple(map(tuple, found.values()))
