"""Code loaded in this process: each object once, shared by all users, until the process ends."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence

from onert.ir import BackendError

from .object_loader import Image, load

_loaded: dict[str, Image] = {}

_SERIAL = ("onert_run", "onert_run_and_copy", "onert_program", "onert_several", "onert_jumps")
_THREAD_POOL = ("onert_pool_call", "onert_pool_start", "onert_pool_stop", "onert_pool_size")
_NUMBERS = ("onert_become",)
_C_LIBRARY = (
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_mutex_init",
    "pthread_cond_init",
    "pthread_cond_wait",
    "pthread_cond_broadcast",
    "pthread_create",
    "pthread_join",
    "clock_gettime",
    "sched_getcpu",
    "pthread_getaffinity_np",
    "pthread_setaffinity_np",
    "pthread_self",
    "pthread_getcpuclockid",
)


def addresses(symbols: Iterable[str], objects: Callable[[Sequence[str]], Iterable[bytes]]) -> Mapping[str, int]:
    """The addresses of kernels by symbol; `objects` returns the object files of those that are not loaded yet."""
    wanted = dict.fromkeys(symbols)
    missing = [symbol for symbol in wanted if symbol not in _loaded]
    if missing:
        image = load(list(objects(missing)))
        for symbol in missing:
            _loaded.setdefault(symbol, image)  # another thread may have loaded it meanwhile
    return {symbol: _loaded[symbol][symbol] for symbol in wanted}


def is_loaded(symbol: str) -> bool:
    """Whether the kernel with this symbol is loaded."""
    return symbol in _loaded


def are_drivers_loaded(triple: str, pool: bool) -> bool:
    """Whether the code that `drivers` returns is loaded."""
    return f"{_THREAD_POOL[0] if pool else _SERIAL[0]} {triple}" in _loaded


def drivers(triple: str, count: int, made: Callable[[int], bytes]) -> Mapping[str, int]:
    """The functions of `run.ll`, and of `pool.ll` with `workers.ll` if `count` is 3; `made` returns the objects."""
    found = {}
    for names, objects in ((_SERIAL, range(1)), (_THREAD_POOL, range(1, count))):
        if not objects:
            break
        symbol = f"{names[0]} {triple}"
        image = _loaded.get(symbol) or _loaded.setdefault(symbol, load([made(at) for at in objects], _externals()))
        found.update({name: image[name] for name in names})
    return found


def number_functions(triple: str, made: Callable[[], bytes]) -> Mapping[str, int]:
    """The functions of `numbers.ll`; `made` returns its object file."""
    symbol = f"{_NUMBERS[0]} {triple}"
    image = _loaded.get(symbol) or _loaded.setdefault(symbol, load([made()]))
    return {name: image[name] for name in _NUMBERS}


def _externals() -> dict[str, int]:
    """The addresses of the C library functions that the pool calls."""
    library = ctypes.CDLL(None)
    found = {}
    for name in _C_LIBRARY:
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        if address is None:
            raise BackendError(f"the C library has no {name}")
        found[name] = address
    return found
