"""An operation of TensorFlow as rules are given it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from onert.flow.builder import Builder
from onert.flow.graph import Variable


@frozen(eq=False)
class Node:
    """An operation of a graph: its operands as variables, its attributes, and the shapes of its results."""

    type: str
    name: str
    inputs: Sequence[Variable]
    attributes: Mapping[str, Any]
    shapes: Sequence[Sequence[int]]

    def constant(self, position: int) -> list[int] | None:
        """The elements of an operand of integers; None where they are computed."""
        data = self.inputs[position].data
        return None if data is None else [int(i) for i in np.asarray(data).reshape(-1)]

    def number(self, name: str) -> int:
        """An attribute that is an integer."""
        return int(self.attributes[name])

    def mask(self, name: str) -> int:
        """Bits for the axes, none where the attribute is absent."""
        return int(self.attributes.get(name, 0))


Result = Variable | tuple[Variable, ...] | None
Rule = Callable[[Builder, Node], Result]
"""Adds an operation whose results are called as those of the node; None where flows have none for it."""
