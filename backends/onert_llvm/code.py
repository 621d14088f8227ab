"""Kernels' code in this process: built, or found in the cache, and loaded once."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from threading import Lock

from onert.ir import BackendError

from .abi import KernelSpec, build
from .cache import Cache
from .image import Image, load
from .native import pool_text
from .object import compile_object, compile_text
from .target import Isa

_loaded: dict[str, Image] = {}
_lock = Lock()


@cache
def _generator() -> str:
    """Names all that decides what code a spec becomes: LLVM's version, and this backend's own sources."""
    digest = hashlib.sha256(metadata.version("llvmlite").encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def addresses(specs: Iterable[KernelSpec], store: Cache | None) -> Mapping[str, int]:
    """The kernels' addresses by symbol. Code is loaded once in a process and stays; equal kernels are one."""
    wanted = {spec.symbol: spec for spec in specs}
    with _lock:
        missing = [spec for symbol, spec in wanted.items() if symbol not in _loaded]
        if missing:
            image = load([_object(spec, store) for spec in missing])
            _loaded.update((spec.symbol, image) for spec in missing)
    return {symbol: _loaded[symbol][symbol] for symbol in wanted}


def _object(spec: KernelSpec, store: Cache | None) -> bytes:
    """The kernel's object file."""
    key = Cache.key(_generator(), spec.symbol, repr(spec))
    found = store.load(key) if store is not None else None
    if found is not None:
        return bytes(found)
    made = compile_object(build(spec), spec.isa)
    if store is not None:
        store.store(key, made)
    return made


_POOL = ("onert_run", "onert_pool_run", "onert_pool_start", "onert_pool_stop", "onert_pool_size")
_C_LIBRARY = (
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_mutex_init",
    "pthread_cond_init",
    "pthread_cond_wait",
    "pthread_cond_broadcast",
    "pthread_create",
    "pthread_join",
    "sched_yield",
)


def pool(isa: Isa, store: Cache | None) -> Mapping[str, int]:
    """The functions of `native/pool.ll`, by name."""
    symbol = f"pool {isa.triple}"
    with _lock:
        if symbol not in _loaded:
            _loaded[symbol] = load([_pool_object(isa, store)], _externals())
        image = _loaded[symbol]
    return {name: image[name] for name in _POOL}


def _pool_object(isa: Isa, store: Cache | None) -> bytes:
    text = pool_text(isa)
    key = Cache.key(_generator(), text, isa.triple)
    found = store.load(key) if store is not None else None
    if found is not None:
        return bytes(found)
    made = compile_text(text, isa)
    if store is not None:
        store.store(key, made)
    return made


def _externals() -> dict[str, int]:
    """The addresses of what the pool calls in the C library."""
    library = ctypes.CDLL(None)
    found = {}
    for name in _C_LIBRARY:
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        if address is None:
            raise BackendError(f"the C library has no {name}")
        found[name] = address
    return found
