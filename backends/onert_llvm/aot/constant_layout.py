"""The constants of an object file: every distinct array once, laid out for the weights file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from attrs import frozen

from onert.backend import Place, Region, Symbol
from onert.ir import Array

_SMALL = 256
"""Arrays smaller than this many bytes fill the gaps that aligning the others leaves."""

_ALIGNMENT, _SMALL_ALIGNMENT = 64, 16

Key = tuple[int, int, int, str, int]
"""The numbers of a version of the code, an entry point and one of its sequences, then a memory area and the index of an
array in it."""

CONTENT_BYTES = 16
"""Size of the content ID at the end of the constants, which says which object they belong to."""


@frozen(eq=False)
class Constants:
    """The bytes of all constants, the offset of each array, and their names.

    `data` ends with room for the content ID. `sizes` maps an array's offset to its size in bytes, `read` a version to
    the number of bytes that it reads.
    """

    data: bytes
    offsets: Mapping[Key, int]
    symbols: tuple[Symbol, ...]
    sizes: Mapping[int, int]
    read: Mapping[int, int]


def lay_out(arrays: Iterable[tuple[Key, str, Array]]) -> Constants:
    """Lay out arrays, given with the keys by which they are looked up and their names.

    Equal arrays share one place, and a small one may share the start of another small one. Arrays are aligned to 64
    bytes, small ones to 16.
    """
    given = [(key, name, np.ascontiguousarray(array)) for key, name, array in arrays]
    contents = [array.tobytes() for _, _, array in given]
    place = _places(dict.fromkeys(contents))
    size = max((place[c] + len(c) for c in contents), default=0)
    data = bytearray(-(-(size + CONTENT_BYTES) // _ALIGNMENT) * _ALIGNMENT)
    for content, offset in place.items():
        data[offset : offset + len(content)] = content
    offsets = {key: place[content] for (key, _, _), content in zip(given, contents, strict=True)}
    symbols = {
        (name, place[content]): Symbol(name, Place(Region.CONSTANTS, place[content]), array.size)
        for (_, name, array), content in zip(given, contents, strict=True)
    }
    named = tuple(sorted(_named_apart(symbols.values()), key=lambda s: s.place.offset))
    own: dict[int, set[bytes]] = {}
    for (key, _, _), content in zip(given, contents, strict=True):
        own.setdefault(key[0], set()).add(content)
    sizes: dict[int, int] = {}
    for content, offset in place.items():
        sizes[offset] = max(len(content), sizes.get(offset, 0))
    return Constants(bytes(data), offsets, named, sizes, {at: sum(map(len, some)) for at, some in own.items()})


def _places(contents: Iterable[bytes]) -> dict[bytes, int]:
    """An offset for every content: large ones in the given order, small ones in the gaps."""
    large = [c for c in contents if len(c) >= _SMALL]
    small = sorted((c for c in contents if len(c) < _SMALL), key=len, reverse=True)
    place: dict[bytes, int] = {}
    gaps: list[tuple[int, int]] = []
    end = 0
    for content in large:
        place[content] = end
        filled = end + len(content)
        end = -(-filled // _ALIGNMENT) * _ALIGNMENT
        gaps.append((-(-filled // _SMALL_ALIGNMENT) * _SMALL_ALIGNMENT, end))
    for content in small:
        same = next((o for other, o in place.items() if len(other) < _SMALL and other.startswith(content)), None)
        if same is not None:
            place[content] = same
            continue
        found = next((i for i, (start, stop) in enumerate(gaps) if stop - start >= len(content)), None)
        start, stop = (end, end) if found is None else gaps.pop(found)
        place[content] = start
        after = -(-(start + len(content)) // _SMALL_ALIGNMENT) * _SMALL_ALIGNMENT
        if found is None:
            end = after
        else:
            gaps.insert(found, (after, stop))
    return place


def _named_apart(symbols: Iterable[Symbol]) -> list[Symbol]:
    """The symbols, with a number appended to a name that occurred before."""
    seen: dict[str, int] = {}
    found = []
    for symbol in symbols:
        count = seen[symbol.name] = seen.get(symbol.name, 0) + 1
        name = symbol.name if count == 1 else f"{symbol.name}#{count}"
        found.append(Symbol(name, symbol.place, symbol.elements))
    return found
