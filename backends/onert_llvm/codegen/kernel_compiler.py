"""Kernels' object files: built, or found in the cache.

While one kernel is written, other threads, one per processor, generate code for others. These do next to nothing in
Python, where they would wait for the thread that writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from attrs import frozen

from onert.backend.cache import Cache
from onert.backend.tasks import Pool, Task
from onert.backend.writers import WRITERS
from onert.ir.process.forks import NoFork
from onert.ir.value import ByIdentity, Value
from onert_llvm.runtime.loaded_code import addresses as linked_addresses
from onert_llvm.runtime.loaded_code import are_drivers_loaded, is_loaded
from onert_llvm.runtime.loaded_code import drivers as linked_drivers
from onert_llvm.runtime.loaded_code import number_functions as linked_number_functions
from onert_llvm.target.isa import Isa

from .fingerprint import version
from .gil_interval import SHORT_SWITCH_INTERVAL
from .kernel_abi import KernelSpec, build
from .library import key as shipped_key
from .library import library
from .loading import llvm_codegen
from .native import numbers_text, pool_texts, run_text

_T = TypeVar("_T")


_MOST_THREADS = 8
"""More would only wait for kernels to be written, and each needs memory."""


def _threads() -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, _MOST_THREADS)


CODE = Pool(_threads(), "onert-code")
"""The threads that generate code, shared by all compilations in this process. Only they use LLVM: its Python interface
has a lock, which the main thread would still hold in a signal handler that interrupts it."""

_driver_tasks: dict[tuple[str, bool], Task[Mapping[str, int]]] = {}
"""Tasks that are producing the code that runs kernels."""
os.register_at_fork(after_in_child=_driver_tasks.clear)


def submit(call: Callable[[], _T]) -> Task[_T]:
    """Make a call in a thread that generates code, or in this one if none can be started."""
    task = Task(call)
    try:
        CODE.give(task)
    except RuntimeError:
        task.run()
    return task


def begin(isa: Isa, threads: int, store: Cache | None) -> Task[Mapping[str, int]] | None:
    """Start producing the code that runs kernels, and return the task; None if it is loaded already."""
    if are_drivers_loaded(isa.triple, threads > 1):
        return None
    key = (isa.triple, threads > 1)
    hold = SHORT_SWITCH_INTERVAL.hold()

    def make() -> Mapping[str, int]:
        try:
            with hold:
                return drivers(isa, threads, store)
        finally:
            _driver_tasks.pop(key, None)

    hold.__enter__()
    task = _driver_tasks.setdefault(key, Task(make))
    try:
        return CODE.give(task)  # again if an interrupt prevented it
    except RuntimeError:  # the system has no thread to spare
        task.run()
        return task


class KernelBuild:
    """Kernels that are being generated while more are still found; the code that runs them comes first."""

    def __init__(self, isa: Isa, threads: int, store: Cache | None) -> None:
        self._store = store
        self._pending: dict[str, _PendingObject] = {}
        self._hold = SHORT_SWITCH_INTERVAL.hold()
        self._drivers = partial(drivers, isa, threads, store)
        self._driver_task = begin(isa, threads, store)

    def __enter__(self) -> KernelBuild:
        self._hold.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._hold.__exit__()
        for each in self._pending.values():
            if isinstance(each.made, Task):
                each.made.drop()

    def begin(self, specs: Iterable[KernelSpec]) -> None:
        """Start generating those kernels that are neither started nor loaded."""
        for spec in specs:
            if spec.symbol not in self._pending and not is_loaded(spec.symbol):
                self._pending[spec.symbol] = _pending_object(spec, self._store)

    def run_all(self, functions: Sequence[Callable[[], _T]]) -> list[_T]:
        """The results of functions that release the interpreter lock: called here, and by threads that have no more
        kernels to generate.
        """
        waiting = enumerate(functions)  # the interpreter hands each item to one thread only

        def work() -> list[tuple[int, _T]]:
            return [(at, function()) for at, function in waiting]

        helpers = [submit(work) for _ in range(_threads())]
        found = dict(work())
        for helper in helpers:
            if not helper.drop():
                found.update(helper.result())
        return [found[at] for at in range(len(functions))]

    def addresses(self, symbols: Iterable[str]) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The addresses of kernels that were started, and of what runs them. Code is loaded once per process and stays.

        New code is written to the store in the background.
        """
        if self._driver_task is not None:
            self._driver_task.result()
        walking = self._drivers()
        found = linked_addresses(symbols, lambda missing: [self._pending[symbol].result() for symbol in missing])
        if self._pending:
            WRITERS.begin(partial(_keep, tuple(self._pending.values()), self._store))
        return found, walking


