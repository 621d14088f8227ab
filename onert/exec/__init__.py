"""Running a program."""

from .execution import Execution

__all__ = ["Execution"]
