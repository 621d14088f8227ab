"""Obtain a program from the cache on disk, or from the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any

from attrs import evolve

from onert.backend import Backend, Program
from onert.backend.holders import GC_PAUSED
from onert.backend.residents import DeviceConstants
from onert.compiler.options import Options
from onert.ir import Package
from onert.ir.process import imports

from .serialize import Prefetched, is_cached, program_entry

Specialize = Callable[[Mapping[int, tuple[int, ...]]], Program]

WORTH_CACHING = 0.03
"""Programs that took at least this many seconds to prepare and compile are cached."""


def compile(  # noqa: A001
    package: Package, options: Options, backends: Sequence[Backend], prefetched: Prefetched | None = None
) -> Program:
    """The program of a package on `backends`, loaded and in order of preference.

    The package's configuration fills in options that were not chosen explicitly. `prefetched` is the result of
    `prefetch`. Raises ModelError if the package's models do not fit together, CompileError if these options or backends
    cannot compile it, BackendError if a backend fails.
    """
    options = options.with_config(package.config)
    entry = program_entry(package, options, backends)
    residents: list[DeviceConstants] = []
    compilation = cache(lambda: _compiler().compilation(package, options, backends, *residents))
    if entry is not None:
        hold = GC_PAUSED.hold()
        with hold.ended(), hold.ended(), hold:
            found = entry.load(_without_gc(lambda shapes: compilation().specialize(shapes)), prefetched)
        if found is not None:
            residents.append(found.residents)
            return evolve(found, rest=lambda part, shapes: compilation().rest(part, shapes))
    start = perf_counter()
    hold = GC_PAUSED.hold()
    with hold.ended(), hold.ended(), hold:
        program: Program = compilation().first()
    spent = perf_counter() - start + (0.0 if package.content is None else package.content.preparation)
    if entry is not None and spent >= WORTH_CACHING:
        entry.store(program)
    return evolve(program, specialize=_without_gc(program.specialize))


def _without_gc(specialize: Specialize) -> Specialize:
    """Wrap a `specialize` function so that the garbage collector does not run meanwhile."""

    def specialized(shapes: Mapping[int, tuple[int, ...]]) -> Program:
        hold = GC_PAUSED.hold()
        with hold.ended(), hold.ended(), hold:
            return specialize(shapes)

    return specialized


def expect(package: Package) -> None:
    """Prepare to compile a package that was read (`warmup`).

    Does nothing if a program of its content is cached, or if the package has no content, for which only `compile` finds
    out.
    """
    if package.content is not None and not is_cached(package):
        imports.module("onert.compiler.program_cache.warmup").read(package, package.content)


def _compiler() -> Any:
    """The compiler's module, imported only when something is compiled."""
    return imports.module("onert.compiler.compiler")
