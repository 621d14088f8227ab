"""How a command ends: a status, and for whatever goes wrong one sentence on standard error."""

from __future__ import annotations

import atexit
import gc
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from onert.ir import OnertError, OnertWarning, OptionError
from onert.ir.errors import printable

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


class UsageError(OnertError):
    """An argument that cannot be understood: exit status 2."""


def ended(
    tool: str, command: Callable[[], None], *, tracebacks: bool = False, called: Mapping[str, str] | None = None
) -> int:
    """Run a command to its end; its exit status.

    0 when done; 1 when the model, its data, a backend or the system failed; 2 for wrong usage; 130 when interrupted. A
    reader of the output that leaves early ends the command in silence, with 1. Characters that the terminal or file
    cannot hold are written as escapes. `tracebacks` shows where errors were raised too. `called` are the command's
    names for options and functions of the library, which errors say in their place.

    When the process ends, nobody looks for reference cycles in all that it has, three times: that took a tenth of it.
    """
    atexit.unregister(gc.freeze)  # once, whoever runs commands from Python
    atexit.register(gc.freeze)
    called = called or {}
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _notes_on_stderr(tool):
            command()
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        _abandon_output()
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return FAILED
    except Exception as error:
        if tracebacks:
            traceback.print_exc()
        print(f"{tool}: {_sentence(error, called)}", file=sys.stderr)
        if isinstance(error, OSError):
            _abandon_output()  # it may be what cannot be written
        if isinstance(error, UsageError) or (isinstance(error, OptionError) and error.option in called):
            return WRONG_USAGE
        return FAILED
    return DONE


@contextmanager
def _notes_on_stderr(tool: str) -> Iterator[None]:
    """Meanwhile each OnertWarning is one line, `tool: note: ...`, written once."""
    written: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", OnertWarning)
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **file: Any) -> None:
            if not issubclass(category, OnertWarning):
                others(message, category, *place, **file)
            elif str(message) not in written:
                written.add(str(message))
                print(f"{tool}: note: {message}", file=sys.stderr)

        warnings.showwarning = show
        yield


def _sentence(error: Exception, called: Mapping[str, str]) -> str:
    if isinstance(error, OnertError):
        said = str(error)
        for name, here in called.items():
            said = re.sub(rf"(?<![\w.'-]){re.escape(name)}(?![\w.'-])", here, said)
        return said
    if isinstance(error, OSError):
        place = os.fspath(error.filename) if isinstance(error.filename, str | os.PathLike) else "the output"
        return printable(f"{place} cannot be read or written: {error.strerror or error}")
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    return printable(f"a mistake in onert, which -v 2 shows the place of: {type(error).__name__}: {error}")


def _abandon_output() -> None:
    """Let what is still to be written go nowhere: the interpreter would try again, and complain, when it ends."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # there is none
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
