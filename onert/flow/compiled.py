"""A compiled function: its program, its tensors, and what it shares with others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from onert.backend import Program
from onert.ir import Array, TensorType

from .errors import KeyRangeError
from .keys import Parameters
from .layout import Field, Layout


@frozen(eq=False)
class Shared:
    """Tensors that all instances share: elements and types by the names of variables, and the learnable ones.

    `initial` maps variables to the distributions of their initial values. `columns` are column-major variables, also
    unshared ones.
    """

    arrays: Mapping[str, Array]
    types: Mapping[str, TensorType]
    learnable: frozenset[str]
    initial: Mapping[str, str] = field(factory=dict)
    columns: frozenset[str] = frozenset()


@frozen
class Step:
    """An operation that a cell computes: its kernel, and the backends that run the kernel's operations.

    Operands and results are names of variables; `types` are the element types of the operands followed by those of the
    results. `place` is its location in the IR's operations.
    """

    operation: str
    place: str
    kernel: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: tuple[str, ...]
    backends: tuple[str, ...]
    recipe: str = ""
    task: int = 0


@frozen(eq=False)
class Compiled:
    """A compiled function: its program, and the placement of its tensors in an instance.

    `assigned` are the variables to which the program's last outputs are assigned, `in_place` those of these outputs
    that share their variables' memory. `references` are fields whose tensors are stored elsewhere, with flags for
    whether the function reads and whether it computes each. `referred` maps tensors of another instance to the variable
    that refers to the instance, and the tensor's name there. `links` maps each variable to those that connectors link
    to it. `steps` are the computed operations in order, without those that need no work.
    """

    name: str
    program: Program
    layout: Layout
    parameters: Parameters
    shared: Shared
    assigned: tuple[str, ...]
    in_place: frozenset[int]
    references: Mapping[str, tuple[bool, bool]]
    referred: Mapping[str, tuple[str, str]]
    links: Mapping[str, tuple[str, ...]]
    steps: tuple[Step, ...]

    @property
    def resources(self) -> frozenset[str]:
        """The variables that refer to instances."""
        return frozenset(resource for resource, _ in self.referred.values())

    def named(self, key: Any) -> str:
        """The name of the tensor for a key."""
        return self.parameters.names[self.parameters.number(key)]

    def field(self, name: str) -> Field:
        """The placement of a tensor. Raises KeyRangeError, an IndexError, if the cell has none of that name."""
        found = self.layout.fields.get(name)
        if found is None:
            raise KeyRangeError(f"cell '{self.name}' has no tensor '{name}': it is another cell's, or never stored")
        return found

    def type(self, name: str) -> TensorType:
        """The type of a tensor of the cell, or of one that all cells share."""
        return self.shared.types[name] if name in self.shared.types else self.field(name).type
