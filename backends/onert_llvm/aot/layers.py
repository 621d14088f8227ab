"""Layers: the commands of one operation, or of several that are fused; the same in every version."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from onert.backend import Layer, Place, Region

from .bound_commands import Body, Run, calls
from .constant_layout import Constants

LayerKey = tuple[int, int, int]
"""The numbers of a sequence and of an operation, and how many layers of that operation came before this one."""


def layered(sequences: Iterable[tuple[int, Iterable[tuple[int, Run]]]]) -> dict[LayerKey, list[Run]]:
    """The layers of numbered sequences; commands come with the number of their operation."""
    found: dict[LayerKey, list[Run]] = {}
    for number, commands in sequences:
        key = None
        for operation, run in commands:
            if key is None or key[1] != operation:
                times = sum(1 for other in found if other[:2] == (number, operation))
                key = (number, operation, times)
            found.setdefault(key, []).append(run)
    return found


def merged(versions: Sequence[Iterable[LayerKey]]) -> list[LayerKey]:
    """The distinct layers of all versions, in order."""
    found: list[LayerKey] = []
    for version in versions:
        at = 0
        for key in version:
            if key not in found:
                found.insert(at, key)
            at = found.index(key) + 1
    return found


def numbered(versions: Iterable[Sequence[str]], errors: list[str]) -> list[tuple[int, ...]]:
    """The codes of each version's checks: equal sentences have the same code in every version.

    New sentences are appended to `errors`; the n-th one (from 1) has code n.
    """
    first = len(errors)
    found = []
    for sentences in versions:
        codes: list[int] = []
        for sentence in sentences:
            known = (at + 1 for at in range(first, len(errors)) if errors[at] == sentence and at + 1 not in codes)
            code = next(known, None)
            if code is None:
                errors.append(sentence)
                code = len(errors)
            codes.append(code)
        found.append(tuple(codes))
    return found


def described(bodies: Iterable[Body], layers: Sequence[Sequence[LayerKey]], constants: Constants) -> Iterator[Layer]:
    """What callers see of the layers of each entry, taken from its first version."""
    firsts: dict[str, Body] = {}
    for body in bodies:
        firsts.setdefault(body.entry.symbol, body)
    for body, keys in zip(firsts.values(), layers, strict=True):
        for (_, operation, _), runs in zip(keys, body.layers, strict=True):
            kernels = dict.fromkeys(call.symbol for call in calls(runs))
            yield Layer(body.entry.symbol, operation, tuple(kernels), _read(runs, constants.sizes))


def _read(runs: Iterable[Run], sizes: Mapping[int, int]) -> int:
    """The total size in bytes of the constants that commands read."""
    starts = sorted(sizes)
    found = set()
    for call in calls(runs):
        for at, slot in enumerate(call.slots):
            if isinstance(slot, Place) and slot.region is Region.CONSTANTS and at != call.ahead:
                found.add(starts[bisect_right(starts, slot.offset) - 1])
    return sum(sizes[start] for start in found)
