"""Modules that are imported when they are needed.

A signal handler that raises runs in the main thread only. In the middle of an import it would leave a lock of the
interpreter held, for which other threads then wait for ever. So the main thread has another one import for it.
"""

from __future__ import annotations

import importlib
import sys
from _thread import allocate_lock, start_new_thread
from threading import current_thread, main_thread
from types import ModuleType

from .forks import Section

_OWN = ("onert", "onert_reference", "onert_builtin", "onert_llvm")
"""Packages whose modules can be imported by any thread. Others may, say, install signal handlers."""


def module(name: str) -> ModuleType:
    """The module of a name, imported where it is not there yet."""
    found = sys.modules.get(name)
    if found is not None and not getattr(getattr(found, "__spec__", None), "_initializing", False):
        return found
    if current_thread() is main_thread() and name.partition(".")[0] in _OWN:
        return _in_another_thread(name)
    return _imported(name)


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
            self.found = _imported(self.name)
        except BaseException as error:  # raised by the thread that waits
            self.error = error
        finally:
            self.done.release()


def _in_another_thread(name: str) -> ModuleType:
    wanted = _Import(name)
    try:
        start_new_thread(wanted.run, ())
    except RuntimeError:  # there is no thread to be had, or none any more because the process ends
        return _imported(name)
    wanted.done.acquire()
    if wanted.error is not None:
        raise wanted.error
    assert wanted.found is not None
    return wanted.found
