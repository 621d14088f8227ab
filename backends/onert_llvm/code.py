"""Kernels' object files: built, or found in the cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    return linked_addresses(wanted, lambda missing: [object_of(wanted[symbol], store) for symbol in missing])


def object_of(spec: KernelSpec, store: Cache | None) -> bytes:
    """The kernel's object file."""
    key = Cache.key(version(), spec.symbol, repr(spec))
    found = store.load(key) if store is not None else None
    if found is not None:
        return bytes(found)
    made = compile_text(str(build(spec)), spec.isa)
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
    found = store.load(key) if store is not None else None
    if found is not None:
        return bytes(found)
    made = compile_text(text, isa)
    if store is not None:
        store.store(key, made)
    return made
