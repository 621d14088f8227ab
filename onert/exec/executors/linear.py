"""The default executor: one step after the other, in the order that the compiler found."""

from __future__ import annotations

from onert.exec.frame import Frame


def linear(frame: Frame) -> None:
    """Run every step once, then let variables take their new values."""
    for call in frame.calls:
        call()
    if frame.routine.subgraph.state:
        frame.update_state()
