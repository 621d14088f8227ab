"""The memory of an execution's arenas: its own, shared, or the caller's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import current_thread, local
from typing import Any, Protocol
from weakref import WeakSet, ref

import numpy as np

from onert.backend import HOST
from onert.ir import Array, ExecutionError

from .exclusive import BusyError, Serial


class Tenant(Protocol):
    """Something in an arena that can be moved to another."""

    def settle(self, arena: Array) -> None: ...

    def vacate(self) -> None: ...


THREAD = "thread"
"""The value of `arena` that stands for the arena of the creating thread."""


class SharedArena:
    """One arena for all executions that it is passed to, which one thread runs in turn.

    It is as large as the largest of them needs. When it grows, it moves to other memory together with all its tenants.
    Its memory is freed when the last execution is closed. Only the thread that created the arena may run the
    executions, one at a time.
    """

    def __init__(self) -> None:
        self._thread = current_thread()
        self._buffer = HOST.allocate(0)
        self._tenants: WeakSet[Tenant] = WeakSet()
        self._turns = Serial()
        self._tenancy = Serial()  # any thread may close an execution

    @property
    def nbytes(self) -> int:
        """The current size in bytes."""
        return self._buffer.nbytes

    def admit(self, tenant: Tenant, nbytes: int) -> None:
        """Put a tenant into the arena, which grows if necessary. Raises ExecutionError in the wrong thread."""
        self._require_thread()
        self._require_idle()
        self._tenancy(partial(self._admit, tenant, nbytes))

    def _admit(self, tenant: Tenant, nbytes: int) -> None:
        self._tenants.add(tenant)
        if nbytes > self._buffer.nbytes:
            self._buffer = HOST.allocate(nbytes)
            for each in self._tenants:
                each.settle(self._buffer)
        else:
            tenant.settle(self._buffer)

    def leave(self, tenant: Tenant) -> None:
        """Remove a tenant, which does not run again. Memory is freed when the last one leaves."""
        self._tenancy(partial(self._leave, tenant))

    def _leave(self, tenant: Tenant) -> None:
        self._tenants.discard(tenant)
        tenant.vacate()
        if not self._tenants:
            self._buffer = HOST.allocate(0)

    def lend(self, run: Callable[[], None]) -> None:
        """Let a tenant run. Raises ExecutionError in the wrong thread, or while another tenant runs."""
        self._require_thread()
        try:
            self._turns.try_run(run)
        except BusyError:
            refused = True
        else:
            refused = False
        if refused:
            self._refuse()

    def _require_thread(self) -> None:
        if current_thread() is not self._thread:
            raise ExecutionError(
                f"the shared arena belongs to thread {self._thread.name!r}, this is {current_thread().name!r}; "
                "executions in it run on the thread that made it"
            )

    def _require_idle(self) -> None:
        if self._turns.busy:
            self._refuse()

    def _refuse(self) -> None:
        raise ExecutionError("another execution is running in the shared arena")


_OF_THREAD = local()
"""A weak reference to each thread's arena: only the executions in it keep it alive."""


def thread_arena() -> SharedArena:
    """The arena of the executions that this thread creates with `arena="thread"`; empty if there are none."""
    known: ref[SharedArena] | None = getattr(_OF_THREAD, "arena", None)
    found = None if known is None else known()
    if found is None:
        found = SharedArena()
        _OF_THREAD.arena = ref(found)
    return found


def callers_arena(given: Any, nbytes: int) -> Array:
    """The caller's memory as an arena of `nbytes`. Raises ExecutionError if it is too small, read-only or scattered."""
    try:
        view = memoryview(given)
    except TypeError as error:
        raise ExecutionError(f"the arena is {_shown(given)}, expected {THREAD!r}, a SharedArena or a buffer") from error
    if view.readonly or not view.c_contiguous:
        raise ExecutionError("the arena is given as a buffer that is read-only or not contiguous")
    raw: Array = np.frombuffer(view.cast("B") if view.nbytes else bytearray(0), np.uint8)
    start = -raw.ctypes.data % HOST.alignment
    if raw.nbytes - start < nbytes:
        lost = f", {start} of them before the first multiple of {HOST.alignment}" if start else ""
        raise ExecutionError(f"the arena given has {raw.nbytes} bytes{lost}; the program needs {nbytes}")
    return raw[start : start + nbytes]


def _shown(given: Any) -> str:
    return repr(given) if isinstance(given, str) else f"a {type(given).__name__}"
