"""Obtain a program from the cache on disk, or from the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from attrs import evolve

from onert.backend import Backend, Program
from onert.backend.holders import GC_PAUSED
from onert.backend.residents import DeviceConstants
from onert.compiler.options import Options
from onert.ir import Package
from onert.ir.process import imports
from onert.ir.process.cached import cached
from onert.ir.shape import is_static

from .serialize import Prefetched, ProgramEntry, is_cached, program_entry

Shapes = Mapping[int, tuple[int, ...]]

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
    lengths = _Lengths(package, options, backends)
    if entry is not None:
        hold = GC_PAUSED.hold()
        with hold.ended(), hold.ended(), hold:
            found = entry.load(lengths.specialize, prefetched)
        if found is not None:
            lengths.residents.append(found.residents)
            return lengths.completed(found)
    start = perf_counter()
    hold = GC_PAUSED.hold()
    with hold.ended(), hold.ended(), hold:
        program: Program = lengths.compilation.first()
    spent = perf_counter() - start + (0.0 if package.content is None else package.content.preparation)
    if entry is not None and spent >= WORTH_CACHING:
        entry.store(program)
    lengths.begin(program)
    return evolve(program, specialize=lengths.specialize)


class _Lengths:
    """The programs of a package for other input shapes than the first program's. The garbage collector does not run
    while one is made.

    If the model leaves dimensions open, the first program cannot serve any run of it. So the program for the first
    known shapes is cached, too. `residents` are those of the first program if it came from the cache.
    """

    def __init__(self, package: Package, options: Options, backends: Sequence[Backend]) -> None:
        self.residents: list[DeviceConstants] = []
        self._package, self._options, self._backends = package, options, backends
        self._is_open = False
        self._found: tuple[Shapes, Program] | None = None

    @cached
    def compilation(self) -> Any:
        """The compilation, begun when a program is first needed that is not cached."""
        made = _compiler().compilation(self._package, self._options, self._backends, *self.residents)
        if self._found is not None:
            made.adopt(*self._found)
        return made

    def begin(self, first: Program) -> None:
        """Look up the next program in the cache if the first one has open input dimensions."""
        self._is_open = _is_open(first)

    def completed(self, program: Program) -> Program:
        """A program from the cache, with what is compiled when it runs."""
        self.begin(program)
        return evolve(program, rest=self._rest)

    def specialize(self, shapes: Shapes) -> Program:
        """The program in which some inputs, by position, have other shapes."""
        hold = GC_PAUSED.hold()
        with hold.ended(), hold.ended(), hold:
            if not self._is_open:
                return self._compiled(shapes)
            options = self._options.choose(input_shapes={**self._options.input_shapes, **shapes})
            entry = program_entry(self._package, options, self._backends)
            found = None if entry is None else entry.load(lambda other: self.specialize({**shapes, **other}))
            program = found or self._compiled_for(entry, shapes)
            self._is_open = is_open = _is_open(program)
            if found is not None and not is_open:
                self._found = shapes, found
            return program

    def _compiled_for(self, entry: ProgramEntry | None, shapes: Shapes) -> Program:
        """The program for these shapes, which is cached in the entry."""
        start = perf_counter()
        program = self._compiled(shapes)
        is_whole = program.rest is None and program.stretch is None
        if entry is not None and is_whole and perf_counter() - start >= WORTH_CACHING:
            entry.store(program)
        return program

    def _rest(self, part: int, shapes: tuple[tuple[int, ...], ...]) -> Program:
        program: Program = self.compilation.rest(part, shapes)
        return program

    def _compiled(self, shapes: Shapes) -> Program:
        program: Program = self.compilation.specialize(shapes)
        return program


def _is_open(program: Program) -> bool:
    """Whether an input's shape is unknown, so that no run can use the program."""
    return not all(is_static(info.shape) for info in program.inputs)


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
