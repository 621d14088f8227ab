"""Code that is loaded in this process: once, whoever asks for it, and for as long as the process lives."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from onert.ir import BackendError

from .image import Image, load

_loaded: dict[str, Image] = {}
_lock = Lock()

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


def addresses(symbols: Iterable[str], objects: Callable[[Sequence[str]], Iterable[bytes]]) -> Mapping[str, int]:
    """The addresses of kernels by symbol; `objects` gives the object files of those that are not loaded yet."""
    wanted = dict.fromkeys(symbols)
    with _lock:
        missing = [symbol for symbol in wanted if symbol not in _loaded]
        if missing:
            image = load(list(objects(missing)))
            _loaded.update((symbol, image) for symbol in missing)
    return {symbol: _loaded[symbol][symbol] for symbol in wanted}


def pool(triple: str, made: Callable[[], bytes]) -> Mapping[str, int]:
    """The functions of `native/pool.ll`, by name; `made` gives its object file."""
    symbol = f"pool {triple}"
    with _lock:
        if symbol not in _loaded:
            _loaded[symbol] = load([made()], _externals())
        image = _loaded[symbol]
    return {name: image[name] for name in _POOL}


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
