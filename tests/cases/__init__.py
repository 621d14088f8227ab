"""Cases of every operation, one family per file: the single table that all tests of operations use.

Each module has `CASES: list[Case]`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from .case import Case


def all_cases() -> Iterator[Case]:
    """The cases of all modules."""
    for module in pkgutil.iter_modules(__path__):
        yield from getattr(import_module(f"{__name__}.{module.name}"), "CASES", ())
