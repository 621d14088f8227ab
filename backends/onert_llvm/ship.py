"""Generates kernels for other people's machines, to be shipped with this package."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from onert.backend import Sequence, Settings
from onert.ir import BackendError
from onert_llvm.codegen import library
from onert_llvm.codegen.fingerprint import own_sources
from onert_llvm.codegen.kernel_compiler import library_objects
from onert_llvm.compile import lowered
from onert_llvm.target.isa import target


def ship(sequences: Iterable[tuple[Sequence, Settings]], name: str) -> Path:
    """Write the kernels of sequences for a target where `codegen.library` finds them, and return the file's path.

    Raises BackendError if the target is unknown or the file cannot be written.
    """
    isa = target(name)
    listed = [lowered(sequence, isa, settings).specs for sequence, settings in sequences]
    specs = {symbol: spec for some in listed for symbol, spec in some.items()}
    content = library.library_bytes(library_objects(list(specs.values()), isa), own_sources())
    path = library.FOLDER / f"{isa.name}.kernels"
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BackendError(f"{path} cannot be written: {error.strerror}") from error
    return path
