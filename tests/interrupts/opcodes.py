"""Interrupts an operation before every bytecode of this project's code, in a process of its own.

    python -m interrupts.opcodes OPERATION=POINTS...

The operation is first counted, then interrupted before its n-th bytecode for POINTS values of n, all where there are no
more than that. Each time one more interrupt comes some bytecodes after the first, as when somebody presses a key twice.
What is wrong ends the process; a process that hangs is ended with a dump of its threads.
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
"""Bytecodes between the first interrupt and the second; none for 0."""


class InterruptError(BaseException):
    """What the handler of a signal raises."""


class Interrupter:
    """Raises before the bytecodes of these numbers."""

    def __init__(self, first: int, second: int = 0) -> None:
        self.seen = 0
        self._at = first
        self._then = second

    def _begin(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PROJECT):
            return None
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.seen += 1
            if self.seen == self._at:
                if self._then:
                    sys.setprofile(self._resume)
                raise InterruptError
        return self._step

    def _resume(self, frame: FrameType | None, event: str, argument: Any) -> None:
        """Trace again: raising has ended it."""
        sys.setprofile(None)
        self._at, self._then = self.seen + self._then, 0
        while frame is not None:
            if frame.f_code.co_filename.startswith(PROJECT):
                frame.f_trace, frame.f_trace_opcodes = self._step, True
            frame = frame.f_back
        sys.settrace(self._begin)

    def run(self, subject: Subject) -> bool:
        """Whether the operation was interrupted."""
        sys.settrace(self._begin)
        try:
            subject.act()
        except InterruptError:
            return True
        finally:
            sys.setprofile(None)
            sys.settrace(None)
        return False


def main(arguments: Sequence[str]) -> None:
    sys.unraisablehook = lambda _: None  # an interrupt in a finalizer is printed otherwise
    for each in arguments:
        operation, _, points = each.partition("=")
        print(operation, "interrupted", end=" ", flush=True)
        print(*interrupt(SUBJECTS[operation](), int(points)), sep=" of ", flush=True)


def interrupt(subject: Subject, points: int) -> tuple[int, int]:
    """How often an operation was interrupted, and how many bytecodes it has."""
    for _ in range(2):  # what is imported or made once
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
