"""Runs kernels on memory that begins or ends at an inaccessible page."""

from __future__ import annotations

import ctypes
import mmap
from collections import deque
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from onert_llvm.codegen.kernel_abi import KernelSpec, build
from onert_llvm.codegen.llvm_codegen import compile_text
from onert_llvm.runtime.object_loader import Image, load

Array = np.ndarray[Any, Any]
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_libc = ctypes.CDLL(None, use_errno=True)
_NO_ACCESS = 0
_guarded: deque[mmap.mmap] = deque(maxlen=256)
"""The latest mappings: tests may hold only addresses in them. Keeping all would exceed the limit per process."""


def guarded(values: Array, at_end: bool = True) -> Array:
    """A copy between two inaccessible pages, with its last byte (or its first) adjacent to one of them."""
    page, size = mmap.PAGESIZE, values.nbytes
    room = -(-max(size, 1) // page) * page
    memory = mmap.mmap(-1, room + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _guarded.append(memory)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for guard in (base, base + page + room):
        assert _libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), _NO_ACCESS) == 0
    start = page + (room - size if at_end else 0)
    out = np.frombuffer(memory, values.dtype, values.size, start).reshape(values.shape)
    out[...] = values
    return out


@cache
def loaded(spec: KernelSpec) -> Image:
    """The kernel's code, loaded into this process."""
    return load([compile_text(str(build(spec)), spec.isa)])


def whole_range(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Integers of every magnitude: extremes and neighbours of 0 first, then random bits shifted by random counts."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    out = rng.integers(info.min, info.max, shape, dtype, endpoint=True) >> rng.integers(0, info.bits, shape, dtype)
    edges = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, info.max // 2 + 1], dtype)
    edges = np.concatenate([edges, ~edges[:1] - edges[3:4], -edges[3:4]])
    count = min(out.size, len(edges))
    out.reshape(-1)[:count] = np.roll(edges, seed)[:count]
    return out.astype(dtype)


def run(spec: KernelSpec, tiles: int, slots: Mapping[str, Any], pieces: int = 1) -> None:
    """Run all work tiles in `pieces` calls. Arrays in `slots` stand for their addresses."""
    bounds = [tiles * i // pieces for i in range(pieces + 1)]
    for ends in pairwise(bounds):
        call(spec, slots, ends)


def call(spec: KernelSpec, slots: Mapping[str, Any], tiles: tuple[int, int], thread: int = 0) -> None:
    """Run some work tiles, from the first up to the second, as a thread."""
    values = {n: v.ctypes.data if isinstance(v, np.ndarray) else v for n, v in slots.items()}
    task = guarded(spec.layout.fill(**values))
    ENTRY(loaded(spec)[spec.symbol])(task.ctypes.data, *tiles, thread)
