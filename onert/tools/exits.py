"""How commands end: with an exit status, and on failure with one sentence on standard error."""

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
    """Invalid command-line arguments. The exit status is 2."""


def ended(
    tool: str, command: Callable[[], None], *, tracebacks: bool = False, called: Mapping[str, str] | None = None
) -> int:
    """Run a command and return its exit status.

    0 on success; 1 if the model, its data, a backend or the system failed; 2 for wrong usage; 130 if interrupted. If
    the reader of the output closes it early, the command ends silently with 1. Characters that the terminal's or file's
    encoding lacks are written as escapes. `tracebacks` also prints tracebacks of errors. `called` maps names of the
    library's options and functions to the command's names, which replace them in error messages.

    Objects are frozen at exit, because the interpreter's three final garbage collections took a tenth of the run time.
    """
    atexit.unregister(gc.freeze)  # register it only once even if commands are called repeatedly from Python
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
            _abandon_output()  # the output may be what failed
        if isinstance(error, UsageError) or (isinstance(error, OptionError) and error.option in called):
            return WRONG_USAGE
        return FAILED
    return DONE


@contextmanager
def _notes_on_stderr(tool: str) -> Iterator[None]:
    """Print each distinct OnertWarning once, as a line `tool: note: ...`."""
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
    return printable(f"a bug in onert (-v 2 prints the traceback): {type(error).__name__}: {error}")


def _abandon_output() -> None:
    """Redirect buffered output to the null device; otherwise the interpreter flushes it at exit and reports errors."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # no standard output
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
