"""BLAKE2b (RFC 7693) with 256 bits, which names contents here.

It is taken from the module of Python that holds it: `hashlib` gives the same, and reads OpenSSL's library for it, which
takes three milliseconds of a start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

try:
    from _blake2 import blake2b
except ImportError:  # an interpreter that is not CPython
    from hashlib import blake2b

SIZE = 32
"""Bytes of a digest."""


class Digest(Protocol):
    """A digest on its way."""

    def update(self, data: Any, /) -> None: ...

    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


digest: Callable[..., Digest] = partial(blake2b, digest_size=SIZE)
"""A digest of the bytes that it is given, if any, and of those that it is updated with."""
