"""What measurements chose in the place of a cost model, and what there was to choose from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from onert.ir.process.digests import digest

_T = TypeVar("_T")


class Choices:
    """Alternatives by place, told by their text: those that are `taken`, and what was `offered` so far.

    A place is a decision about one kernel: what is decided and the shapes that it is for. An alternative must keep to
    what the precision promises; whatever is taken, the first offered of each place is the cost model's.
    """

    def __init__(self, taken: Mapping[str, str]) -> None:
        self.taken = taken
        self.offered: dict[str, tuple[str, ...]] = {}

    def of(self, place: Hashable, model: _T, others: Iterable[_T]) -> _T:
        """The alternative taken for a place; the model's where none is, or one that is not offered."""
        key = digest(repr(place).encode()).hexdigest()
        by_text: dict[str, _T] = {repr(each): each for each in (model, *others)}
        self.offered[key] = tuple(by_text)
        return by_text.get(self.taken.get(key, ""), model)
