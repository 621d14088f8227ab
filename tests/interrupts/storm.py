"""Interrupts operations with real signals at random times, in a separate process.

    python -m interrupts.storm SEED OPERATION=COUNT...

Every second interrupt is followed by others, less than a millisecond apart, until the operation ends. A failed check
ends the process; a process that hangs is ended with a dump of its threads.
"""

from __future__ import annotations

import faulthandler
import random
import signal
import sys
import time
from collections.abc import Sequence

from patience import PATIENCE

from interrupts.operations import SUBJECTS, Subject


class InterruptError(BaseException):
    """Raised by the signal's handler."""


class Storm:
    """Sends signals while an operation runs."""

    def __init__(self) -> None:
        self._on = False
        signal.signal(signal.SIGALRM, self._interrupt)

    def _interrupt(self, number: int, frame: object) -> None:
        if self._on:
            raise InterruptError

    def run(self, subject: Subject, delay: float, interval: float) -> bool:
        """Run the operation with signals after `delay` and every `interval` seconds; returns whether one interrupted
        it.
        """
        try:
            self._on = True
            signal.setitimer(signal.ITIMER_REAL, delay, interval)
            subject.act()
            self._on = False
        except InterruptError:
            self._on = False
            return True
        finally:
            self._on = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False


def _seconds(subject: Subject) -> float:
    """How long the operation takes."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subject.act()
        times.append(time.perf_counter() - start)
        subject.check()
    return sorted(times)[2]


def main(arguments: Sequence[str]) -> None:
    sys.unraisablehook = lambda _: None  # it would print interrupts in finalizers
    dice = random.Random(int(arguments[0]))
    for each in arguments[1:]:
        operation, _, count = each.partition("=")
        print(operation, "interrupted", end=" ", flush=True)
        print(*interrupt(SUBJECTS[operation](), int(count), dice), sep=" of ", flush=True)


def interrupt(subject: Subject, count: int, dice: random.Random) -> tuple[int, int]:
    """How often an operation was interrupted, and how often it was started."""
    storm, seconds = Storm(), _seconds(subject)
    interrupted = attempts = 0
    while interrupted < count and attempts < 50 * count:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        interval = dice.choice((0.0, dice.uniform(2e-4, 1e-3)))
        try:
            hit = storm.run(subject, 1e-6 + dice.uniform(0.0, seconds), interval)
        except InterruptError:  # another signal arrived while the first was handled
            hit = True
            signal.setitimer(signal.ITIMER_REAL, 0)
        interrupted += hit
        seconds *= 1.05 if hit else 0.9  # tracks how long the operation takes now
        subject.check()
        attempts += 1
    faulthandler.cancel_dump_traceback_later()
    return interrupted, attempts


if __name__ == "__main__":
    main(sys.argv[1:])
