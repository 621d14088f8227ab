"""Obtain a program from the cache on disk, or from the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from onert.backend import Backend, Program
from onert.backend.holders import GC_PAUSED
from onert.backend.writers import WRITERS
from onert.compiler.options import Options
from onert.ir import Package
from onert.ir.process import imports

from .other_shapes import OfPackage, Source, keep
from .serialize import Prefetched, Stored, is_cached


def compile(  # noqa: A001
    package: Package, options: Options, backends: Sequence[Backend], prefetched: Prefetched | None = None
) -> Program:
    """The program of a package on `backends`, loaded and in order of preference.

    The package's configuration fills in options that were not chosen explicitly. `prefetched` is the result of
    `prefetch`. Raises ModelError if the package's models do not fit together, CompileError if these options or backends
    cannot compile it, BackendError if a backend fails.
    """
    options = options.with_config(package.config)
    source = Source(package, options, tuple(backends))
    programs = OfPackage(source, prefetched)
    entry = source.entry()
    WRITERS.finish()  # this process may have compiled the package before
    hold = GC_PAUSED.hold()
    with hold.ended(), hold.ended(), hold:
        found = None if entry is None else entry.load(prefetched)
        if found is not None:
            return programs.begun(found)
        start = perf_counter()
        program: Program = programs.compilation.first()
    spent = perf_counter() - start + (0.0 if package.content is None else package.content.preparation)
    stored = Stored(program, programs.compilation.cut_shapes)
    keep(entry, stored, spent)
    return programs.begun(stored)


def expect(package: Package) -> None:
    """Prepare to compile a package that was read (`warmup`).

    Does nothing if a program of its content is cached, or if the package has no content, for which only `compile` finds
    out.
    """
    if package.content is not None and not is_cached(package):
        _warmup().read(package, package.content)


def _warmup() -> Any:
    """The module that imports what compilation needs, imported only when something will be compiled."""
    return imports.module("onert.compiler.program_cache.warmup")
