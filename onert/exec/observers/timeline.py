"""The memory in use while a program runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter_ns

from attrs import frozen

from onert.backend import HOST, Program, Routine, Tensors
from onert.exec.exclusive import Serial
from onert.ir.value import Value

from .observer import Observer, Work


@frozen
class Sample(Value):
    """From `time` on, in nanoseconds, `nbytes` are in use in a memory space."""

    time: int
    space: str
    nbytes: int


class MemoryTimeline(Observer):
    """Bytes of the tensors in use. A tensor is in use from the piece that computes it to the last that reads it.

    Counting follows the memory plan: inputs, outputs, constants and variables do not count, sizes are rounded up to the
    alignment of the memory space, and tensors that share memory count once. Dynamic tensors count with their actual
    size.
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._in_use: dict[int, _InUse] = {}  # by the id of a frame's tensors, which outlive a run
        self._turns = Serial()

    @property
    def peaks(self) -> Mapping[str, int]:
        """The most bytes in use in each memory space."""
        found: dict[str, int] = {}
        for sample in self.samples:
            found[sample.space] = max(found.get(sample.space, 0), sample.nbytes)
        return found

    def run_begins(self, program: Program, tensors: Tensors) -> None:
        self._turns(self._in_use.clear)

    def begins(self, work: Work, tensors: Tensors) -> None:
        self._turns(partial(self._make, work, tensors))

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        self._turns(partial(self._release, work, tensors))

    def _make(self, work: Work, tensors: Tensors) -> None:
        in_use = self._in_use.get(id(tensors))
        if in_use is None or in_use.complete:
            in_use = self._in_use[id(tensors)] = _InUse(work.routine)
        in_use.make(_groups(work)[0], tensors)
        self._sample()

    def _release(self, work: Work, tensors: Tensors) -> None:
        in_use = self._in_use[id(tensors)]
        for operations in _groups(work):
            in_use.make(operations, tensors)  # dynamic tensors have their bytes now
            self._sample()
            in_use.release(operations)
        self._sample()

    def _sample(self) -> None:
        totals: dict[str, int] = {}
        for in_use in self._in_use.values():
            for space, nbytes in in_use.live.values():
                totals[space] = totals.get(space, 0) + nbytes
        known = {sample.space: sample.nbytes for sample in self.samples[-8:]}
        now = perf_counter_ns()
        for space in {*totals, *known}:
            if totals.get(space, 0) != known.get(space):
                self.samples.append(Sample(now, space, totals.get(space, 0)))


def _groups(work: Work) -> list[tuple[int, ...]]:
    """The operations of a piece by group. If a piece is a whole sequence, the start of each group cannot be observed,
    but their order is known."""
    known = frozenset(work.operations)
    groups = work.routine.steps[work.step].sequence.groups
    return [group.operations for group in groups if not known.isdisjoint(group.operations)]


class _InUse:
    """The tensors of one subgraph that are in use during one run of it, by the operand whose memory they share."""

    def __init__(self, routine: Routine) -> None:
        self._subgraph = routine.subgraph
        self._roots = {
            operand: place.root for plan in routine.arenas.values() for operand, place in plan.placements.items()
        }
        self._waiting: dict[int, set[int]] = {}
        for operand in range(len(self._subgraph.operands)):
            users = self._waiting.setdefault(self._roots.get(operand, operand), set())
            users.update(self._subgraph.uses.get(operand, ()))
            users.update(at for at in (self._subgraph.definitions.get(operand),) if at is not None)
        self._forever = {self._roots.get(operand, operand) for operand in self._subgraph.kept}
        self._left = set(range(len(self._subgraph.operations)))
        self.live: dict[int, tuple[str, int]] = {}

    @property
    def complete(self) -> bool:
        return not self._left

    def make(self, operations: Sequence[int], tensors: Tensors) -> None:
        for at in operations:
            for operand in self._subgraph.operations[at].outputs:
                if operand not in tensors or operand in self._subgraph.outputs:
                    continue
                tensor = tensors[operand]
                if operand in self._roots:
                    size = tensor.type.nbytes
                    size += -size % tensor.memory.alignment
                    self.live[self._roots[operand]] = (tensor.memory.name, size)
                elif tensor.dynamic and tensor.buffer is not None:
                    self.live[operand] = (HOST.name, tensor.array.nbytes)

    def release(self, operations: Sequence[int]) -> None:
        self._left.difference_update(operations)
        for at in operations:
            operation = self._subgraph.operations[at]
            for operand in (*operation.used, *operation.outputs):
                root = self._roots.get(operand, operand)
                self._waiting[root].discard(at)
                if not self._waiting[root] and root not in self._forever:
                    self.live.pop(root, None)
