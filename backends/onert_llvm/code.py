"""Kernels' object files: built, or found in the cache.

While one kernel is written, the code generator is at work on others, in a thread for each processor.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from onert.backend.cache import Cache

from .abi import KernelSpec, build
from .linked import addresses as linked_addresses
from .linked import pool as linked_pool
from .native import pool_text
from .object import compile_text
from .target import Isa
from .version import version


def addresses(specs: Iterable[KernelSpec], store: Cache | None) -> Mapping[str, int]:
    """The kernels' addresses by symbol. Code is loaded once in a process and stays; equal kernels are one."""
    wanted = {spec.symbol: spec for spec in specs}
    return linked_addresses(wanted, lambda missing: objects([wanted[symbol] for symbol in missing], store))


def objects(specs: Sequence[KernelSpec], store: Cache | None) -> list[bytes]:
    """The kernels' object files."""
    with ThreadPoolExecutor(_threads(), thread_name_prefix="onert-code") as workers:
        found = [_object(spec, store, workers) for spec in specs]
        return [each if isinstance(each, bytes) else each.result() for each in found]


def _object(spec: KernelSpec, store: Cache | None, workers: ThreadPoolExecutor) -> bytes | Future[bytes]:
    """A kernel's object file, or what will be it."""
    key = Cache.key(version(), spec.symbol, repr(spec))
    return _load(key, store) or workers.submit(_made, str(build(spec)), spec.isa, key, store)


_MOST_THREADS = 8
"""More would wait for kernels to be written, and each holds memory."""


def _threads() -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, _MOST_THREADS)


def _load(key: str, store: Cache | None) -> bytes | None:
    found = store.load(key) if store is not None else None
    return None if found is None else bytes(found)


def _made(text: str, isa: Isa, key: str, store: Cache | None) -> bytes:
    """The object of a module's text, which is kept under its key."""
    made = compile_text(text, isa)
    if store is not None:
        store.store(key, made)
    return made


def pool(isa: Isa, store: Cache | None) -> Mapping[str, int]:
    """The functions of `native/pool.ll`, by name."""
    return linked_pool(isa.triple, lambda: pool_object(isa, store))


def pool_object(isa: Isa, store: Cache | None) -> bytes:
    """The object file of `native/pool.ll`."""
    text = pool_text(isa)
    key = Cache.key(version(), text, isa.triple)
    found = _load(key, store)
    return _made(text, isa, key, store) if found is None else found
