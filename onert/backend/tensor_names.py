"""The names of inputs and outputs: each answers to its own and to others that are as clear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .program import TensorInfo

_EXPORTED = "serving_default_"
"""What TensorFlow's converter puts before the name that a signature gives, with the output's number behind it."""


def position_named(name: str, infos: Sequence[TensorInfo]) -> int | None:
    """The position of the input or output that answers to a name; None if there is none."""
    for position, info in enumerate(infos):
        if info.name == name:
            return position
    for position, info in enumerate(infos):
        if name in info.other_names:
            return position
    return None


def offered(infos: Sequence[TensorInfo]) -> str:
    """The names that inputs or outputs answer to, for messages."""
    return ", ".join(" or ".join(map(repr, (info.name, *info.other_names))) for info in infos) or "none"


def other_names(names: Sequence[str], candidates: Iterable[tuple[int, str]]) -> tuple[tuple[str, ...], ...]:
    """Beside each of `names` the other names that are clear.

    `candidates` are positions with names for them. One that another position has, as its own name or as another, is
    left out. From `serving_default_x:0` comes `x` too, where nothing else is called so.
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
