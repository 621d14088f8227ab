"""The functions and classes that applications call."""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .api import compile, load

if TYPE_CHECKING:
    from .interpreter import Interpreter, SignatureRunner

__all__ = ["Interpreter", "SignatureRunner", "compile", "load"]

__getattr__ = later(__name__, dict.fromkeys(("Interpreter", "SignatureRunner"), "onert.runtime.interpreter"))
