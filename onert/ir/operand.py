"""A tensor of the model, before memory is assigned to it."""

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
    """A resource variable: its name in the state of executions, and its initial value.

    If `initial` is None the variable is uninitialised until it is first assigned, unless it is `drawn`: then it starts
    with random bits, which differ for every execution state.
    """

    container: str
    name: str
    initial: Constant | None = None
    drawn: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """Its key in the state of executions."""
        return ("variable", self.container, self.name)

    def beginning(self, type_: TensorType) -> Array | None:
        """Its initial value, for a static type; None if it is uninitialised."""
        if self.drawn:
            return np.frombuffer(os.urandom(type_.nbytes), type_.dtype.numpy).reshape(static(type_.shape))
        return None if self.initial is None else self.initial.array


@frozen
class Operand(Value):
    """A tensor's type, name and, for a constant, elements.

    `from_sizes` marks a constant that the compiler computed from sizes of tensors, so that other sizes change it.
    `variable` marks state that persists from one run to the next and starts as zeros. `signature_shape` is set if the
    file leaves dimensions open: it is the shape with these unknown, while `type` has the file's default sizes. A
    variable with a `resource` is that resource variable.
    """

    type: TensorType
    name: str = ""
    data: Constant | None = None
    variable: bool = False
    signature_shape: Shape | None = None
    resource: Resource | None = None
    from_sizes: bool = False

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def open_shape(self) -> Shape:
        """The shape, with None for the dimensions that the file leaves open."""
        return self.type.shape if self.signature_shape is None else self.signature_shape

    @property
    def known(self) -> TensorType:
        """The type, with the elements of a constant: what `infer` receives."""
        return self.type if self.data is None else self.type.with_data(self.data)

    def label(self, number: int) -> str:
        """The name of the operand with this number in messages."""
        return f"tensor {number} '{self.name}'" if self.name else f"tensor {number}"
