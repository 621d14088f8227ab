"""Modules that are imported when they are needed.

A signal handler that raises runs in the main thread only. In the middle of an import it would leave a lock of the
interpreter held, for which other threads then wait for ever. So the main thread has another one import for it.
"""

from __future__ import annotations

import importlib
import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Iterable
from contextlib import suppress
from threading import get_ident, main_thread
from types import ModuleType

from .forks import Section

_OWN = ("onert", "onert_reference", "onert_builtin", "onert_llvm")
"""Packages whose modules can be imported by any thread. Others may, say, install signal handlers."""


def module(name: str) -> ModuleType:
    """The module of a name, imported where it is not there yet."""
    found = _there(name)
    if found is not None:
        return found
    if get_ident() == main_thread().ident and name.partition(".")[0] in _OWN:
        return _in_another_thread(name)
    return _imported(name)


def begin(name: str) -> None:
    """Begin to import a module of the project's own in another thread, for who waits for the disk meanwhile.

    What is wrong with it is told to whoever asks for it.
    """
    if _there(name) is None and name.partition(".")[0] in _OWN:
        with suppress(RuntimeError):  # there is no thread to be had
            start_new_thread(_Import(name).run, ())


def ahead(names: Iterable[str]) -> None:
    """Import the project's own modules of these names that are not there yet, all in one thread: to start one for each
    takes longer than some of them do. What is wrong with one is told to whoever asks for it next."""
    missing = [name for name in names if _there(name) is None and name.partition(".")[0] in _OWN]
    if len(missing) > 1 and get_ident() == main_thread().ident:
        _wait_for(_Ahead(missing))


def _there(name: str) -> ModuleType | None:
    """A module that was imported, and wholly."""
    found = sys.modules.get(name)
    return None if getattr(getattr(found, "__spec__", None), "_initializing", False) else found


def _imported(name: str) -> ModuleType:
    with Section():
        return importlib.import_module(name)


class _Import:
    """An import on its way: `done` is released when there is a module or an error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = allocate_lock()
        self.done.acquire()
        self.found: ModuleType | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # raised by the thread that waits
            self.error = error
        finally:
            self.done.release()

    def work(self) -> None:
        self.found = _imported(self.name)


class _Ahead(_Import):
    """Several, one after the other, whether they succeed or not."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__("")
        self._names = names

    def work(self) -> None:
        for name in self._names:
            with suppress(Exception):
                _imported(name)


def _wait_for(wanted: _Import) -> bool:
    """Have another thread import; False where there is no thread to be had, or none any more as the process ends."""
    try:
        start_new_thread(wanted.run, ())
    except RuntimeError:
        return False
    wanted.done.acquire()
    return True


def _in_another_thread(name: str) -> ModuleType:
    wanted = _Import(name)
    if not _wait_for(wanted):
        return _imported(name)
    if wanted.error is not None:
        raise wanted.error
    assert wanted.found is not None
    return wanted.found
