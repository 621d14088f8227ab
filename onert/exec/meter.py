"""Limits on costs that are only known at run time: the memory of tensors of unknown size, and the work of subgraphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onert.ir import RuleError

if TYPE_CHECKING:
    from onert.exec.frames.frame import Frame


class Meter:
    """Counts the bytes that tensors of unknown size occupy in one execution, and the work `spent` in one run.

    `memory` is in bytes, `work` in additions; None means no limit.
    """

    __slots__ = ("_held", "_memory", "_work", "spent")

    def __init__(self, memory: int | None, work: int | None) -> None:
        self._memory = memory
        self._work = work
        self._held = 0
        self.spent = 0

    def begin(self) -> None:
        """Start counting the work of a new run."""
        self.spent = 0

    def spend(self, work: int) -> None:
        """Count work. Raises RuleError if the run exceeds its limit."""
        self.spent += work
        if self._work is not None and self.spent > self._work:
            raise RuleError(f"the run exceeds its limit of {self._work} additions (max_work)")

    def hold(self, nbytes: int, beside: int = 0) -> None:
        """Count bytes that a tensor will occupy from now on; a negative number releases bytes.

        Raises RuleError if all tensors would then exceed the limit, together with the bytes needed `beside` them
        temporarily.
        """
        if self._memory is not None and self._held + nbytes + beside > self._memory:
            total = self._held + nbytes + beside
            raise RuleError(f"tensors of unknown size need {total} bytes, more than {self._memory} (max_memory)")
        self._held += nbytes


def metered(run: Callable[[Frame], None], meter: Meter, frame: Frame) -> None:
    """Run a frame, counting its work from 0."""
    meter.begin()
    run(frame)
