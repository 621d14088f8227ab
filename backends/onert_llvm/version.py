"""What decides the code that a kernel becomes."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from onert.backend.cache import sources


@cache
def version() -> str:
    """Names this backend's own sources, and the LLVM that is installed, without loading it."""
    llvm = find_spec("llvmlite")
    place = "" if llvm is None or llvm.origin is None else sources(Path(llvm.origin).parent)
    return f"{sources(Path(__file__).parent)} {place}"
