"""Cells: compiled functions of a network, of which instances are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from onert.backend import Program
from onert.ir import Array, ExecutionError, TensorType

from .channel import Channel
from .errors import KeyRangeError
from .instance import Instance
from .keys import Parameters
from .layout import Field, Layout


@frozen(eq=False)
class Shared:
    """Tensors that all instances share: elements by the names of variables, and those that can be changed."""

    arrays: Mapping[str, Array]
    learnable: frozenset[str]


class Cell:
    """A function that is compiled: its program, and where its tensors lie in an instance.

    `assigned` names the variables that the last outputs of the program are assigned to; `references` are fields whose
    tensors lie elsewhere, each with whether the function reads it and whether it computes it.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        layout: Layout,
        parameters: Parameters,
        shared: Shared,
        assigned: tuple[str, ...],
        references: Mapping[str, tuple[bool, bool]],
    ) -> None:
        self.name = name
        self.program = program
        self.layout = layout
        self.parameters = parameters
        self.shared = shared
        self.assigned = assigned
        self.references = references

    def instance(self) -> Instance:
        """A new instance, with memory of its own in which every tensor is zeros."""
        return Instance(self)

    def channel(self, key: Any, size: int = 0) -> Channel:
        """A channel of tensors in the format of one of the cell's."""
        name = self.parameters.names[self.parameters.number(key)]
        return Channel(name, self.type(name), size)

    def index(self, key: Any) -> Any:
        """The number of a parameter, which is a faster key than its name; of a tuple of keys a tuple, of None None."""
        if key is None:
            return None
        if isinstance(key, tuple):
            return tuple(map(self.index, key))
        return self.parameters.number(key)

    def field(self, name: str) -> Field:
        """Where a tensor lies; KeyRangeError, an IndexError, where the cell has none of that name."""
        found = self.layout.fields.get(name)
        if found is None:
            raise KeyRangeError(f"cell '{self.name}' has no tensor '{name}': it is another's, or is never stored")
        return found

    def type(self, name: str) -> TensorType:
        """The type of a tensor of the cell or of those that all cells share."""
        array = self.shared.arrays.get(name)
        if array is not None:
            return next(o.type for o in self.program.main.subgraph.operands if o.name == name)
        return self.field(name).type

    def __contains__(self, key: Any) -> bool:
        try:
            name = self.parameters.names[self.parameters.number(key)]
        except ExecutionError:
            return False
        return name in self.layout.fields

    def __repr__(self) -> str:
        return f"Cell('{self.name}')"
