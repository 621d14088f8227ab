"""Programs on disk: compiled once, found again by all that they depend on (`key`).

An entry is data (`encoding`): everything of a program but its kernels, which their backends give as data too, and but
for what is taken from the model again, above all large constants. Arrays lie beside that, so that packed weights need
not be packed again. Nothing of an entry is run but the machine code that a backend keeps in it. A model with operations
that somebody else's code declares is not cached: nothing tells whether that code is still the same.

Of a model that a file's content says alone, the content is what programs are found by, and where one is found the file
is read no further: that it is well-formed was found out before.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import accumulate
from typing import Any

from attrs import evolve, frozen

from onert.backend import Backend, Program, Routine, Step
from onert.backend.cache import Cache, default_directory
from onert.backend.residents import Residents
from onert.backend.tasks import Pool, Task
from onert.backend.writers import WRITERS
from onert.compiler.options import Options
from onert.ir import Constant, OnertError, Package
from onert.ir.content import Content
from onert.ir.process.cached import cached
from onert.ir.process.digests import SIZE
from onert.ir.value import Told

from . import key as keys
from .decoding import DecodeError, decode
from .encoding import EncodeError, encode
from .records import Records

Specialize = Callable[[Mapping[int, tuple[int, ...]]], Program]

Ahead = tuple[str, Task[memoryview | None]]
"""The key of an entry, and its payload on its way."""

_ALIGNMENT = 64


@frozen(eq=False)
class ProgramEntry(Told):
    """Where the program of one package for one set of options is cached; `parts` are what it takes from the package.

    `key` reads all of the package. `outline` is a key of some of it: an empty entry of that key says that a program for
    such a package was stored, so that nobody reads all of a package that is new; None where the program is not cached.
    A package that `is_new` was not known when it was read, and is not looked for before the keys of this process are
    known: to make them takes tens of milliseconds where nothing is kept. `also` are the keys of other entries that go
    with the program: they are empty, but that the last one notes the program's key and size for `ahead`. `label` says
    what the program is for people who look at the cache.
    """

    cache: Cache
    outline: Callable[[], str | None]
    key: Callable[[], str]
    parts: Parts
    backends: Mapping[str, Backend]
    records: Records
    also: Callable[[], Iterable[str]] = tuple
    label: Callable[[], str] = str
    is_new: bool = False

    def load(self, specialize: Specialize, begun: Ahead | None = None) -> Program | None:
        """The program, where it is there; `specialize` becomes what it has of that name. An entry that is not usable is
        removed. One whose reading was `begun` is not read again."""
        if self.is_new and not keys.is_process_known():
            return None
        WRITERS.finish()
        outline = self.outline()
        payload = None if outline is None or self.cache.load(outline) is None else self._payload(begun)
        if payload is None:
            return None
        try:
            program, kernels = unpack(payload, self.records, self.parts)
            routines = [self._revived(*each) for each in zip(program.routines, kernels, strict=True)]
        except _UNUSABLE:
            self.cache.remove([self.key()])
            return None
        return evolve(program, routines=tuple(routines), specialize=specialize, residents=Residents(), stretch=None)

    def _payload(self, begun: Ahead | None) -> memoryview | None:
        key = self.key()
        found = begun[1].result() if begun is not None and begun[0] == key else None
        return self.cache.load(key) if found is None else found

    def _revived(self, routine: Routine, kernels: Sequence[Any]) -> Routine:
        pairs = zip(routine.steps, kernels, strict=True)
        steps = (evolve(s, kernel=self.backends[s.backend].revive(kernel, s.sequence)) for s, kernel in pairs)
        return evolve(routine, steps=tuple(steps))

    def store(self, program: Program) -> None:
        """Store a program, where all that it consists of is data, while the caller goes on."""
        WRITERS.begin(partial(self._store, program))

    def _store(self, program: Program) -> None:
        outline = self.outline()
        if outline is None:
            return
        digesting = Task(self.key)  # reads all of the content, for which it does not need the interpreter
        with suppress(RuntimeError):  # there is no thread to be had
            Pool(1, "onert-digest").give(digesting)
        kernels = tuple(tuple(self._kept(step) for step in routine.steps) for routine in program.routines)
        if any(kernel is None for each in kernels for kernel in each):
            return
        try:
            self.parts.check()
            pieces = pack((bare(program), kernels), self.records, self.parts)
        except EncodeError:
            return
        digesting.run()  # where no thread did
        key = digesting.result()
        if self.cache.store(key, *pieces, label=self.label()):
            empty = (outline, *self.also())
            for each in empty:
                noted = each is empty[-1] and each is not outline
                self.cache.store(each, *([f"{key} {sum(map(len, pieces))}".encode()] if noted else []))

    def _kept(self, step: Step) -> Any:
        return self.backends[step.backend].keep(step.kernel)


_UNUSABLE = (DecodeError, OnertError, ValueError, TypeError, LookupError, AttributeError)
"""What is raised for data that a backend did not keep so, by `decode` and by `Backend.revive`."""


def bare(program: Program) -> Program:
    """What of a program is data: nothing for its kernels, and none of what a process adds to it."""
    nothing: Any = None
    routines = tuple(
        evolve(routine, steps=tuple(evolve(step, kernel=nothing) for step in routine.steps))
        for routine in program.routines
    )
    return evolve(program, routines=routines, specialize=nothing, residents=nothing, stretch=None)


def program_entry(package: Package, options: Options, backends: Sequence[Backend]) -> ProgramEntry | None:
    """The place of a package's program; None if it is not cached.

    That is so with a backend that does not keep kernels, and where compiling has effects or causes of its own: measured
    times, files for people.
    """
    if options.use_scheduler or options.graph_dot_dump:
        return None
    content = package.content
    label = partial(keys.label, package, options, backends)
    place, by_name, records = Cache(default_directory(os.environ)), {b.name: b for b in backends}, Records(backends)
    if content is not None:
        found = cache(lambda: keys.components(package, options, backends, ()))
        outline = cache(lambda: None if (parts := found()) is None else keys.joined(parts))
        key = cache(lambda: keys.joined({**(found() or {}), "digest": keys.content_digest(content)}))
        also, is_new = partial(keys.well_formed, content), content.known is False
        return ProgramEntry(place, outline, key, LaterParts(content), by_name, records, also, label, is_new)
    constants = keys.constants_of(package.models)
    try:
        components = keys.components(package, options, backends, constants)
    except EncodeError:
        return None
    if components is None:
        return None
    outline = cache(lambda: keys.joined(components))
    key = cache(lambda: keys.joined({**components, "elements": keys.elements(constants)}))
    operands = (part for operand in keys.operands_of(package.models) for part in (operand.type, operand))
    return ProgramEntry(place, outline, key, Parts((*constants, *operands)), by_name, records, label=label)


def known(package: Package) -> bool:
    """Whether a program of a package with this content was stored, so that the content is well-formed."""
    content = package.content
    if content is None:
        return False
    if content.known is None:
        place = Cache(default_directory(os.environ))
        found: memoryview | None = None
        for key in keys.well_formed(content) if place.has_entries else ():
            found = place.load(key)
            if found is None:
                break
        content.known = found is not None
        content.kept = bytes(found or b"")
    return content.known


def ahead(package: Package) -> Ahead | None:
    """The program that was kept last of this content, being read in another thread: it is probably asked for next.

    None where there is none, where it is so large that reading it for nothing would matter, and where there is no
    thread to be had.
    """
    content = package.content
    key, _, size = ("" if content is None else content.kept.decode(errors="replace")).partition(" ")
    if len(key) != 2 * SIZE or not _HEXADECIMAL.issuperset(key) or not (size.isdecimal() and int(size) <= _MOST_AHEAD):
        return None
    task = Task(partial(Cache(default_directory(os.environ)).load, key))
    try:
        return key, Pool(1, "onert-read").give(task)
    except RuntimeError:
        return None


_HEXADECIMAL = frozenset("0123456789abcdef")
_MOST_AHEAD = 1 << 26


class Parts:
    """What a program takes from its package, by number."""

    def __init__(self, members: Sequence[object]) -> None:
        self._members = members

    def numbers(self) -> dict[int, int]:
        """The numbers of members by identity."""
        return {id(part): at for at, part in enumerate(self._members)}

    def __getitem__(self, at: int) -> object:
        return self._members[at]

    def check(self) -> None:
        """Nothing: the package was looked at when its key was made."""


_OWN_BYTES = 1 << 16
"""Constants of so many bytes at most, biases among them, an entry holds itself, so that no model is read for them."""


class LaterParts(Parts):
    """The larger constants of models, which are read when one of these is; all else of them an entry holds itself."""

    def __init__(self, content: Content) -> None:
        self._content = content

    def numbers(self) -> dict[int, int]:
        return {id(part): at for at, part in enumerate(self._constants) if part.array.nbytes > _OWN_BYTES}

    def __getitem__(self, at: int) -> object:
        return Constant(lambda: self._constants[at].array)

    def check(self) -> None:
        """EncodeError if the models have operations that others declare. Nothing else in them can be others'."""
        operations = tuple(s.operations for model in self._content.models for s in model.subgraphs)
        encode(operations, Records(), self.numbers())

    @cached
    def _constants(self) -> tuple[Constant, ...]:
        return keys.constants_of(self._content.models)


