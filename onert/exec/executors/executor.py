"""The type of executors."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.exec.frames.frame import Frame
from onert.ir.value import ByIdentity


def _nothing() -> None:
    """Nothing to wait for: no step is running when `run` has returned or raised."""


@frozen(eq=False)
class Executor(ByIdentity):
    """`run` runs the steps of a frame once.

    `settle` waits until no step is running any more, after a signal handler has interrupted a run.
    """

    run: Callable[[Frame], None]
    settle: Callable[[], None] = _nothing
