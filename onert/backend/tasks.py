"""Calls made by other threads, safe from exceptions that signal handlers raise.

A handler runs in the main thread, between any two bytecodes. If the standard library's pools, events or futures hold a
lock at that moment, it stays locked, and the next thread that wants it waits forever. So nothing here takes a lock that
must be released: every step that must be atomic is one call of a function written in C.
"""

from __future__ import annotations

import atexit
import os
import time
from _queue import SimpleQueue  # `queue` also defines queues made of locks
from _thread import LockType, allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from threading import current_thread, main_thread
from typing import Any, Generic, TypeVar
from weakref import finalize

from onert.ir import BackendError

from .holders import GC_PAUSED

_T = TypeVar("_T")

_DROPPED = object()
_LOOK = 1.0
"""Seconds after which a waiting thread checks its condition itself: the thread that opens a gate may have been
interrupted."""


class Gate:
    """A flag that is set once and that threads can wait for."""

    __slots__ = ("_waiting", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        self._waiting: list[LockType] = []

    def open(self) -> None:
        self.is_open = True
        while self._waiting:
            try:
                self._waiting.pop().release()
            except IndexError:  # another thread is opening it too
                return

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it was opened within `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.is_open:
            left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
            if left <= 0:
                return False
            mine = allocate_lock()
            mine.acquire()
            self._waiting.append(mine)
            if not self.is_open:
                mine.acquire(timeout=left)
            with suppress(ValueError):  # `open` removed it
                self._waiting.remove(mine)
        return True


class Task(Generic[_T]):
    """A call that one thread makes, once, and whose result others can wait for."""

    __slots__ = ("__weakref__", "_call", "_error", "_fate", "_gate", "_process", "_result")

    def __init__(self, call: Callable[[], _T]) -> None:
        self._call: Callable[[], _T] | None = call
        self._fate: dict[None, object] = {}
        self._gate = Gate()
        self._error: BaseException | None = None
        self._result: Any = None
        self._process = os.getpid()

    @property
    def done(self) -> bool:
        """Whether there is a result or an error; a dropped task has an error."""
        return self._gate.is_open

    def run(self) -> None:
        """Make the call, unless another thread has begun it or it was dropped."""
        mine = object()
        if self._fate.setdefault(None, mine) is not mine:
            return
        call, self._call = self._call, None
        assert call is not None
        try:
            self._result = call()
        except BaseException as error:  # raised again by `result`
            self._error = error
        finally:
            del call  # releases what it refers to before any waiting thread continues
            self._gate.open()

    def drop(self) -> bool:
        """Cancel the call; False if it has begun already."""
        if self._fate.setdefault(None, _DROPPED) is not _DROPPED:
            return False
        self._call = None
        self._error = BackendError("a task was dropped before it began")
        self._gate.open()
        return True

    def wait(self) -> None:
        """Wait until the task is done. Raises BackendError if it was begun before this process was forked."""
        while not self._gate.wait(_LOOK):
            if self._process != os.getpid():
                raise BackendError("a task that was begun before the process was forked is not done in the child")

    def result(self) -> _T:
        """Wait for the call's result, or raise its exception. Outside the main thread a call that no thread has begun
        is made here, so that threads of a pool may wait for one another's tasks."""
        if current_thread() is not main_thread():
            self.run()
        self.wait()
        if self._error is not None:
            raise self._error
        found: _T = self._result
        return found


class _Threads:
    """The threads of a pool in one process, and the queue of their tasks."""

    def __init__(self, most: int, name: str) -> None:
        self._name = name
        self.queue: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self.free: list[None] = [None] * most
        """One element for each thread that may still be started; a thread takes one when it begins."""
        self.idle: list[None] = []
        """One element for each idle thread. An interrupt may lose one: then one thread more than needed is started."""
        self.members: list[int] = []

    def work(self) -> None:
        """The main loop of a thread."""
        try:
            self.free.pop()
        except IndexError:
            return
        _NAMES[get_ident()] = f"{self._name}_{len(self.members)}"
        self.members.append(get_ident())
        while True:
            task = self.queue.get()  # the first is the one that the thread was started for
            if task is None:
                self.queue.put(None)  # for the other threads
                _NAMES.pop(get_ident(), None)
                return
            task.run()
            _UNDONE.pop(task, None)
            del task
            self.idle.append(None)

    def ready(self) -> None:
        """Ensure that there is a thread. Raises RuntimeError if there is none and none can be started."""
        try:
            self.idle.pop()
        except IndexError:
            if self.free:
                self._start()

    def _start(self) -> None:
        try:
            start_new_thread(self.work, ())
        except RuntimeError:
            if not self.members:
                raise

    def close(self) -> None:
        self.queue.put(None)


class Pool:
    """Up to `most` threads, started when there are tasks for them; they end when the pool is dropped.

    The process does not end before their tasks are done. A forked child starts its own threads.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._threads: dict[int, _Threads] = {}

    def submit(self, call: Callable[[], _T]) -> Task[_T]:
        """Have a thread make the call. Raises RuntimeError if there is no thread, or if the process is ending."""
        return self.give(Task(call))

    def give(self, task: Task[_T]) -> Task[_T]:
        """Have a thread run a task. Giving it twice is harmless."""
        threads = self._here()
        if _ENDED:
            raise RuntimeError("no thread can be started: the process is ending")
        threads.ready()
        _UNDONE[task] = None
        threads.queue.put(task)  # the last step: all or nothing, wherever an interrupt comes
        return task

    def is_member(self) -> bool:
        """Whether the calling thread is one of the pool's."""
        threads = self._threads.get(os.getpid())
        return threads is not None and get_ident() in threads.members

    def _here(self) -> _Threads:
        found = self._threads.get(os.getpid())
        if found is None:
            made = _Threads(self._most, self._name)
            found = self._threads.setdefault(os.getpid(), made)
            if found is made:
                finalize(self, made.close).atexit = False
        return found


_NAMES: dict[int, str] = {}


def thread_name() -> str:
    """The name of the calling thread, for people."""
    return _NAMES.get(get_ident()) or current_thread().name


_UNDONE: dict[Task[Any], None] = {}
"""Tasks given to pools of this process and not yet done."""
_ENDED: list[None] = []
"""Not empty once no more tasks are accepted."""


def finish() -> None:
    """Accept no more tasks, and wait for those accepted so far. Called before the process ends and collects garbage
    itself."""
    _ENDED.append(None)
    hold = GC_PAUSED.hold()
    with hold.ended(), hold.ended(), hold:
        while _UNDONE:
            for task in tuple(_UNDONE):
                task.run()  # unless a thread has begun it
                task.wait()
                _UNDONE.pop(task, None)


os.register_at_fork(after_in_child=_UNDONE.clear)
atexit.register(finish)
