"""Everything that determines a kernel's machine code, as a fingerprint."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from onert.backend.cache import DISTRIBUTION, installed, recorded


@cache
def llvm_folder() -> Path | None:
    """The folder of llvmlite, found without loading it; None if it is not installed."""
    found = find_spec("llvmlite")
    return None if found is None or found.origin is None else Path(found.origin).parent


@cache
def own_sources() -> str:
    """A digest of this backend's own sources, the same in a work tree and in a wheel."""
    return recorded(Path(__file__).parents[1], DISTRIBUTION)


@cache
def version() -> str:
    """Identifies the content of this backend's own sources and the installed LLVM.

    LLVM is identified by what llvmlite's installer recorded and by the sizes and times of its files, whose contents are
    too large to be read at every start.
    """
    llvm, own = llvm_folder(), installed(Path(__file__).parents[1], DISTRIBUTION)
    return own if llvm is None else f"{own} {installed(llvm, 'llvmlite')} {_sizes(llvm)}"


def _sizes(package: Path) -> str:
    """Names, sizes and modification times of the files of llvmlite and of the library that it calls."""
    folders = (folder for folder in (package, package / "binding") if folder.is_dir())
    found = ((item.name, item.stat()) for folder in folders for item in os.scandir(folder) if item.is_file())
    return " ".join(sorted(f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in found))
