"""The parts put together: load, compile, run."""

from .api import compile, load

__all__ = ["compile", "load"]
