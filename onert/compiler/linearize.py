"""Linearisation: the order in which a run executes the operations."""

from __future__ import annotations

from collections.abc import Sequence as List

from attrs import frozen

from onert.backend import Group, Sequence
from onert.ir.value import Value


@frozen
class Moment(Value):
    """A group of operations that runs as one, and the step that contains it."""

    group: Group
    step: int


@frozen
class Timeline(Value):
    """The groups of all sequences in order, and for every operation the index of its moment."""

    moments: tuple[Moment, ...]
    of_operation: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.moments)


def linearize(sequences: List[Sequence], operations: int) -> Timeline:
    """The timeline of sequences, in the given order, of a subgraph with `operations` operations."""
    moments = [Moment(group, step) for step, sequence in enumerate(sequences) for group in sequence.groups]
    at = [0] * operations
    for time, moment in enumerate(moments):
        for operation in moment.group.operations:
            at[operation] = time
    return Timeline(tuple(moments), tuple(at))
