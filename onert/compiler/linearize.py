"""Linearization: the order in which a run comes by every operation."""

from __future__ import annotations

from collections.abc import Sequence as List

from attrs import frozen

from onert.backend import Group, Sequence
from onert.ir.value import Value


@frozen
class Moment(Value):
    """A group of operations that run as one: when, and in which step."""

    group: Group
    step: int


@frozen
class Timeline(Value):
    """The groups of all sequences, one after the other, and for every operation the moment at which it runs."""

    moments: tuple[Moment, ...]
    of_operation: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.moments)


def linearize(sequences: List[Sequence], operations: int) -> Timeline:
    """The timeline of the sequences of a subgraph of so many operations, in the order in which they are given."""
    moments = [Moment(group, step) for step, sequence in enumerate(sequences) for group in sequence.groups]
    at = [0] * operations
    for time, moment in enumerate(moments):
        for operation in moment.group.operations:
            at[operation] = time
    return Timeline(tuple(moments), tuple(at))
