"""The slots of a kernel's task, by name. Filling a task does not need the code generator."""

from __future__ import annotations

import struct

import numpy as np
from attrs import frozen

from onert.ir import Array, BackendError
from onert.ir.value import Value


@frozen
class TaskLayout(Value):
    """The names of a task's slots, in order."""

    names: tuple[str, ...]

    def slot(self, name: str) -> int:
        """The number of a slot."""
        return self.names.index(name)

    def fill(self, **values: int | float) -> Array:
        """A task as uint64 slots: addresses and integers unchanged, floats as float32 bits.

        Raises BackendError unless exactly the slots of the layout are given.
        """
        if values.keys() != set(self.names):
            wrong = ", ".join(sorted(values.keys() ^ set(self.names)))
            raise BackendError(f"the values of a task do not match its slots, missing or unknown: {wrong}")
        return np.array([slot_bits(values[name]) for name in self.names], np.uint64)


def slot_bits(value: int | float) -> int:
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<f", value), "little")
    return int(value) % (1 << 64)
