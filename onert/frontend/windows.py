"""Parts of a file that are read block by block: a file of gigabytes declares its inputs in a few bytes."""

from __future__ import annotations

from typing import overload

from onert.ir import ModelError
from onert.ir.content import Source

_BLOCK = 1 << 12


class Window:
    """Some bytes of an open file. Only the blocks with those that are used are read; the last one is kept.

    Raises ModelError if the file became shorter.
    """

    __slots__ = ("_blocks", "_size", "_start")

    def __init__(self, blocks: Blocks, start: int, size: int) -> None:
        self._blocks = blocks
        self._start = start
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Window: ...
    def __getitem__(self, at: int | slice) -> int | Window:
        if isinstance(at, slice):
            start, stop, _ = at.indices(self._size)
            return Window(self._blocks, self._start + start, max(stop - start, 0))
        return self._blocks.byte(self._start + at)

    def __bytes__(self) -> bytes:
        return self._blocks.read(self._start, self._size)


class Blocks:
    """The blocks of an open file."""

    def __init__(self, file: Source) -> None:
        self._file = file
        self._start = 0
        self._block = b""

    def whole(self) -> Window:
        """All bytes of the file."""
        return Window(self, 0, self._file.size)

    def byte(self, at: int) -> int:
        """The byte at an offset, which must be within the file."""
        inside = at - self._start
        if not 0 <= inside < len(self._block):
            self._start, inside = at - at % _BLOCK, at % _BLOCK
            self._block = self._file.part(self._start, _BLOCK)
            if inside >= len(self._block):
                raise ModelError("the file became shorter while it was read")
        return self._block[inside]

    def read(self, start: int, size: int) -> bytes:
        """Some bytes."""
        inside = start - self._start
        if inside >= 0 and inside + size <= len(self._block):
            return self._block[inside : inside + size]
        found = self._file.part(start, size)
        if len(found) < size:
            raise ModelError("the file became shorter while it was read")
        return found
