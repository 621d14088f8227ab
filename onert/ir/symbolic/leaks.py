"""Symbolic numbers in values that must not depend on lengths, such as descriptions of generated code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from .trace import MARK, Symbolic


class LeakError(Exception):
    """A symbolic number was found where only a plain one may be: a bug in the code that made the value."""


def require_plain(value: object, text: str) -> None:
    """Raises LeakError if `value`, whose `repr` is in `text`, contains a symbolic number; the message names its field.

    The text is needed for a key anyway, and searching it takes less than a microsecond.
    """
    if MARK in text:
        found = next(_symbolic(value, type(value).__qualname__), None)
        where = text if found is None else f"{found[0]} is {found[1]}"
        raise LeakError(f"{where}, a symbolic number, expected a plain one, e.g. by int(), which records a condition")


def _symbolic(value: Any, place: str) -> Iterator[tuple[str, Symbolic]]:
    """The symbolic numbers in a value, each with its place in it."""
    if isinstance(value, Symbolic):
        yield place, value
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            yield from _symbolic(getattr(value, field.name), f"{place}.{field.name}")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _symbolic(each, f"{place}[{key}]")
    elif isinstance(value, tuple | list):
        for at, each in enumerate(value):
            yield from _symbolic(each, f"{place}[{at}]")
