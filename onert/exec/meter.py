"""What is not known before a run, held to bounds while it runs: memory of tensors, and work of subgraphs."""

from __future__ import annotations

from onert.ir import RuleError


class Meter:
    """Counts the bytes that tensors of unknown size hold in one execution, and the work of one run.

    None is no bound.
    """

    __slots__ = ("_held", "_memory", "_spent", "_work")

    def __init__(self, memory: int | None, work: int | None) -> None:
        self._memory = memory
        self._work = work
        self._held = 0
        self._spent = 0

    def begin(self) -> None:
        """Count the work of a new run."""
        self._spent = 0

    def spend(self, work: int) -> None:
        """Count work; RuleError if the run takes more than it may."""
        self._spent += work
        if self._work is not None and self._spent > self._work:
            raise RuleError(f"the run takes the time of more than {self._work} additions (max_work)")

    def hold(self, nbytes: int, beside: int = 0) -> None:
        """Count bytes that a tensor holds from now on, fewer than 0 where it gives some back; RuleError if tensors
        come to hold more than they may, with what is needed `beside` for a moment.
        """
        if self._memory is not None and self._held + nbytes + beside > self._memory:
            total = self._held + nbytes + beside
            raise RuleError(f"tensors of unknown size take {total} bytes, more than {self._memory} (max_memory)")
        self._held += nbytes
