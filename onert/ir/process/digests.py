"""256-bit BLAKE2b (RFC 7693), which identifies content.

It is imported from Python's own module: `hashlib` provides the same function, but loads OpenSSL, which adds three
milliseconds to the start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

try:
    from _blake2 import blake2b
except ImportError:  # the interpreter is not CPython
    from hashlib import blake2b

SIZE = 32
"""The size of a digest in bytes."""


class Digest(Protocol):
    """A digest in progress."""

    def update(self, data: Any, /) -> None: ...

    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


digest: Callable[..., Digest] = partial(blake2b, digest_size=SIZE)
"""Starts a digest of the given bytes, if any, followed by those of later updates."""
