"""Adjacent pixels with two to eight channels in the lanes of registers."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.irbuilder import Val, View

_MOST = 8
LANES = 16
"""Elements that are computed together, in one or more registers."""


@frozen
class Pixels(Value):
    """Adjacent outputs of two to eight `channels`, each in a power of two of lanes.

    Lanes beyond the channels are read but not stored.
    """

    channels: int

    @property
    def span(self) -> int:
        """The lanes of a pixel."""
        return 1 << (self.channels - 1).bit_length()

    @property
    def count(self) -> int:
        """The number of pixels."""
        return LANES // self.span

    def load(self, row: View, offsets: Sequence[Val]) -> Val:
        """The inputs of all outputs, from the element at the offset of each."""
        parts = [row[offset].load(self.span) for offset in offsets]
        while len(parts) > 1:
            parts = [a.shuffle(range(2 * a.lanes), b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def store(self, place: View, value: Val) -> None:
        lanes = [first + c for first in range(0, LANES, self.span) for c in range(self.channels)]
        place.store(value if self.span == self.channels else value.shuffle(lanes))

    def readable(self, row: Val, rows: Val) -> Val:
        """Whether all lanes of the pixels of a row, one of `rows` in memory, are elements."""
        return row + (self.span != self.channels) < rows


def is_few(channels: int, outputs: int) -> bool:
    """Whether there is such a form for rows of `outputs`."""
    return 2 <= channels <= _MOST and outputs >= Pixels(channels).count
