"""The compiler: lowers a model onto backends and plans its memory."""

from .kept import known
from .options import Options
from .programs import compile

__all__ = ["Options", "compile", "known"]
