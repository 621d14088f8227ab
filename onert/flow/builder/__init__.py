"""Build functions of flows, one call per operation."""

from __future__ import annotations

from .arrays import Arrays
from .gathers import Gathers
from .parameters import Parameters
from .reductions import Reductions


class Builder(Reductions, Arrays, Gathers, Parameters):
    """Builds a function of a flow. Each method for an operation adds it and returns the variable of its result.

    Operands are variables, or anything that can become a constant: arrays, lists, and numbers, which get the element
    type of the other operand. `name` is the name of the operation within the function, by default the operation's type,
    numbered if it is taken. Results have the element type of the first operand unless an operation says otherwise.

        flow = Flow()
        f = Builder(flow, "f")
        x = f.var("x", DT_FLOAT, [1, 64])
        y = f.relu(x, name="y")
    """


__all__ = ["Builder"]
