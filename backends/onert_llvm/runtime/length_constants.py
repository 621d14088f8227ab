"""Constants that one execution computes for each length, and the pointers to them in the tasks of commands."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from onert.ir import Array

_MOST_KEPT, _KEPT_BYTES = 128, 1 << 18
"""Each constant is kept for this many lengths and bytes: callers return to earlier lengths."""

_Function = tuple[int, Callable[..., Array], tuple[tuple[bool, Any], ...]]
"""A constant's index, its function, and the numbers that this gets: whether they are the trace's, and then the index,
otherwise the value."""


class LengthConstants:
    """The constants computed by functions of the registers' numbers; `registers` has the register of each number of the
    trace."""

    def __init__(self, functions: Iterable[_Function], registers: Mapping[int, int]) -> None:
        self._functions = [
            (index, function, [(registers[n], 0) if symbolic else (-1, n) for symbolic, n in numbers])
            for index, function, numbers in functions
        ]
        self._kept: dict[int, dict[tuple[Any, ...], tuple[Array, int]]] = {index: {} for index, *_ in self._functions}
        """The arrays of each constant for the last lengths, with their addresses, the current one last."""
        self._nbytes = dict.fromkeys(self._kept, 0)
        self._addresses = dict.fromkeys(self._kept, 0)
        self._pointers: list[tuple[int, int, int, ctypes.c_uint64]] = []

    def __contains__(self, index: int) -> bool:
        return index in self._kept

    @property
    def are_used(self) -> bool:
        """Whether there is a pointer to one of them."""
        return bool(self._pointers)

    def point(self, target: int, index: int, offset: int, register: int) -> None:
        """Let the pointer at the address `target` follow a constant, with an offset in bytes, to which a register's
        number is added unless it is -1."""
        self._pointers.append((index, offset, register, ctypes.c_uint64.from_address(target)))

    def compute(self, words: memoryview[int]) -> None:
        """Compute the constants for the numbers in these registers, and update all pointers."""
        for index, function, numbers in self._functions:
            given = tuple([words[register] if register >= 0 else n for register, n in numbers])
            kept = self._kept[index]
            found = kept.pop(given, None)
            if found is None:
                made = function(*given)
                found = made, made.ctypes.data
                self._nbytes[index] += made.nbytes
                while kept and (len(kept) >= _MOST_KEPT or self._nbytes[index] > _KEPT_BYTES):
                    self._nbytes[index] -= kept.pop(next(iter(kept)))[0].nbytes
            kept[given] = found
            self._addresses[index] = found[1]
        for index, offset, register, cell in self._pointers:
            cell.value = self._addresses[index] + offset + (words[register] if register >= 0 else 0)
