"""Programs on disk: compiled once, found again by all that they depend on.

A kept program is a pickle of everything but the kernels and what it takes from the model again, above all constants;
the kernels come from what their backends keep. Arrays lie beside the pickle and are mapped into memory, so that packed
weights are neither packed nor held twice. What a program depends on, and is found by, is the model, the options, the
sources of this package, Python and NumPy, and what the backends say of themselves. A model with operations that
somebody else's code declares is not kept: nothing tells whether that code is still the same.

Of a model that a file's content says alone, the content is what programs are found by, and where one is found the file
is read no further: that it is well-formed is kept too.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, cached_property, partial
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from attrs import evolve, fields, frozen

import onert.ir
from onert.backend import HOST, Backend, Memory, Program, Routine, Step
from onert.backend.cache import Cache, default_directory, sources
from onert.backend.writers import WRITERS
from onert.ir import Array, BackendError, Constant, Operand, Package, TensorType
from onert.ir.package import Content, Models

from .options import Options

Specialize = Callable[[Mapping[int, tuple[int, ...]]], Program]

_ALIGNMENT = 64
_UNFIT = (pickle.PicklingError, TypeError, AttributeError)
"""What pickling raises for values that only this process knows, such as a user's own function."""
_BROKEN = (BackendError, pickle.UnpicklingError, struct.error, *_UNFIT, ValueError, EOFError, ImportError, LookupError)
"""What is raised for a program that another state of things kept than its key says."""
_OURS = frozenset({"attr", "copyreg", "numpy", "onert", *sys.stdlib_module_names})
"""The packages whose state is part of the key."""


@frozen(eq=False)
class Shelf:
    """Where the program of one package for one set of options is kept; `parts` are what it takes from the package.

    `key` reads all of the package. `outline` is a key of some of it: an empty entry of that key says that a program for
    such a package was kept, so that nobody reads all of a package that is new. `told` are the keys of other empty
    entries that go with the program.
    """

    cache: Cache
    outline: str
    key: Callable[[], str]
    parts: Parts
    backends: Mapping[str, Backend]
    told: Callable[[], Iterable[str]] = tuple

    def take(self, specialize: Specialize) -> Program | None:
        """The program, where it is there; `specialize` becomes what it has of that name."""
        WRITERS.finish()
        payload = None if self.cache.load(self.outline) is None else self.cache.load(self.key())
        if payload is None:
            return None
        try:
            program, kernels = _unpacked(payload, self.parts)
            routines = [self._revived(*each) for each in zip(program.routines, kernels, strict=True)]
        except _BROKEN:
            return None  # compile it again
        return evolve(program, routines=tuple(routines), specialize=specialize)

    def _revived(self, routine: Routine, kernels: Sequence[Any]) -> Routine:
        pairs = zip(routine.steps, kernels, strict=True)
        steps = (evolve(s, kernel=self.backends[s.backend].revive(kernel, s.sequence)) for s, kernel in pairs)
        return evolve(routine, steps=tuple(steps))

    def put(self, program: Program) -> None:
        """Keep a program, where all that it consists of can be kept, while the caller goes on."""
        WRITERS.begin(partial(self._put, program))

    def _put(self, program: Program) -> None:
        kernels = tuple(tuple(self._kept(step) for step in routine.steps) for routine in program.routines)
        if any(kernel is None for each in kernels for kernel in each):
            return
        bare = evolve(program, routines=tuple(map(_without_kernels, program.routines)), specialize=_nothing)
        try:
            self.parts.check()
            pieces = _packed((bare, kernels), self.parts)
        except _UNFIT:
            return
        if self.cache.store(self.key(), *pieces):
            for key in (self.outline, *self.told()):
                self.cache.store(key)

    def _kept(self, step: Step) -> Any:
        return self.backends[step.backend].keep(step.kernel)


def _without_kernels(routine: Routine) -> Routine:
    empty: Any = None
    return evolve(routine, steps=tuple(evolve(step, kernel=empty) for step in routine.steps))


