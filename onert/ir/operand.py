"""A tensor of the model, before it has a buffer."""

from __future__ import annotations

from attrs import frozen

from .shape import Shape
from .types import Constant, TensorType
from .value import Value


@frozen
class Resource(Value):
    """A resource variable: its name in the state of executions, and what it begins with.

    It has no elements before something is assigned to it if `initial` is None.
    """

    container: str
    name: str
    initial: Constant | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Its place in the state of executions."""
        return ("variable", self.container, self.name)


@frozen
class Operand(Value):
    """Type, name, and the elements where it is a constant.

    `variable` marks state that is kept from one run to the next; it starts as zeros. `signature_shape` is the shape
    with the dimensions that the file leaves open, where it does: `type` has a shape to start with, this says which
    others are meant. A variable with a `resource` is that resource variable.
    """

    type: TensorType
    name: str = ""
    data: Constant | None = None
    variable: bool = False
    signature_shape: Shape | None = None
    resource: Resource | None = None

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def open_shape(self) -> Shape:
        """The shape, unknown in the dimensions that the file leaves open."""
        return self.type.shape if self.signature_shape is None else self.signature_shape

    @property
    def known(self) -> TensorType:
        """The type, its elements known where this is a constant: what `infer` is given."""
        return self.type if self.data is None else self.type.with_data(self.data)
