"""Where programs come from: the disk, or the compiler."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Any

from onert.backend import Backend, Program
from onert.ir import Package

from .kept import program_entry
from .options import Options

WORTH_KEEPING = 0.03
"""Seconds of compiling and of getting ready for it from which on a program is kept: finding it saves no fewer."""


def compile(package: Package, options: Options, backends: Sequence[Backend]) -> Program:  # noqa: A001
    """The program of a package on `backends`, loaded and in order of preference.

    The package's configuration fills what `options` leave open. ModelError where the package's models do not fit
    together, CompileError where these options or backends cannot compile it, BackendError where a backend fails.
    """
    options = options.with_config(package.config)
    place = program_entry(package, options, backends)
    compilation = cache(lambda: _compiler().compilation(package, options, backends))
    kept = place.load(lambda shapes: compilation().specialize(shapes)) if place is not None else None
    if kept is not None:
        return kept
    start = perf_counter()
    with _uncollected():
        program: Program = compilation().first()
    spent = perf_counter() - start + (0.0 if package.content is None else package.content.preparation)
    if place is not None and spent >= WORTH_KEEPING:
        place.store(program)
    return program


@contextmanager
def _uncollected() -> Iterator[None]:
    """No search for reference cycles meanwhile, if there is one at all.

    A compiler makes many objects and next to no cycles, and a search looks at all that a process has.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _compiler() -> Any:
    """Read only when something is compiled."""
    return importlib.import_module("onert.compiler.compiler")
