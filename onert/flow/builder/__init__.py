"""Building functions of flows, one call for each operation."""

from __future__ import annotations

from .arrays import Arrays
from .gathers import Gathers
from .parameters import Parameters
from .reductions import Reductions


class Builder(Reductions, Arrays, Gathers, Parameters):
    """Builds a function of a flow. Each method for an operation adds it and gives the variable of its result.

    Operands are variables, or anything that becomes a constant: arrays, lists, and numbers, which take the element type
    of the variable beside them. `name` is that of the operation
    within the function; without it the operation's type is the name, with a number where that is taken. Results have
    the element type of the first operand unless an operation says otherwise.

        flow = Flow()
        f = Builder(flow, "f")
        x = f.var("x", DT_FLOAT, [1, 64])
        y = f.relu(x, name="y")
    """


__all__ = ["Builder"]
