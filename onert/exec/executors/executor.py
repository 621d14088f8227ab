"""What an executor is."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.exec.frames.frame import Frame
from onert.ir.value import Told


def _nothing() -> None:
    """No step is under way when `run` has returned or raised."""


@frozen(eq=False)
class Executor(Told):
    """`run` runs the steps of a frame once.

    `settle` waits, after a run that a signal handler broke off, until none of its steps is under way any more.
    """

    run: Callable[[Frame], None]
    settle: Callable[[], None] = _nothing
