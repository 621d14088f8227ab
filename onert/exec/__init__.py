"""Executing a program."""

from .arena import SharedArena
from .execution import Execution
from .stop import RunCancelledError, RunTimeoutError

__all__ = ["Execution", "RunCancelledError", "RunTimeoutError", "SharedArena"]
