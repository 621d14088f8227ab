"""One node of a subgraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from attrs import evolve, frozen

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

    def with_inputs(self, other: Callable[[int], int]) -> Operation:
        """The operation with the `other` operand in place of each input."""
        return evolve(self, inputs=tuple([None if i is None else other(i) for i in self.inputs]))

    def with_operands(self, other: Callable[[int], int]) -> Operation:
        """The same in place of each output too."""
        return evolve(self.with_inputs(other), outputs=tuple(map(other, self.outputs)))

    def __str__(self) -> str:
        return self.location or self.op.label
