"""What decides the code that a kernel becomes."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from onert.backend.cache import sources


@cache
def llvm_folder() -> Path | None:
    """Where llvmlite is, found without loading it; None where it is not."""
    found = find_spec("llvmlite")
    return None if found is None or found.origin is None else Path(found.origin).parent


@cache
def version() -> str:
    """Names this backend's own sources, and the LLVM that is installed."""
    llvm = llvm_folder()
    return f"{sources(Path(__file__).parent)} {'' if llvm is None else sources(llvm)}"
