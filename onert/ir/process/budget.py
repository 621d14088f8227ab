"""Limits on the work that a model may cause: counters that every loop over untrusted file content is charged to.

A small file can describe something very large: offsets that share bytes, subgraphs that call one another, one model
named a thousand times. Code that reads or compiles a model creates a budget from the size of its input and passes it
down. Only a model that is built to waste work can exceed its budget, which grows with the model.
"""

from __future__ import annotations

from onert.ir.errors import OnertError

MAX_CALL_DEPTH = 32
"""The maximum depth of calls between subgraphs. Each level uses a dozen Python frames and its own arena."""


class Budget:
    """The remaining units: steps of work, each of about a microsecond, or bytes of memory.

    This is the only mutable value here: it is created for one call of `load` or `compile`.
    """

    __slots__ = ("_error", "_given", "_unit", "left")

    def __init__(self, units: int, error: type[OnertError], unit: str = "steps") -> None:
        self._given = units
        self._error = error
        self._unit = unit
        self.left = units

    def spend(self, units: int, on: str) -> None:
        """Subtract `units`. Raises the budget's error, which names what they are spent `on`, if too few are left."""
        self.left -= units
        if self.left < 0:
            raise self._error(f"{on} takes more than {self._given} {self._unit}, the limit for a model of this size")
