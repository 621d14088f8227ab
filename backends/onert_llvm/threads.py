"""Pools of native threads, shared by all executions of this process."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Mapping
from threading import Lock

import numpy as np

_SPINS = 20_000
"""How long an idle worker looks for work before it sleeps: some 100 microseconds."""


class Pool:
    """Native workers beside the calling thread. One caller at a time; they stop with their owner."""

    def __init__(self, functions: Mapping[str, int], threads: int) -> None:
        size = ctypes.CFUNCTYPE(ctypes.c_int64)(functions["onert_pool_size"])()
        self._memory = np.zeros(size + 64, np.uint8)
        address = int(self._memory.ctypes.data + -self._memory.ctypes.data % 64)
        self.pointer = ctypes.c_void_p(address)
        self._workers = np.zeros((max(threads, 1), 2), np.int64)
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        start = ctypes.CFUNCTYPE(integer, pointer, integer, integer, pointer)(functions["onert_pool_start"])
        self._stop = ctypes.CFUNCTYPE(None, pointer)(functions["onert_pool_stop"])
        self._owner = os.getpid()
        self.threads = start(self.pointer, threads, _SPINS, self._workers.ctypes.data)

    def close(self) -> None:
        """Stop the workers; nothing in a process that was forked from the owner, which has none."""
        if self._owner == os.getpid():
            self._owner = -1
            self._stop(self.pointer)

    def __del__(self) -> None:
        self.close()


class Pools:
    """Idle pools by number of threads: a run borrows one, so that runs at the same time do not share."""

    def __init__(self) -> None:
        self._idle: dict[int, list[Pool]] = {}
        self._lock = Lock()

    def forget(self) -> None:
        """After a fork: the threads stayed with the parent."""
        self._idle = {}
        self._lock = Lock()

    def close(self) -> None:
        """Stop the workers of all idle pools: before a process ends, for their code goes with it."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for pool in (pool for pools in idle.values() for pool in pools):
            pool.close()

    def take(self, functions: Mapping[str, int], threads: int) -> Pool:
        """A pool for one run, to be given back after it."""
        with self._lock:
            idle = self._idle.get(threads)
            if idle:
                return idle.pop()
        return Pool(functions, threads)

    def give(self, pool: Pool, threads: int) -> None:
        with self._lock:
            self._idle.setdefault(threads, []).append(pool)


POOLS = Pools()
"""The process's pools: the one cache of threads."""
os.register_at_fork(after_in_child=POOLS.forget)
atexit.register(POOLS.close)
