"""Observers: callbacks for each piece of a run, for traces, profiles, memory timelines and value ranges."""

from .minmax import MinMax
from .observer import Observer, Work
from .profile import Profile, ProfileRow
from .timeline import MemoryTimeline
from .trace import Trace

__all__ = ["MemoryTimeline", "MinMax", "Observer", "Profile", "ProfileRow", "Trace", "Work"]
