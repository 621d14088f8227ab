"""Execution of programs."""

from .arena import SharedArena, thread_arena
from .execution import Execution
from .stop import RunCancelledError, RunTimeoutError

__all__ = ["Execution", "RunCancelledError", "RunTimeoutError", "SharedArena", "thread_arena"]
