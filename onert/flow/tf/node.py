"""A TensorFlow operation, as passed to rules."""

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
        """The elements of an integer operand; None if they are computed."""
        data = self.inputs[position].data
        return None if data is None else [int(i) for i in np.asarray(data).reshape(-1)]

    def number(self, name: str) -> int:
        """An integer attribute."""
        return int(self.attributes[name])

    def mask(self, name: str) -> int:
        """A bit mask of axes, 0 if the attribute is absent."""
        return int(self.attributes.get(name, 0))


Result = Variable | tuple[Variable, ...] | None
Rule = Callable[[Builder, Node], Result]
"""Adds operations whose results get the names of the node's; None if flows have no such operation."""
