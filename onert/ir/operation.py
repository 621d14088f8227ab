"""One node of a subgraph."""

from __future__ import annotations

from typing import cast

from attrs import frozen

from .op import Op
from .value import Value


@frozen
class Operation(Value):
    """An operation kind applied to operands, which are indices into the subgraph's; None is an absent one.

    `location` says where in the model file it comes from ("operation 12 CONV_2D"); it takes part in no comparison
    of meaning but is kept by passes, so that an error names what its author knows.
    """

    op: Op
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    location: str = ""

    @property
    def used(self) -> tuple[int, ...]:
        """The inputs that are present."""
        if None not in self.inputs:
            return cast(tuple[int, ...], self.inputs)
        return tuple(i for i in self.inputs if i is not None)

    def __str__(self) -> str:
        return self.location or self.op.label
