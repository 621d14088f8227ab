"""Results in scratch memory that later operations read."""

from __future__ import annotations

from typing import Any

from attrs import frozen


@frozen(eq=False)
class Retained:
    """A result that an operation retained in scratch memory for later ones: its range, if their own scratch memory
    comes after it, and the last of these operations.
    """

    found: Any
    begin: int
    end: int
    until: int
