"""The parts put together: what applications call."""

from typing import TYPE_CHECKING, Any

from onert.ir.process import imports
from onert.ir.process.later import later

from .api import compile, load

if TYPE_CHECKING:
    from . import cache
    from .interpreter import Interpreter, SignatureRunner

__all__ = ["Interpreter", "SignatureRunner", "cache", "compile", "load"]

_later = later(__name__, dict.fromkeys(("Interpreter", "SignatureRunner"), "onert.runtime.interpreter"))


def __getattr__(name: str) -> Any:
    """Names that few programs need, read when somebody asks for them."""
    return imports.module("onert.runtime.cache") if name == "cache" else _later(name)
