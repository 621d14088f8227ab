"""Interrupts an operation before every bytecode of the project's code, in a separate process.

    python -m interrupts.opcodes OPERATION=POINTS...

The operation's bytecodes are first counted; then it is interrupted before the n-th one for POINTS values of n, or for
all n if there are no more. Each time a second interrupt follows some bytecodes later, like a repeated Ctrl-C. A failed
check ends the process; a process that hangs is ended with a dump of its threads.
"""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from patience import PATIENCE

import onert
from interrupts.operations import SUBJECTS, Subject

PROJECT = tuple(str(Path(onert.__file__).parents[1] / name) for name in ("onert", "backends"))
LATER = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55)
"""Bytecodes between the first interrupt and the second; 0 for no second one."""


class InterruptError(BaseException):
    """Stands for the exception that a signal handler raises."""


class Interrupter:
    """Raises an error before the bytecodes with these numbers."""

    def __init__(self, first: int, second: int = 0) -> None:
        self.seen = 0
        self._at = first
        self._then = second
        # CPython borrows trace functions while they run and replace each other, so they live as long as this.
        self._tracing, self._stepping, self._resuming = self._begin, self._step, self._resume

    def _begin(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PROJECT):
            return None
        frame.f_trace_opcodes = True
        return self._stepping

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.seen += 1
            if self.seen == self._at:
                if self._then:
                    sys.setprofile(self._resuming)
                raise InterruptError
        return self._stepping

    def _resume(self, frame: FrameType | None, event: str, argument: Any) -> None:
        """Resume tracing, which raising has stopped."""
        sys.setprofile(None)
        self._at, self._then = self.seen + self._then, 0
        while frame is not None:
            if frame.f_code.co_filename.startswith(PROJECT):
                frame.f_trace, frame.f_trace_opcodes = self._stepping, True
            frame = frame.f_back
        sys.settrace(self._tracing)

    def run(self, subject: Subject) -> bool:
        """Run the operation; returns whether it was interrupted."""
        sys.settrace(self._tracing)
        try:
            subject.act()
        except InterruptError:
            return True
        finally:
            sys.setprofile(None)
            sys.settrace(None)
        return False


def main(arguments: Sequence[str]) -> None:
    sys.unraisablehook = lambda _: None  # it would print interrupts in finalizers
    for each in arguments:
        operation, _, points = each.partition("=")
        print(operation, "interrupted", end=" ", flush=True)
        print(*interrupt(SUBJECTS[operation](), int(points)), sep=" of ", flush=True)


def interrupt(subject: Subject, points: int) -> tuple[int, int]:
    """How often an operation was interrupted, and its number of bytecodes."""
    for _ in range(2):  # import and create what happens only once
        subject.act()
        subject.check()
    counting = Interrupter(-1)
    counting.run(subject)
    subject.check()
    total = counting.seen
    step = max(total / points, 1.0)
    interrupted = 0
    for turn in range(int(total / step) + 1):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        at = 1 + int(turn * step)
        interrupted += Interrupter(at, LATER[turn % len(LATER)]).run(subject)
        try:
            subject.check()
        except BaseException:
            print(f"after an interrupt before bytecode {at} of {total}:", file=sys.stderr)
            raise
    faulthandler.cancel_dump_traceback_later()
    return interrupted, total


if __name__ == "__main__":
    main(sys.argv[1:])
