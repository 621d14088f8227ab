"""The parts put together: what applications call."""

import importlib
from typing import TYPE_CHECKING, Any

from .api import compile, load

if TYPE_CHECKING:
    from .interpreter import Interpreter, SignatureRunner

__all__ = ["Interpreter", "SignatureRunner", "compile", "load"]

_OF_INTERPRETER = ("Interpreter", "SignatureRunner")


def __getattr__(name: str) -> Any:
    """LiteRT's interface is read when someone names it."""
    if name not in _OF_INTERPRETER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("onert.runtime.interpreter"), name)
