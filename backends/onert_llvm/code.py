"""Kernels' object files: built, or found in the cache.

While one kernel is written, the code generator is at work on others, in a thread for each processor. These do next to
nothing in Python, where they would wait for who writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar

from attrs import frozen

from onert.backend.cache import Cache
from onert.backend.writers import WRITERS
from onert.ir import BackendError

from .abi import KernelSpec, build
from .linked import addresses as linked_addresses
from .linked import are_walkers_loaded, is_loaded
from .linked import walkers as linked_walkers
from .native import pool_text, run_text
from .object import emitted, prepared
from .target import Isa
from .turns import TURNS
from .version import version

_T = TypeVar("_T")


def begin(isa: Isa, threads: int, store: Cache | None) -> Thread | None:
    """Make what runs kernels beside the caller, where that is not loaded: in the thread that is given."""
    if are_walkers_loaded(isa.triple, threads > 1):
        return None
    thread = Thread(target=_begin, args=(isa, threads, store), name="onert-code")
    TURNS.__enter__()
    try:
        thread.start()
    except RuntimeError:  # the system has no thread to spare: they are made when they are needed
        TURNS.__exit__()
        return None
    return thread


def _begin(isa: Isa, threads: int, store: Cache | None) -> None:
    try:
        with suppress(BackendError):  # where there can be none, whoever needs them is told
            walkers(isa, threads, store)
    finally:
        TURNS.__exit__()


class Making:
    """Kernels on their way while it is still found out which there are; what runs them comes first."""

    def __init__(self, isa: Isa, threads: int, store: Cache | None) -> None:
        self._store = store
        self._workers = ThreadPoolExecutor(_threads(), thread_name_prefix="onert-code")
        self._begun: dict[str, _Begun] = {}
        self._walkers = self._workers.submit(walkers, isa, threads, store)

    def __enter__(self) -> Making:
        TURNS.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        TURNS.__exit__()
        self._workers.shutdown(cancel_futures=True)

    def begin(self, specs: Iterable[KernelSpec]) -> None:
        """Begin those that are neither begun nor loaded."""
        for spec in specs:
            if spec.symbol not in self._begun and not is_loaded(spec.symbol):
                self._begun[spec.symbol] = _begun(spec, self._store, self._workers)

    def each(self, functions: Sequence[Callable[[], _T]]) -> list[_T]:
        """The results of functions that leave the interpreter to others: called here, and by threads that have no more
        kernels to generate.
        """
        waiting = enumerate(functions)  # of which the interpreter gives each to one thread alone

        def work() -> list[tuple[int, _T]]:
            return [(at, function()) for at, function in waiting]

        helpers = [self._workers.submit(work) for _ in range(_threads())]
        found = dict(work())
        for helper in helpers:
            found.update(helper.result())
        return [found[at] for at in range(len(functions))]

    def finished(self, symbols: Iterable[str]) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The addresses of kernels that were begun, and of what runs them. Code is loaded once in a process and stays.

        What runs them is waited for first: to load it takes the lock that kernels are loaded under. What is new is
        written to the store behind the caller's back.
        """
        walking = self._walkers.result()
        found = linked_addresses(symbols, lambda missing: [self._begun[symbol].result() for symbol in missing])
        if self._begun:
            WRITERS.begin(partial(_keep, tuple(self._begun.values()), self._store))
        return found, walking


def objects(specs: Sequence[KernelSpec], store: Cache | None) -> list[bytes]:
    """The kernels' object files, from the store but for those that went lost. No thread is asked for: there may be none
    any more, because this is done while a process ends too.
    """
    return [_object(spec, store) for spec in specs]


def _object(spec: KernelSpec, store: Cache | None) -> bytes:
    key = _key(spec)
    return _load(key, store) or _stored(key, emitted(prepared(str(build(spec)), spec.isa)), store)


def _key(spec: KernelSpec) -> str:
    return Cache.key(version(), spec.symbol, repr(spec))


def _stored(key: str, made: bytes, store: Cache | None) -> bytes:
    if store is not None:
        store.store(key, made)
    return made


@frozen(eq=False)
class _Begun:
    """A kernel's object file, from the store or on its way, and its key there."""

    key: str
    made: bytes | Future[bytes]

    def result(self) -> bytes:
        return self.made if isinstance(self.made, bytes) else self.made.result()


def _begun(spec: KernelSpec, store: Cache | None, workers: ThreadPoolExecutor) -> _Begun:
    key = _key(spec)
    return _Begun(key, _load(key, store) or workers.submit(emitted, prepared(str(build(spec)), spec.isa)))


def _keep(found: Iterable[_Begun], store: Cache | None) -> None:
    """Store the objects that were not there."""
    for each in found:
        if not isinstance(each.made, bytes):
            _stored(each.key, each.result(), store)


_MOST_THREADS = 8
"""More would wait for kernels to be written, and each holds memory."""


def _threads() -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, _MOST_THREADS)


def _load(key: str, store: Cache | None) -> bytes | None:
    found = store.load(key) if store is not None else None
    return None if found is None else bytes(found)


def walkers(isa: Isa, threads: int, store: Cache | None) -> Mapping[str, int]:
    """The functions that run commands in so many threads, by name."""
    texts = _texts(isa, threads)
    return linked_walkers(isa.triple, len(texts), lambda at: _support(texts[at], isa, store))


def walker_objects(isa: Isa, threads: int, store: Cache | None) -> tuple[bytes, ...]:
    """The object files of `native/run.ll`, and of `native/pool.ll` for several threads."""
    return tuple(_support(text, isa, store) for text in _texts(isa, threads))


def _texts(isa: Isa, threads: int) -> tuple[str, ...]:
    return (run_text(), pool_text(isa)) if threads > 1 else (run_text(),)


def _support(text: str, isa: Isa, store: Cache | None) -> bytes:
    """The object file of a module that is there as text."""
    key = Cache.key(version(), text, isa.triple)
    return _load(key, store) or _stored(key, emitted(prepared(text, isa)), store)
