"""The programs of a package for other input shapes, and of the parts that only a run can compile: those that another
process cached, and those that are compiled here."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import Any

from attrs import evolve, frozen

from onert.backend import Backend, Program, Stretch
from onert.backend.holders import GC_PAUSED
from onert.backend.residents import DeviceConstants
from onert.compiler.options import Options
from onert.ir import Package
from onert.ir.process import imports
from onert.ir.shape import is_static, static
from onert.ir.value import ByIdentity

from .serialize import PART, Prefetched, ProgramEntry, Stored, program_entry

Shapes = Mapping[int, tuple[int, ...]]

WORTH_CACHING = 0.03
"""Programs that took at least this many seconds to prepare and compile are cached."""

MOST_STRETCHED = 8
"""How many programs with a stretch are cached for an entry or a part of it: each serves lengths up to a multiple of
those that were known when it was made."""


@frozen(eq=False)
class Source(ByIdentity):
    """A package to compile."""

    package: Package
    options: Options
    backends: tuple[Backend, ...]

    def entry(self, shapes: Shapes | None = None, variant: str = "") -> ProgramEntry | None:
        """The cache entry of the program for some other input shapes, or of a variant."""
        options = self.options
        if shapes:
            options = options.choose(input_shapes={**options.input_shapes, **shapes})
        if options.tune is not None and (shapes or variant):
            options = options.choose(tune=0.0)  # only the first program is tuned
        return program_entry(self.package, options, self.backends, variant, shares=bool(shapes or variant))


class OtherShapes(ABC):
    """The programs of an entry or a part for any input shapes. The garbage collector does not run while one is made.

    The first program for known shapes is cached, and every program with a stretch, which serves other lengths too. Once
    something was compiled here, only programs with a stretch are looked up. `_cut_shapes` are those of the first
    program.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._awaits_first = False
        self._prefetched: Prefetched | None = None
        self._begun: Any = None
        self._cut_shapes: Shapes | None = None
        self._adopted: list[tuple[Shapes, Program]] = []
        self._stretched: list[Program] = []
        self._stored: list[Stretch] = []
        self._all_read = False
        self._parts: dict[tuple[int, tuple[int, ...]], OfPart] = {}

    @property
    @abstractmethod
    def path(self) -> str:
        """What names the entry or part among those of the package."""

    @abstractmethod
    def _made(self) -> Any:
        """The compilation."""

    @abstractmethod
    def _known(self, shapes: Shapes) -> ProgramEntry | None:
        """The cache entry of the program for known shapes."""

    @abstractmethod
    def _compiled(self, shapes: Shapes) -> Program:
        """A program from the compiler."""

    @property
    def compilation(self) -> Any:
        """The compilation, begun when a program is first needed that is not cached."""
        made = self._begun
        if made is None:
            made = self._made()
            if self._cut_shapes is not None:
                made.cut(self._cut_shapes)
            for shapes, program in self._adopted:
                made.adopt(shapes, program)
            self._begun = made
        return made

    def _adopt(self, shapes: Shapes, program: Program) -> None:
        """Let the compilation know of a cached program for known shapes."""
        self._awaits_first, self._prefetched = False, None
        if self._begun is None:
            self._adopted.append((shapes, program))
        else:
            self._begun.adopt(shapes, program)

    def specialize(self, shapes: Shapes) -> Program:
        """The program in which some inputs, by position, have other shapes."""
        hold = GC_PAUSED.hold()
        with hold.ended(), hold.ended(), hold:
            if not self._awaits_first:
                return self._new(shapes)
            entry = self._known(shapes)
            found = None if entry is None else entry.load(self._prefetched)
            if found is None or not self._is_cut_alike(found):
                program = self._new(shapes, entry)
                self._awaits_first = _is_open(program)
                return program
            if not _is_open(found.program):
                self._adopt(shapes, found.program)
            return self._completed(found.program)

    def reuse(self, shapes: tuple[tuple[int, ...], ...]) -> Program | None:
        """A cached program whose stretch serves inputs of these shapes; None if there is none."""
        found = next((program for program in self._cached() if _stretches().serves(program, shapes)), None)
        return None if found is None else self._completed(found)

    def rest(self, part: int, shapes: tuple[tuple[int, ...], ...]) -> Program:
        """The program of a part for inputs of these shapes, or one whose stretch serves them."""
        key = part, tuple(map(len, shapes))
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = OfPart(self._source, self, *key)
        return found.program(shapes)

    def _cached(self) -> Iterator[Program]:
        """The cached programs with a stretch, read as they are needed.

        They are not completed here: with methods of this object they would form a cycle, and stay in memory until it is
        collected.
        """
        yield from tuple(self._stretched)
        while not self._all_read and len(self._stretched) < MOST_STRETCHED:
            entry = self._entry_of_stretched(len(self._stretched))
            hold = GC_PAUSED.hold()
            with hold.ended(), hold.ended(), hold:
                found = None if entry is None else entry.load(self._prefetched)
            if found is None or found.program.stretch is None or not self._is_cut_alike(found):
                self._all_read = True
                return
            self._stretched.append(found.program)
            self._adopt(_shapes(found.program), found.program)
            yield found.program

    def _is_cut_alike(self, found: Stored) -> bool:
        """Whether the numbers of a cached program's parts have the same meaning here; the first one that is used
        decides."""
        if self._begun is None and self._cut_shapes is None:
            self._cut_shapes = found.cut_shapes
        return bool(found.cut_shapes == self.cut_shapes)

    @property
    def cut_shapes(self) -> Shapes | None:
        """The input shapes for which the entry was cut, as far as that is known; None if it was not."""
        found: Shapes | None = self._cut_shapes if self._begun is None else self._begun.cut_shapes
        return found

    def _entry_of_stretched(self, number: int) -> ProgramEntry | None:
        return self._source.entry(variant=f"{self.path}lengths {number}")

    def _new(self, shapes: Shapes, entry: ProgramEntry | None = None) -> Program:
        """A program from the compiler. If it is worth it, and has no stretch, it is cached in the entry."""
        start = perf_counter()
        program = self._compiled(shapes)
        stored, stretch = Stored(program, self._cut()), program.stretch
        if stretch is None:
            self._keep(entry, stored, perf_counter() - start)
        elif not any(each is stretch for each in self._stored):
            number = len(self._stretched) + len(self._stored)
            self._stored.append(stretch)
            if number < MOST_STRETCHED:
                self._keep(self._entry_of_stretched(number), stored, perf_counter() - start)
        return program if self._cut() is None else evolve(program, rest=self.rest)

    def _keep(self, entry: ProgramEntry | None, stored: Stored, spent: float) -> None:
        keep(entry, stored, spent)

    def _cut(self) -> Shapes | None:
        found: Shapes | None = self.compilation.cut_shapes
        return found

    def _completed(self, program: Program) -> Program:
        """A program from the cache, with what is compiled for other shapes and when it runs."""
        own = _shapes(program)
        specialize = partial(self._specialized, own)
        return evolve(program, specialize=specialize, reuse=self.reuse, rest=self.rest)

    def _specialized(self, own: Shapes, others: Shapes) -> Program:
        """The program in which some inputs have other shapes than the `own` ones of another program."""
        return self.specialize({**own, **others})


