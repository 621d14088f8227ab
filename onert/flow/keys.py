"""Keys of tensors: names, numbers of parameters, or objects whose `repr` is a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from .errors import KeyRangeError, UnknownTensorError


@frozen(eq=False)
class Parameters:
    """The variables of a network by number, and their numbers by names and aliases."""

    names: Sequence[str]
    numbers: Mapping[str, int]

    def number(self, key: Any) -> int:
        """The number of the variable that a key identifies.

        Raises KeyRangeError (an IndexError) for a number out of range, UnknownTensorError (a ValueError) for a name.
        """
        if isinstance(key, int) and not isinstance(key, bool):
            if not 0 <= key < len(self.names):
                raise KeyRangeError(f"there is no parameter {key}, expected 0 to {len(self.names) - 1}")
            return key
        name = key if isinstance(key, str) else key.decode() if isinstance(key, bytes) else repr(key)
        found = self.numbers.get(name)
        if found is None:
            raise UnknownTensorError(f"the network has no tensor {name!r:.80}")
        return found