def _nothing(shapes: Mapping[int, tuple[int, ...]]) -> Program:
    """Stands in a pickle for the making of programs for other shapes."""
    raise pickle.UnpicklingError("a kept program is used before it is whole")


def shelf(package: Package, options: Options, backends: Sequence[Backend]) -> Shelf | None:
    """The place of a package's program; None where it is not kept.

    That is so with a backend that does not keep kernels, and where compiling has effects or causes of its own: measured
    times, files for people.
    """
    if options.use_scheduler or options.graph_dot_dump:
        return None
    names = {backend.name: backend.fingerprint(options.settings) for backend in backends}
    if None in names.values():
        return None
    asked = (_state(), repr(names), _text(options))
    place, by_name = Cache(default_directory(os.environ)), {b.name: b for b in backends}
    content = package.content
    if content is not None:
        outline = Cache.key(*asked, package.name, repr(package.model_names), content.outline)
        key = cache(lambda: Cache.key(outline, content.digest))
        return Shelf(place, outline, key, LaterParts(content), by_name, lambda: _well_formed(content))
    constants = _constants(package.models)
    try:
        structure = _structure(package, constants)
    except _UNFIT:
        return None
    kinds = "\n".join(f"{constant.array.dtype} {constant.array.shape}" for constant in constants)
    outline = Cache.key(*asked, structure, kinds)
    key = cache(lambda: Cache.key(outline, _digest(constants)))
    return Shelf(place, outline, key, Parts((*constants, *_operands(package.models))), by_name)


def known(package: Package) -> bool:
    """Whether a program of a package with this content was kept, so that the content is well-formed."""
    place = Cache(default_directory(os.environ))
    return package.content is not None and all(place.load(key) is not None for key in _well_formed(package.content))


def _well_formed(content: Content) -> Iterator[str]:
    """The keys of entries that say that content is well-formed; the first is made without all of it being read."""
    yield Cache.key(_state(), content.outline)
    yield Cache.key(_state(), content.outline, content.digest)


@cache
def _state() -> str:
    """What this process runs: the state of the sources when it is first asked for, Python and NumPy."""
    state = sources(Path(onert.ir.__file__).parents[1])
    return f"{state} {sys.implementation.cache_tag} {sys.hexversion:x} {np.__version__}"


def _structure(value: object, constants: Sequence[Constant]) -> bytes:
    """A pickle of everything but the constants, where no package of others declares any of it."""
    return _pickled(value, {id(constant): at for at, constant in enumerate(constants)}, None, _OURS)


def _digest(constants: Sequence[Constant]) -> bytes:
    """A digest of the elements of constants whose types are known."""
    found = hashlib.sha256()
    for constant in constants:
        array = constant.array
        found.update(pickle.dumps(array.tolist()) if array.dtype == object else _bytes(array).data)
    return found.digest()


def _text(options: Options) -> str:
    """The options that decide a program, the same in every process."""
    found = {f.name: getattr(options, f.name) for f in fields(Options) if f.name != "fixed"}
    return repr({name: sorted(value) if isinstance(value, frozenset) else value for name, value in found.items()})


def _constants(models: Models) -> tuple[Constant, ...]:
    """The constants of models, each once."""
    found = {id(operand.data): operand.data for operand in _every_operand(models) if operand.data is not None}
    return tuple(found.values())


def _operands(models: Models) -> Iterator[Operand | TensorType]:
    """The operands of models, and their types."""
    for operand in _every_operand(models):
        yield operand.type
        yield operand


def _every_operand(models: Models) -> Iterator[Operand]:
    return (operand for model in models for subgraph in model.subgraphs for operand in subgraph.operands)


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


# ---- pickles beside which arrays lie


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
"""Constants of so many bytes at most, biases among them, a program keeps itself, so that no model is read for them."""


