"""Large arrays that programs in the cache share, such as packed weights: each is an entry of its own, named by its
content."""

from __future__ import annotations

from weakref import WeakValueDictionary

import numpy as np
from attrs import frozen

from onert.backend.cache import Cache
from onert.ir import Array
from onert.ir.process.digests import SIZE
from onert.ir.value import Value

from .encoding import EncodeError

_HEXADECIMAL = frozenset("0123456789abcdef")

_held: WeakValueDictionary[str, Array] = WeakValueDictionary()
"""The bytes of the arrays in use in this process, by name: programs share their memory. NumPy keeps an array alive that
others are views of, but not a memoryview."""


@frozen
class SharedArrays(Value):
    """The arrays in a cache."""

    cache: Cache

    def store(self, elements: memoryview) -> str:
        """Store an array's elements unless they are there; returns their name. Raises EncodeError if that fails."""
        name = self.cache.key("array", elements)
        if not (self.cache.has(name) or self.cache.store(name, elements, label=f"array\t{len(elements)} bytes")):
            raise EncodeError(f"an array of {len(elements)} bytes cannot be stored")
        return name

    def fetch(self, name: str) -> memoryview:
        """The elements with a name. Raises LookupError if they are not there."""
        if not (len(name) == 2 * SIZE and _HEXADECIMAL.issuperset(name)):
            raise LookupError(f"{name!r} is not the name of an array")
        found = _held.get(name)
        if found is None:
            read = self.cache.load(name)
            if read is None:
                raise LookupError(f"the array {name} was removed from the cache")
            found = _held[name] = np.frombuffer(read, np.uint8)
        return found.data
