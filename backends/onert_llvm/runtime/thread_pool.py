"""Pools of native threads, shared by all executions of this process."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Mapping

import numpy as np

from onert.backend.tasks import finish
from onert.ir import Array

from .aligned_memory import zeros

_SPIN = 100_000
"""Nanoseconds that a worker spins after a run before it sleeps; within a run a thread spins at most twice as long."""


_LINE = 8
"""64-bit words of memory per thread of a pool."""

_UNSTOPPED: dict[int, tuple[Array, Array]] = {}
"""The memory of workers that were not stopped, which read it as long as they live."""


class Pool:
    """Native workers beside the calling thread. One caller at a time; the workers stop with their owner."""

    def __init__(self, functions: Mapping[str, int], threads: int) -> None:
        self._owner = -1
        size = ctypes.CFUNCTYPE(ctypes.c_int64)(functions["onert_pool_size"])()
        memory, workers = zeros(size, np.uint8), zeros(_LINE * max(threads, 1), np.int64)
        self._memory = memory, workers  # keeps the address from being reused while this pool may still be closed
        self._address = int(memory.ctypes.data)
        self.pointer = ctypes.c_void_p(self._address)
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        start = ctypes.CFUNCTYPE(integer, pointer, integer, integer, pointer)(functions["onert_pool_start"])
        self._stop = ctypes.CFUNCTYPE(None, pointer)(functions["onert_pool_stop"])
        self._owner = os.getpid()
        _UNSTOPPED[self._address] = self._memory
        self.threads = start(self.pointer, threads, _SPIN, workers.ctypes.data)

    def close(self) -> None:
        """Stop the workers; does nothing in a fork of the owner, which has none."""
        if self._owner == os.getpid() and self._address in _UNSTOPPED:
            self._stop(self.pointer)
            _UNSTOPPED.pop(self._address, None)

    def __del__(self) -> None:
        self.close()


class Pools:
    """Idle pools by number of threads: each run borrows one, so that concurrent runs do not share.

    A pool that is lost because its borrower was interrupted stops, and is replaced.
    """

    def __init__(self) -> None:
        self._idle: dict[int, list[Pool]] = {}

    def forget(self) -> None:
        """Forget all pools after a fork: their threads stayed with the parent."""
        for pools in list(self._idle.values()):
            pools.clear()
        _UNSTOPPED.clear()

    def close(self) -> None:
        """Stop the workers of all idle pools before a process ends, because their code is unloaded."""
        finish()
        for pools in list(self._idle.values()):
            idle, pools[:] = pools[:], []
            for pool in idle:
                pool.close()

    def idle(self, threads: int) -> list[Pool]:
        """The idle pools with this many threads, always the same list: a run pops one, or starts one if it is empty,
        and appends it again afterwards.
        """
        return self._idle.setdefault(threads, [])


POOLS = Pools()
"""The process's pools, its only cache of threads."""
os.register_at_fork(after_in_child=POOLS.forget)
atexit.register(POOLS.close)