class LaterParts(Parts):
    """The larger constants of models, which are read when one of these is; all else of them a program has itself."""

    def __init__(self, content: Content) -> None:
        self._content = content

    def numbers(self) -> dict[int, int]:
        return {id(part): at for at, part in enumerate(self._constants) if part.array.nbytes > _OWN_BYTES}

    def __getitem__(self, at: int) -> object:
        return Constant(lambda: self._constants[at].array)

    def check(self) -> None:
        """One of `_UNFIT` where the models have operations that others declare, or the content is not what it was."""
        _structure(self._content.models, self._constants)
        if not self._content.stays:
            raise pickle.PicklingError("a file was written to after it was loaded")

    @cached_property
    def _constants(self) -> tuple[Constant, ...]:
        return _constants(self._content.models)


def given(at: int) -> object:
    """Stands in a pickle for a part of the package."""
    raise pickle.UnpicklingError(f"part {at} of a package is asked for outside of a kept program")


def host_memory() -> Memory:
    """Stands in a pickle for the host's memory."""
    return HOST


def member(kind: type[Enum], name: str) -> Enum:
    """A member of an enumeration by its name: what it stands for may be a function that has none."""
    return kind[name]


class _Pickler(pickle.Pickler):
    """Pickles with `given` parts as their numbers; with `packages`, nothing that other packages declare."""

    def __init__(
        self,
        file: io.BytesIO,
        given: Mapping[int, int],
        buffers: list[pickle.PickleBuffer] | None,
        packages: frozenset[str] | None,
    ) -> None:
        super().__init__(file, 5, buffer_callback=None if buffers is None else buffers.append)
        self._given = given
        self._packages = packages

    def reducer_override(self, value: Any) -> Any:
        if self._packages is not None and isinstance(value, type | FunctionType):
            package = value.__module__.partition(".")[0]
            if package not in self._packages:
                raise pickle.PicklingError(f"{value.__qualname__} is declared by {package}")
        if isinstance(value, Constant | Operand | TensorType) and id(value) in self._given:
            return given, (self._given[id(value)],)
        if isinstance(value, Constant):
            return Constant, (np.asarray(value.array, order="C"),)
        if isinstance(value, Enum):
            return (member, (type(value), value.name))
        return (host_memory, ()) if value is HOST else NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, buffers: Sequence[memoryview], parts: Parts) -> None:
        super().__init__(file, buffers=buffers)
        self._parts = parts

    def find_class(self, module: str, name: str) -> Any:
        own = module == __name__ and name == given.__name__
        return self._parts.__getitem__ if own else super().find_class(module, name)


def _pickled(
    value: object,
    given: Mapping[int, int],
    buffers: list[pickle.PickleBuffer] | None,
    packages: frozenset[str] | None = None,
) -> bytes:
    file = io.BytesIO()
    _Pickler(file, given, buffers, packages).dump(value)
    return file.getvalue()


def _packed(value: object, parts: Parts) -> list[bytes | memoryview]:
    """Sizes of the pickle and of every buffer, then these, each on a cache line."""
    buffers: list[pickle.PickleBuffer] = []
    head = _pickled(value, parts.numbers(), buffers)
    pieces: list[memoryview] = [memoryview(head), *(buffer.raw() for buffer in buffers)]
    sizes = struct.pack(f"<{1 + len(pieces)}Q", len(pieces), *(piece.nbytes for piece in pieces))
    whole = (memoryview(sizes), *pieces)
    return [part for piece in whole for part in (piece, bytes(-piece.nbytes % _ALIGNMENT))]


def _unpacked(payload: memoryview, parts: Parts) -> tuple[Program, Sequence[Sequence[Any]]]:
    (count,) = struct.unpack_from("<Q", payload)
    sizes = struct.unpack_from(f"<{count}Q", payload, 8)
    pieces, start = [], _aligned(8 * (1 + count))
    for size in sizes:
        pieces.append(payload[start : start + size])
        start = _aligned(start + size)
    head, *buffers = pieces
    found: tuple[Program, Sequence[Sequence[Any]]] = _Unpickler(io.BytesIO(head), buffers, parts).load()
    return found


def _aligned(size: int) -> int:
    return size + -size % _ALIGNMENT
