"""Transactional state: a run changes it completely or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from onert.backend import HOST, Program, Tensor, Tensors
from onert.ir import Array, Effect, Subgraph
from onert.ir.dtype import address
from onert.ir.process.imports import module
from onert.ir.value import ByIdentity

if TYPE_CHECKING:
    from onert.ir.ops.data_movement.part_update import Record


def is_kept_by(program: Program) -> bool:
    """Whether runs of a program change state other than its entry's variables."""
    return any(
        (index != program.entry and routine.subgraph.state)
        or any(operation.op.effect is Effect.WRITE for operation in routine.subgraph.notable)
        for index, routine in enumerate(program.routines)
    )


class Journal:
    """The state at the beginning of a run, stored until the run has succeeded.

    `state` holds, by key, tables, generators and resource variables that are not operands. Operations replace these and
    never modify them. Variables of subgraphs are noted before they get their next values.
    """

    def __init__(self, state: dict[Any, Any]) -> None:
        self._state = state
        self._before: dict[None, tuple[dict[Any, Any], dict[int, tuple[Array, Array]]]] = {}
        self.commit = self._before.clear
        """Call this when the run has succeeded. It is written in C, so that no signal handler runs inside it."""

    def begin(self) -> None:
        """Start the journal of a run."""
        self.restore()
        self._before[None] = dict(self._state), {}

    def note(self, array: Array) -> None:
        """Save a variable's elements, which are about to be replaced."""
        found = self._before.get(None)
        if found is not None and id(array) not in found[1]:
            found[1].setdefault(id(array), (array, array.copy()))

    def restore(self) -> None:
        """Undo the changes of a run that did not succeed."""
        found = self._before.get(None)
        if found is None:
            return
        before, arrays = found
        for key in self._state.keys() - before.keys():
            del self._state[key]
        self._state.update(before)
        for array, content in arrays.values():
            array[...] = content
        self.commit()


@frozen(eq=False)
class OverwrittenPart(ByIdentity):
    """The data overwritten by one in-place update: `part` of `source` at `places`, if `taken` says that it was saved.

    `result` is the update's result. If it is in different memory, nothing was overwritten.
    """

    source: Tensor
    result: Tensor
    part: Tensor
    places: tuple[Tensor, ...]
    taken: Tensor
    op: Record

    def undo(self) -> None:
        """Write back the overwritten elements."""
        if not self.taken.array:
            return
        whole, part = self.result.array, self.part.array
        if address(whole) == address(self.source.array):
            self.op.put_back(whole, part, *(place.array for place in self.places))
        self.taken.array[...] = False


@frozen(eq=False)
class Undo(ByIdentity):
    """The records of a run in the order of its updates."""

    records: tuple[OverwrittenPart, ...]

    def __call__(self) -> None:
        """Restore the state from before the run. If a call is interrupted, the next one completes it."""
        for record in reversed(self.records):
            record.undo()


def undo(subgraph: Subgraph, tensors: Tensors) -> Undo:
    """The call that undoes the in-place updates of a subgraph's runs."""
    found = []
    for operation in subgraph.notable:
        if isinstance(operation.op, module("onert.ir.ops.data_movement.part_update").Record):
            part, *starts, taken = operation.outputs
            if starts[0] not in subgraph.uses:  # nothing is updated from this record
                continue
            update = _update(subgraph, starts[0])
            own = [tensors[i] for i in (operation.used[0], update, part, *starts, taken)]
            if all(tensor.memory.name == HOST.name for tensor in own):
                source, result, old, *places, flag = own
                found.append(OverwrittenPart(source, result, old, tuple(places), flag, operation.op))
    return Undo(tuple(found))


def _update(subgraph: Subgraph, place: int) -> int:
    """The result of the update that uses a place from a record."""
    (at,) = subgraph.uses[place]
    return subgraph.operations[at].outputs[0]
