"""Imports modules on demand.

Only the main thread runs signal handlers. One that raises in the middle of an import would leave a lock of the
interpreter held, and other threads would wait for it for ever. So the main thread lets another thread import for it.
"""

from __future__ import annotations

import importlib
import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Iterable
from contextlib import suppress
from threading import get_ident, main_thread
from types import ModuleType

from .forks import NoFork

_OWN = ("onert", "onert_reference", "onert_builtin", "onert_llvm")
"""Packages whose modules can be imported by any thread. Other modules may, for example, install signal handlers."""


def module(name: str) -> ModuleType:
    """The module with this name, imported if necessary."""
    found = _there(name)
    if found is not None:
        return found
    if get_ident() == main_thread().ident and name.partition(".")[0] in _OWN:
        return _in_another_thread(name)
    return _imported(name)


def begin(name: str) -> None:
    """Start importing one of the project's modules in another thread while the caller waits for the disk.

    An error is raised when the module is next imported.
    """
    if _there(name) is None and name.partition(".")[0] in _OWN:
        with suppress(RuntimeError):  # no thread can be started
            start_new_thread(_Import(name).run, ())


def ahead(names: Iterable[str]) -> None:
    """Import those of the project's own modules that are missing, in a single thread: starting a thread takes longer
    than some imports. An error is raised when the module is next imported."""
    missing = [name for name in names if _there(name) is None and name.partition(".")[0] in _OWN]
    if len(missing) > 1 and get_ident() == main_thread().ident:
        _wait_for(_Ahead(missing))


def _there(name: str) -> ModuleType | None:
    """A module that is already imported completely, else None."""
    found = sys.modules.get(name)
    return None if getattr(getattr(found, "__spec__", None), "_initializing", False) else found


def _imported(name: str) -> ModuleType:
    with NoFork():
        return importlib.import_module(name)


class _Import:
    """An import in progress: `done` is released once there is a module or an error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = allocate_lock()
        self.done.acquire()
        self.found: ModuleType | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # raised again by the waiting thread
            self.error = error
        finally:
            self.done.release()

    def work(self) -> None:
        self.found = _imported(self.name)


class _Ahead(_Import):
    """Imports several modules in turn, and ignores errors."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__("")
        self._names = names

    def work(self) -> None:
        for name in self._names:
            with suppress(Exception):
                _imported(name)


def _wait_for(wanted: _Import) -> bool:
    """Import in another thread. Returns False if no thread can be started, for example as the process ends."""
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
