"""The on-disk program cache. A program is compiled once and looked up by everything it depends on (`key`).

An entry is data (`encoding`): the program, with its kernels as data from their backends, but without what is taken from
the model again, above all large constants. Arrays are stored beside the document, so weights need not be packed again.
Nothing in an entry is executed except the machine code that a backend stored. Models with operations declared by
third-party code are not cached, because nothing tells whether that code has changed.

If a file fully determines its model, the digest of its content is part of the key. On a hit the file is not parsed
again, because it was validated when the entry was stored.
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
from onert.backend.residents import DeviceConstants
from onert.backend.tasks import Pool, Task
from onert.backend.writers import WRITERS
from onert.compiler.options import Options
from onert.ir import OnertError, Package
from onert.ir.process import imports
from onert.ir.process.digests import SIZE
from onert.ir.value import ByIdentity

from . import key as keys
from .decoding import DecodeError, decode
from .encoding import Apart, EncodeError, encode
from .parts import LazyParts, Parts
from .records import Records
from .shared_arrays import SharedArrays

Prefetched = tuple[str, Task[memoryview | None]]
"""The key of an entry, and the task that reads its payload."""

PART = "part "
"""What the names of variants begin with that are programs of a part."""

_ALIGNMENT = 64


@frozen(eq=False)
class ProgramEntry(ByIdentity):
    """The cache entry of one package's program for one set of options; `parts` is what it takes from the package.

    `key` reads the whole package. `outline` is a key of a part of it: an empty entry under that key says that a program
    of such a package was stored, which saves reading all of a new package; None if the program is not cacheable. A
    package that `is_new` was unknown when it was read. It is not looked up before this process's key components are
    known, since computing them takes tens of milliseconds if nothing is cached. `extra_keys` has the keys of further
    entries to store with the program: all are empty, except that the last holds the program's key and size for
    `prefetch`. `label` describes the program to people who inspect the cache. A program that `shares` has its large
    arrays in entries of their own, because other programs of the package probably have the same.
    """

    cache: Cache
    outline: Callable[[], str | None]
    key: Callable[[], str]
    parts: Parts
    backends: Mapping[str, Backend]
    records: Records
    extra_keys: Callable[[], Iterable[str]] = tuple
    label: Callable[[], str] = str
    is_new: bool = False
    shares: bool = False

    def load(self, prefetched: Prefetched | None = None) -> Stored | None:
        """The cached program, without a `specialize` function; None on a miss. An unusable entry is removed. If the
        reading of the entry was `prefetched`, its result is used."""
        if self.is_new and not keys.is_process_known():
            return None
        outline = self.outline()
        payload = None if outline is None or self.cache.load(outline) is None else self._payload(prefetched)
        if payload is None:
            return None
        try:
            return revived(payload, self.records, self.parts, self.backends, self._arrays)
        except UNUSABLE:
            self.cache.remove([self.key()])
            return None

    @property
    def _arrays(self) -> SharedArrays:
        return SharedArrays(self.cache)

    def _payload(self, prefetched: Prefetched | None) -> memoryview | None:
        key = self.key()
        found = prefetched[1].result() if prefetched is not None and prefetched[0] == key else None
        return self.cache.load(key) if found is None else found

    def store(self, stored: Stored) -> None:
        """Store a program in the background, if all of it can be represented as data, including its stretch."""
        WRITERS.begin(partial(self._store, stored))

    def _store(self, stored: Stored) -> None:
        program, outline = stored.program, self.outline()
        if outline is None:
            return
        digesting = Task(self.key)  # reads and digests all of the content, which releases the GIL
        with suppress(RuntimeError):  # no thread can be started
            Pool(1, "onert-digest").give(digesting)
        kernels = tuple(tuple(self._kernel_data(step) for step in routine.steps) for routine in program.routines)
        stretch = None if program.stretch is None else _stretches().kept(program, self.backends)
        if any(kernel is None for each in kernels for kernel in each) or (stretch is None) != (program.stretch is None):
            return
        try:
            self.parts.check()
            value = without_kernels(program), kernels, stretch, stored.cut_shapes
            pieces = pack(value, self.records, self.parts, self._arrays.store if self.shares else None)
        except EncodeError:
            return
        digesting.run()  # does nothing if a thread has begun it
        key = digesting.result()
        if self.cache.store(key, *pieces, label=self.label()):
            marker_keys = (outline, *self.extra_keys())
            for each in marker_keys:
                names_program = each is marker_keys[-1] and each is not outline
                self.cache.store(each, *([f"{key} {sum(map(len, pieces))}".encode()] if names_program else []))

    def _kernel_data(self, step: Step) -> Any:
        return self.backends[step.backend].keep(step.kernel)


@frozen(eq=False)
class Stored(ByIdentity):
    """A program with what compiling more for it needs: the input shapes, by position, for which its entry was cut; None
    if it was not."""

    program: Program
    cut_shapes: Mapping[int, tuple[int, ...]] | None = None


UNUSABLE = (DecodeError, OnertError, ValueError, TypeError, LookupError, AttributeError)
"""The exceptions that `revived` raises for damaged data."""


def revived(
    payload: memoryview,
    records: Records,
    parts: Parts,
    backends: Mapping[str, Backend],
    arrays: SharedArrays | None = None,
) -> Stored:
    """The program in a payload, with the kernels that its backends, by name, make of theirs. It has no `specialize`
    function."""
    program, kernels, kept_stretch, cut_shapes = unpack(payload, records, parts, arrays)

    def routine(data: Routine, kernels: Sequence[Any]) -> Routine:
        pairs = zip(data.steps, kernels, strict=True)
        steps = (evolve(s, kernel=backends[s.backend].revive(kernel, s.sequence)) for s, kernel in pairs)
        return evolve(data, steps=tuple(steps))

    routines = tuple(routine(*each) for each in zip(program.routines, kernels, strict=True))
    stretch = None
    if kept_stretch is not None:
        steps = [(step.backend, step.kernel) for step in routines[program.entry].steps]
        stretch = _stretches().revived(kept_stretch, steps, backends)
    made = evolve(program, routines=routines, residents=DeviceConstants(), stretch=stretch)
    return Stored(made, cut_shapes)


def _stretches() -> Any:
    """The module for stretches, imported only for a program that has one."""
    return imports.module("onert.compiler.program_cache.stretches")


def without_kernels(program: Program) -> Program:
    """The part of a program that is data: without kernels, and without what a process adds to it."""
    nothing: Any = None
    routines = tuple(
        evolve(routine, steps=tuple(evolve(step, kernel=nothing) for step in routine.steps))
        for routine in program.routines
    )
    bare = evolve(program, specialize=nothing, residents=nothing, stretch=None, rest=None, reuse=None)
    return evolve(bare, routines=routines)


def program_entry(
    package: Package, options: Options, backends: Sequence[Backend], variant: str = "", shares: bool = False
) -> ProgramEntry | None:
    """The cache entry of a package's program, or of another one by the name of its `variant`, which `shares` arrays;
    None if it is not cacheable.

    That is the case if a backend has no fingerprint, and if compilation depends on measured times or extensions, or
    writes dot files.
    """
    if options.use_scheduler or options.graph_dot_dump or options.extensions:
        return None
    content = package.content
    label = partial(keys.label, package, options, backends, variant)
    cache_, by_name, records = Cache(default_directory(os.environ)), {b.name: b for b in backends}, Records(backends)
    if content is not None:
        found = cache(lambda: keys.components(package, options, backends, (), variant))
        outline = cache(lambda: None if (parts := found()) is None else keys.key_of(parts))
        key = cache(lambda: keys.key_of({**(found() or {}), "digest": keys.content_digest(content)}))
        is_new, is_part = content.known is False, variant.startswith(PART)
        extra_keys: Callable[[], Iterable[str]] = tuple if is_part else partial(keys.well_formed, content)
        return ProgramEntry(
            cache_, outline, key, LazyParts(content), by_name, records, extra_keys, label, is_new, shares
        )
    constants = keys.constants_of(package.models)
    try:
        components = keys.components(package, options, backends, constants, variant)
    except EncodeError:
        return None
    if components is None:
        return None
    outline = cache(lambda: keys.key_of(components))
    key = cache(lambda: keys.key_of({**components, "elements": keys.elements(constants)}))
    operands = (part for operand in keys.operands_of(package.models) for part in (operand.type, operand))
    return ProgramEntry(
        cache_, outline, key, Parts((*constants, *operands)), by_name, records, label=label, shares=shares
    )


def is_cached(package: Package) -> bool:
    """Whether a program of a package with this content was stored, which implies that the content is well-formed."""
    content = package.content
    if content is None:
        return False
    if content.known is None:
        cache_ = Cache(default_directory(os.environ))
        found: memoryview | None = None
        for key in keys.well_formed(content) if cache_.has_entries else ():
            found = cache_.load(key)
            if found is None:
                break
        content.known = found is not None
        content.last_program = bytes(found or b"")
    return content.known


def prefetch(package: Package) -> Prefetched | None:
    """Start reading, in another thread, the program that was last stored for this content: it is probably needed next.

    None if there is none, if it is so large that reading it in vain would matter, or if no thread can be started.
    """
    content = package.content
    key, _, size = ("" if content is None else content.last_program.decode(errors="replace")).partition(" ")
    if (
        len(key) != 2 * SIZE
        or not _HEXADECIMAL.issuperset(key)
        or not (size.isdecimal() and int(size) <= _MOST_PREFETCHED)
    ):
        return None
    task = Task(partial(Cache(default_directory(os.environ)).load, key))
    try:
        return key, Pool(1, "onert-read").give(task)
    except RuntimeError:
        return None


_HEXADECIMAL = frozenset("0123456789abcdef")
_MOST_PREFETCHED = 1 << 26


# ---- payloads: a document and its buffers


def pack(value: object, records: Records, parts: Parts, apart: Apart | None = None) -> list[bytes | memoryview]:
    """The sizes of the document, of every buffer and of the places of constants, followed by these, each aligned to a
    cache line."""
    used = _Used(parts.numbers())
    document, buffers = encode(value, records, used, apart)
    places, _ = encode(parts.places(sorted(used.seen)), records)
    pieces = [document, *buffers, places]
    sizes = struct.pack(f"<{1 + len(pieces)}Q", len(pieces), *map(len, pieces))
    return [part for piece in (sizes, *pieces) for part in (piece, bytes(-len(piece) % _ALIGNMENT))]


class _Used(dict[int, int]):
    """The numbers of parts by identity, which remembers those that were asked for."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        super().__init__(numbers)
        self.seen = set[int]()

    def __getitem__(self, identity: int) -> int:
        found = super().__getitem__(identity)
        self.seen.add(found)
        return found


