"""Notes at a shell: what the library warns about, as lines on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onert.ir import OnertWarning


@contextmanager
def notes_on_stderr(tool: str) -> Iterator[None]:
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
