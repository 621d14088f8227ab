"""One node of a subgraph."""

from __future__ import annotations

from typing import cast

from attrs import frozen

from .op import Op
from .value import Value


@frozen
class Operation(Value):
    """An operation kind applied to operands, given as indices into the subgraph's operands; None for an absent one.

    `location` says where in the model file the operation comes from ("operation 12 CONV_2D"). It does not affect the
    meaning, but passes preserve it so that errors name what the model's author knows.
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
