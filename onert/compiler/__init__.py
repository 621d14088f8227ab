"""The compiler: lowers a model onto backends and plans its memory."""

from .compiler import compile
from .options import Options

__all__ = ["Options", "compile"]
