"""Choices that measurements made in place of the cost model, and their alternatives."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from onert.ir.process.digests import digest

_T = TypeVar("_T")


class Choices:
    """Alternatives by place, identified by their text: those `taken`, and those `offered` so far.

    A place is a decision about one kernel: what is decided, and for which shapes. An alternative must satisfy the
    guarantees of the precision; the first one offered at each place is always the cost model's.
    """

    def __init__(self, taken: Mapping[str, str]) -> None:
        self.taken = taken
        self.offered: dict[str, tuple[str, ...]] = {}

    def choose(self, place: Hashable, model: _T, others: Iterable[_T]) -> _T:
        """The alternative taken for a place; the model's if none was taken or it is not offered."""
        key = digest(repr(place).encode()).hexdigest()
        by_text: dict[str, _T] = {repr(each): each for each in (model, *others)}
        self.offered[key] = tuple(by_text)
        return by_text.get(self.taken.get(key, ""), model)
