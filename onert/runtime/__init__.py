"""The parts put together: what applications call."""

from .api import compile, load
from .interpreter import Interpreter, SignatureRunner

__all__ = ["Interpreter", "SignatureRunner", "compile", "load"]