def unpack(
    payload: memoryview, records: Records, parts: Parts, arrays: SharedArrays | None = None
) -> tuple[Program, Sequence[Sequence[Any]], Any, Any]:
    """The program, its backends' kernel data, its stretch as data, and the input shapes for which its entry was cut.

    Raises DecodeError if the payload has something else.
    """
    try:
        (count,) = struct.unpack_from("<Q", payload)
        sizes = (8 * (1 + count), *struct.unpack_from(f"<{count}Q", payload, 8))
    except (struct.error, OverflowError, MemoryError) as error:
        raise DecodeError(f"the sizes cannot be read: {error}") from error
    starts = tuple(accumulate((size + -size % _ALIGNMENT for size in sizes), initial=0))
    if starts[-1] != len(payload) or count < 2:
        raise DecodeError(f"{len(payload)} bytes are not {count} pieces of {starts[-1]} bytes")
    _, document, *buffers, places = (payload[start : start + size] for start, size in zip(starts, sizes, strict=False))
    found = decode(document, buffers, records, parts, *(() if arrays is None else (arrays.fetch,)))
    parts.locate(decode(places, (), records))
    if not (isinstance(found, tuple) and len(found) == 4 and isinstance(found[0], Program)):
        raise DecodeError("the entry does not contain a program")
    return found
