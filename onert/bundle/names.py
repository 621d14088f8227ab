"""Names that C accepts, made from names of models."""

from __future__ import annotations

import re
from collections.abc import Container

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """alignas alignof and asm auto bool break case catch char class const constexpr continue decltype default
        delete do double else enum explicit export extern false float for friend goto if inline int long main mutable
        namespace new noexcept not nullptr operator or private protected public register restrict return short signed
        sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void
        volatile while xor""",
    )
)


def identifier(name: str) -> str:
    """The name with an underscore for every other character than ASCII letters, digits and underscores.

    One that starts with a digit gets an "A" in front (both as Glow does), a keyword an underscore behind.
    """
    legal = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
    if legal[0].isdigit():
        legal = "A" + legal
    return legal + "_" if legal in _KEYWORDS else legal


def apart(name: str, taken: Container[str]) -> str:
    """The name, with `__1`, `__2` ... behind it where it is taken."""
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}__{number}"
    return found
