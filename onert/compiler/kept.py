"""Programs on disk: compiled once, found again by all that they depend on.

A kept program is a pickle of everything but the kernels and the model's own constants and operands. These are taken
from the model again, the kernels come from what their backends keep; arrays lie beside the pickle and are mapped into
memory, so that packed weights are neither packed nor held twice. What a program depends on, and is found by, is the
model, the options, the sources of this package, Python and NumPy, and what the backends say of themselves. A model with
operations that somebody else's code declares is not kept: nothing tells whether that code is still the same.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, partial
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

    `key` reads every constant. `outline` is a key of all but these: an empty entry of that key says that a program for
    such a package was kept, so that nobody reads the constants of a package that is new.
    """

    cache: Cache
    outline: str
    key: Callable[[], str]
    parts: tuple[object, ...]
    backends: Mapping[str, Backend]

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
            pieces = _packed((bare, kernels), self)
        except _UNFIT:
            return
        if self.cache.store(self.key(), *pieces):
            self.cache.store(self.outline)

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
    constants = _constants(package)
    try:
        structure = _pickled(package, {id(constant): at for at, constant in enumerate(constants)}, None, _OURS)
    except _UNFIT:
        return None
    kinds = "\n".join(f"{constant.array.dtype} {constant.array.shape}" for constant in constants)
    state = sources(Path(onert.ir.__file__).parents[1])
    versions = f"{sys.implementation.cache_tag} {sys.hexversion:x} {np.__version__}"
    outline = Cache.key(state, versions, repr(names), _text(options), structure, kinds)
    key = cache(lambda: Cache.key(outline, _digest(constants)))
    parts = (*constants, *_operands(package))
    return Shelf(Cache(default_directory(os.environ)), outline, key, parts, {b.name: b for b in backends})


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


def _constants(package: Package) -> tuple[Constant, ...]:
    """The constants of a package's models, each once."""
    found = {id(operand.data): operand.data for operand in _every_operand(package) if operand.data is not None}
    return tuple(found.values())


def _operands(package: Package) -> Iterator[Operand | TensorType]:
    """The operands of a package's models, and their types."""
    for operand in _every_operand(package):
        yield operand.type
        yield operand


def _every_operand(package: Package) -> Iterator[Operand]:
    return (operand for model in package.models for subgraph in model.subgraphs for operand in subgraph.operands)


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


# ---- pickles beside which arrays lie


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
    def __init__(self, file: io.BytesIO, buffers: Sequence[memoryview], parts: Sequence[object]) -> None:
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


def _packed(value: object, shelf: Shelf) -> list[bytes | memoryview]:
    """Sizes of the pickle and of every buffer, then these, each on a cache line."""
    buffers: list[pickle.PickleBuffer] = []
    head = _pickled(value, {id(part): at for at, part in enumerate(shelf.parts)}, buffers)
    pieces: list[memoryview] = [memoryview(head), *(buffer.raw() for buffer in buffers)]
    sizes = struct.pack(f"<{1 + len(pieces)}Q", len(pieces), *(piece.nbytes for piece in pieces))
    whole = (memoryview(sizes), *pieces)
    return [part for piece in whole for part in (piece, bytes(-piece.nbytes % _ALIGNMENT))]


def _unpacked(payload: memoryview, parts: Sequence[object]) -> tuple[Program, Sequence[Sequence[Any]]]:
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