def objects(specs: Sequence[KernelSpec], store: Cache | None) -> list[bytes]:
    """The kernels' object files, from the store or generated again if they were lost. Uses no other thread, because it
    also runs while a process exits.
    """
    return [_object(spec, store) for spec in specs]


def _object(spec: KernelSpec, store: Cache | None) -> bytes:
    identity = _identity(spec)
    return _found(identity, spec.isa, store) or _stored(identity, _emitted(str(build(spec)), spec.isa), store)


def _identity(spec: KernelSpec) -> tuple[str, str]:
    """Everything that determines a kernel's code, except this backend's own sources."""
    return spec.symbol, repr(spec)


def _emitted(text: str, isa: Isa, quick: bool = True) -> bytes:
    """The object of a module. No process may fork meanwhile, because LLVM has locks of its own."""
    with NoFork():
        llvm = llvm_codegen()
        found: bytes = llvm.emitted(llvm.prepared(text, isa) if quick else llvm.prepared(text, isa, 0))
        return found


def _found(identity: tuple[str, str], isa: Isa, store: Cache | None) -> bytes | None:
    """The object with this description, from the ones shipped with this package or from the store."""
    shipped = library(isa.name)
    found = None if shipped is None else shipped.load(shipped_key(*identity))
    if found is not None or store is None:
        return found
    kept = store.load(Cache.key(version(), *identity))
    return None if kept is None else bytes(kept)


def _stored(identity: tuple[str, str], made: bytes, store: Cache | None) -> bytes:
    if store is not None:
        store.store(Cache.key(version(), *identity), made, label="code\tkernels")
    return made


@frozen(eq=False)
class _PendingObject(ByIdentity):
    """A kernel's object file, found or being generated, and its description."""

    identity: tuple[str, str]
    made: bytes | Task[bytes]

    def result(self) -> bytes:
        return self.made if isinstance(self.made, bytes) else self.made.result()


def _pending_object(spec: KernelSpec, store: Cache | None) -> _PendingObject:
    identity = _identity(spec)
    return _PendingObject(
        identity, _found(identity, spec.isa, store) or submit(partial(_emitted, str(build(spec)), spec.isa))
    )


def _keep(found: Iterable[_PendingObject], store: Cache | None) -> None:
    """Store the objects that were not there."""
    for each in found:
        if not isinstance(each.made, bytes):
            _stored(each.identity, each.result(), store)


def drivers(isa: Isa, threads: int, store: Cache | None) -> Mapping[str, int]:
    """The functions that run commands in this many threads, by name."""
    modules = _modules(isa, threads)
    return linked_drivers(isa.triple, len(modules), lambda at: _support(modules[at], isa, store))


def number_functions(isa: Isa, store: Cache | None) -> Mapping[str, int]:
    """The functions that compute a program's numbers for other lengths, by name."""
    return linked_number_functions(isa.triple, lambda: submit(partial(number_object, isa, store)).result())


def number_object(isa: Isa, store: Cache | None) -> bytes:
    """The object file of `codegen/native/numbers.ll`."""
    return _support(_Module(numbers_text()), isa, store)


def driver_objects(isa: Isa, threads: int, store: Cache | None) -> tuple[bytes, ...]:
    """The object files of `codegen/native/run.ll` and, for several threads, of `pool.ll` and `workers.ll` too."""
    return tuple(_support(module, isa, store) for module in _modules(isa, threads))


@frozen
class _Module(Value):
    """A module given as text; without `quick`, compile time matters more than the speed of its code."""

    text: str
    quick: bool = True


def _modules(isa: Isa, threads: int) -> tuple[_Module, ...]:
    """The modules that run commands: one for a single thread, three for several."""
    alone = _Module(run_text())
    if threads == 1:
        return (alone,)
    walking, around = pool_texts(isa)
    return alone, _Module(walking), _Module(around, quick=False)


def _support(module: _Module, isa: Isa, store: Cache | None) -> bytes:
    """The object file of a module given as text."""
    identity = module.text, isa.triple
    return _found(identity, isa, store) or _stored(identity, _emitted(module.text, isa, module.quick), store)


def library_objects(specs: Sequence[KernelSpec], isa: Isa) -> Mapping[str, bytes]:
    """The content of a target's library, newly generated: these kernels, what runs them and what computes numbers."""
    modules = {(module.text, isa.triple): module for module in (*_modules(isa, 2), _Module(numbers_text()))}
    modules |= {_identity(spec): _Module(str(build(spec))) for spec in specs}
    begun = {shipped_key(*identity): submit(partial(_emitted, m.text, isa, m.quick)) for identity, m in modules.items()}
    return {name: task.result() for name, task in begun.items()}
