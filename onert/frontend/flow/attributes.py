"""Attribute values, which flow files store as text."""

from __future__ import annotations

from onert.ir import RuleError

_TRUE = ("1", "T", "true")
_MOST_DIGITS = 19


def integer(text: str) -> int:
    """A decimal number. Raises RuleError for any other text."""
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise RuleError(f"{text!r} is not an integer")
    return int(text)


def boolean(text: str) -> bool:
    """True for "1", "T" and "true"; False otherwise."""
    return text in _TRUE


def integers(text: str) -> tuple[int, ...]:
    """A list such as `[2,3]`; brackets and blanks are optional, a missing item means -1. Raises RuleError otherwise."""
    inside = text.strip().removeprefix("[").removesuffix("]")
    if not inside.strip():
        return ()
    return tuple(integer(item) if item.strip() else -1 for item in inside.split(","))
