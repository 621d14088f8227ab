"""Observers: callbacks for each piece of a run, for traces, profiles, memory timelines and value ranges."""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .observer import Observer, Work

if TYPE_CHECKING:
    from .minmax import MinMax
    from .profile import Profile, ProfileRow
    from .timeline import MemoryTimeline
    from .trace import Trace

__all__ = ["MemoryTimeline", "MinMax", "Observer", "Profile", "ProfileRow", "Trace", "Work"]

__getattr__ = later(
    __name__,
    {
        "MemoryTimeline": "onert.exec.observers.timeline",
        "MinMax": "onert.exec.observers.minmax",
        "Trace": "onert.exec.observers.trace",
        **dict.fromkeys(("Profile", "ProfileRow"), "onert.exec.observers.profile"),
    },
)
