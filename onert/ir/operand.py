"""A tensor of the model, before it has a buffer."""

from __future__ import annotations

import os

import numpy as np
from attrs import frozen

from .dtype import Array
from .shape import Shape, static
from .types import Constant, TensorType
from .value import Value


@frozen
class Resource(Value):
    """A resource variable: its name in the state of executions, and what it begins with.

    It has no elements before something is assigned to it if `initial` is None, unless they are `drawn`: bits that
    nobody knows beforehand, others in every state.
    """

    container: str
    name: str
    initial: Constant | None = None
    drawn: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """Its place in the state of executions."""
        return ("variable", self.container, self.name)

    def beginning(self, type_: TensorType) -> Array | None:
        """What it begins with, of a static type; None for nothing."""
        if self.drawn:
            return np.frombuffer(os.urandom(type_.nbytes), type_.dtype.numpy).reshape(static(type_.shape))
        return None if self.initial is None else self.initial.array


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
