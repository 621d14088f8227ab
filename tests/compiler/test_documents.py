"""Hand-written documents: each is rejected unless all of it is consistent."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from compiler.test_encoding import OWN, Point, equal
from onert.compiler.program_cache.decoding import DecodeError, decode
from onert.compiler.program_cache.encoding import HEAD


def by_hand(groups: Sequence[tuple[str, int, int]], text: bytes, *numbers: Sequence[Any]) -> bytes:
    """A document of groups (kind, number of nodes, references per node), its text, and its references, integers and
    floats."""
    names = "\n".join(kind for kind, _, _ in groups).encode()
    integers = numbers[1] if len(numbers) > 1 else ()
    pieces = [names, text, *(np.array(n, t).tobytes() for n, t in zip(numbers, ("<u4", "<i8", "<f8"), strict=False))]
    references = len(pieces[2]) if len(pieces) > 2 else 0
    content = HEAD.pack(len(groups), len(names), len(text), references, len(integers))
    content += b"".join(struct.pack("<3q", at, *group[1:]) for at, group in enumerate(groups))
    return content + b"".join(piece + bytes(-len(piece) % 8) for piece in pieces)


BY_HAND: dict[str, tuple[bytes, Any]] = {
    "an integer": (by_hand([("int", 1, 0), ("root", 1, 1)], b"", [3], [5]), 5),
    "unused integers": (by_hand([("int", 1, 0), ("root", 1, 1)], b"", [3], [5, 6]), None),
    "unused floats": (by_hand([("int", 1, 0), ("root", 1, 1)], b"", [3], [5], [0.5]), None),
    "unused text": (by_hand([("int", 1, 0), ("root", 1, 1)], b"a", [3], [5]), None),
    "unused references": (by_hand([("int", 1, 0), ("root", 1, 1)], b"", [3, 0], [5]), None),
    "no root": (by_hand([("int", 1, 0)], b"", [], [5]), None),
    "a text": (by_hand([("str", 1, 0), ("root", 1, 1)], b"ab", [3], [2]), "ab"),
    "a text that is too short": (by_hand([("str", 1, 0), ("root", 1, 1)], b"ab", [3], [5, 0, 0, 0]), None),
    "a text of negative length": (by_hand([("str", 2, 0), ("root", 1, 1)], b"ab", [3], [2, -1, 0]), None),
    "fewer integers than nodes": (by_hand([("int", 4, 0), ("root", 1, 1)], b"", [3], [5, 6]), None),
    "fewer floats than nodes": (by_hand([("float", 4, 0), ("root", 1, 1)], b"", [3], [], [0.5]), None),
    "bytes": (by_hand([("bytes", 1, 0), ("root", 1, 1)], b"", [3], [0]), b"kept"),
    "bytes before the first": (by_hand([("bytes", 1, 0), ("root", 1, 1)], b"", [3], [-1]), None),
    "bytes behind the last": (by_hand([("bytes", 1, 0), ("root", 1, 1)], b"", [3], [1]), None),
    "a part": (by_hand([("part", 1, 0), ("root", 1, 1)], b"", [3], [0]), "part"),
    "a part before the first": (by_hand([("part", 1, 0), ("root", 1, 1)], b"", [3], [-1]), None),
    "a node": (by_hand([("tuple", 1, 0), ("root", 1, 1)], b"", [3]), ()),
    "nodes of no references": (by_hand([("tuple", 2, 0), ("root", 1, 1)], b"", [3]), None),
    "a node of itself": (by_hand([("tuple", 1, 1), ("root", 1, 1)], b"", [3, 3]), None),
    "a value": (by_hand([("int", 1, 0), ("own:Point", 1, 3), ("root", 1, 1)], b"", [3, 3, 0, 4], [5]), Point(5, 5)),
    "a value of other types": (
        by_hand([("str", 1, 0), ("own:Point", 1, 3), ("root", 1, 1)], b"a", [3, 3, 0, 4], [1]),
        None,
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_document_is_rejected_unless_all_of_it_is_consistent(name: str) -> None:
    content, value = BY_HAND[name]
    buffers = [memoryview(b"kept")]
    if value is None:
        with pytest.raises(DecodeError):
            decode(memoryview(content), buffers, OWN, ["part"])
    else:
        assert equal(decode(memoryview(content), buffers, OWN, ["part"]), value)