class OfPackage(OtherShapes):
    """The programs of a package's entry. `begun` is called with its first program.

    One entry of the cache is being read ahead if it was `prefetched`.
    """

    path = ""

    def __init__(self, source: Source, prefetched: Prefetched | None) -> None:
        super().__init__(source)
        self._prefetched = prefetched
        self._residents: list[DeviceConstants] = []

    def begun(self, first: Stored) -> Program:
        """The first program, with what is compiled for other shapes and when it runs.

        If it has open input dimensions, no run can use it, and the first one for known shapes is looked up.
        """
        program = first.program
        self._residents.append(program.residents)
        self._cut_shapes = first.cut_shapes
        self._awaits_first = _is_open(program)
        if not self._awaits_first:
            self._prefetched = None
        return evolve(program, specialize=self.specialize, reuse=self.reuse, rest=self.rest)

    def _made(self) -> Any:
        own = self._source
        return _compiler().compilation(own.package, own.options, own.backends, *self._residents[:1])

    def _known(self, shapes: Shapes) -> ProgramEntry | None:
        return self._source.entry(shapes)

    def _compiled(self, shapes: Shapes) -> Program:
        program: Program = self.compilation.specialize(shapes)
        return program


class OfPart(OtherShapes):
    """The programs of a part, by its number, for inputs of some ranks."""

    def __init__(self, source: Source, whole: OtherShapes, part: int, ranks: tuple[int, ...]) -> None:
        super().__init__(source)
        self._whole, self._part, self._ranks = whole, part, ranks
        self._awaits_first = True
        shapes = sorted((whole.cut_shapes or {}).items())
        self._path = f"{whole.path}{PART}{part} {ranks} of {shapes} "

    @property
    def path(self) -> str:
        """Includes the shapes for which the whole was cut: for others, a part of this number may be another one."""
        return self._path

    def program(self, shapes: tuple[tuple[int, ...], ...]) -> Program:
        """The program for inputs of these shapes, or one whose stretch serves them."""
        return self.reuse(shapes) or self._completed(self.specialize(dict(enumerate(shapes))))

    def _made(self) -> Any:
        return self._whole.compilation.part(self._part, self._ranks)

    def _known(self, shapes: Shapes) -> ProgramEntry | None:
        return self._source.entry(variant=f"{self.path}{tuple(shapes.values())}")

    def _keep(self, entry: ProgramEntry | None, stored: Stored, spent: float) -> None:
        """Cache a program however little time it took here: in another process the whole entry is compiled for it."""
        keep(entry, stored, math.inf)

    def _compiled(self, shapes: Shapes) -> Program:
        program: Program = self.compilation.opened(tuple(shapes[at] for at in range(len(self._ranks))))
        return program


def keep(entry: ProgramEntry | None, stored: Stored, spent: float) -> None:
    """Cache a program that took so many seconds, if there is an entry for it and it is worth it."""
    if entry is not None and spent >= WORTH_CACHING:
        entry.store(stored)


def _shapes(program: Program) -> Shapes:
    """The known shapes of a program's inputs, by position."""
    return {at: static(info.shape) for at, info in enumerate(program.inputs) if is_static(info.shape)}


def _is_open(program: Program) -> bool:
    """Whether an input's shape is unknown, so that no run can use the program."""
    return not all(is_static(info.shape) for info in program.inputs)


def _stretches() -> Any:
    return imports.module("onert.compiler.program_cache.stretches")


def _compiler() -> Any:
    """The compiler's module, imported only when something is compiled."""
    return imports.module("onert.compiler.compiler")
