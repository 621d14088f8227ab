"""Loops whose rounds are so long that threads share them: driven from here, round by round."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from onert.backend import Part
from onert.ir import Array


class DrivenLoop:
    """A loop's condition and body as calls, as long as the byte at `goes_on` is set and no check was found broken.

    `reports` are those of its checks; with `most` rounds allowed the last of them is for one too many.
    """

    __slots__ = ("_body", "_condition", "_flag", "_keep", "_most", "_operation", "_reports")

    def __init__(
        self,
        condition: Callable[[], None],
        body: Callable[[], None],
        goes_on: int,
        reports: Array,
        most: int | None,
        operation: int,
    ) -> None:
        self._condition = condition
        self._body = body
        self._flag = ctypes.c_uint8.from_address(goes_on)
        self._reports = reports
        self._most = most
        self._operation = operation

    @property
    def parts(self) -> tuple[Part, ...]:
        """The loop as a whole."""
        return (Part((self._operation,), self),)

    def __call__(self) -> None:
        rounds = 0
        self._condition()
        while self._flag.value and not self._reports[:, 0].any():
            if rounds == self._most:
                self._reports[-1] = (1, rounds)
                return
            self._body()
            self._condition()
            rounds += 1