# ---- documents beside which buffers lie


def pack(value: object, records: Records, parts: Parts) -> list[bytes | memoryview]:
    """Sizes of the document and of every buffer, then these, each on a cache line."""
    document, buffers = encode(value, records, parts.numbers())
    pieces = [document, *buffers]
    sizes = struct.pack(f"<{1 + len(pieces)}Q", len(pieces), *map(len, pieces))
    return [part for piece in (sizes, *pieces) for part in (piece, bytes(-len(piece) % _ALIGNMENT))]


def unpack(payload: memoryview, records: Records, parts: Parts) -> tuple[Program, Sequence[Sequence[Any]]]:
    """The program and what its backends kept; DecodeError if the payload holds something else."""
    try:
        (count,) = struct.unpack_from("<Q", payload)
        sizes = (8 * (1 + count), *struct.unpack_from(f"<{count}Q", payload, 8))
    except (struct.error, OverflowError, MemoryError) as error:
        raise DecodeError(f"the sizes cannot be read: {error}") from error
    starts = tuple(accumulate((size + -size % _ALIGNMENT for size in sizes), initial=0))
    if starts[-1] != len(payload) or count < 1:
        raise DecodeError(f"{len(payload)} bytes are not {count} pieces of {starts[-1]} bytes")
    _, document, *buffers = (payload[start : start + size] for start, size in zip(starts, sizes, strict=False))
    found = decode(document, buffers, records, parts)
    if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Program)):
        raise DecodeError("the entry holds no program")
    return found
