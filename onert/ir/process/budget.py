"""How much work a model may ask for: counters that every loop over what a file says draws on.

A small file can describe something very large: offsets that share bytes, subgraphs that call one another, one model
named a thousand times. Whoever reads or compiles a model makes one budget from the size of what it was given and passes
it down. A model that is not built to waste work never comes near its budget, which grows with the model.
"""

from __future__ import annotations

from onert.ir.errors import OnertError

MAX_CALL_DEPTH = 32
"""How deep subgraphs may call one another. Each level takes a dozen Python frames and an arena of its own."""


class Budget:
    """The units that are left: steps of work, of which one takes about a microsecond, or bytes of memory.

    This is the one value here that changes: it is made for one call of `load` or `compile` and dies with it.
    """

    __slots__ = ("_error", "_given", "_unit", "left")

    def __init__(self, units: int, error: type[OnertError], unit: str = "steps") -> None:
        self._given = units
        self._error = error
        self._unit = unit
        self.left = units

    def spend(self, units: int, on: str) -> None:
        """Take `units` off; the budget's error, which says what they were to be spent `on`, where too few are left."""
        self.left -= units
        if self.left < 0:
            raise self._error(f"{on} takes more than {self._given} {self._unit}, the most for a model of this size")
