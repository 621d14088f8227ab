"""What is known of a compiled function: its program, its tensors, and what it shares with others."""

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
    """Tensors that all instances share: elements by the names of variables, and those that can be changed.

    `initial` names the distributions of the numbers with which variables are to begin, `columns` are variables, not
    these alone, that are column-major.
    """

    arrays: Mapping[str, Array]
    types: Mapping[str, TensorType]
    learnable: frozenset[str]
    initial: Mapping[str, str] = field(factory=dict)
    columns: frozenset[str] = frozenset()


@frozen
class Step:
    """An operation that a cell computes: by which kernel, and which backends run what the kernel consists of.

    Operands and results are variables by name; `types` are the element types of the operands and then of the results.
    `place` is what the IR's operations call it.
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
    """A function that is compiled: its program, and where its tensors lie in an instance.

    `assigned` names the variables that the last outputs of the program are assigned to, `in_place` those of these
    outputs that lie where their variables do; `references` are fields whose
    tensors lie elsewhere, each with whether the function reads it and whether it computes it; those `referred` are
    tensors of an instance, each with the variable that refers to it and the tensor's name there. `links` are the
    variables that connectors link to one, `steps` what is computed, in order; operations that do nothing are left out.
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
        """The name of the tensor that a key stands for."""
        return self.parameters.names[self.parameters.number(key)]

    def field(self, name: str) -> Field:
        """Where a tensor lies; KeyRangeError, an IndexError, where the cell has none of that name."""
        found = self.layout.fields.get(name)
        if found is None:
            raise KeyRangeError(f"cell '{self.name}' has no tensor '{name}': it is another's, or is never stored")
        return found

    def type(self, name: str) -> TensorType:
        """The type of a tensor of the cell or of those that all cells share."""
        return self.shared.types[name] if name in self.shared.types else self.field(name).type
