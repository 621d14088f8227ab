"""Calls that notify observers before and after they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from time import perf_counter_ns

from onert.backend import Group, HasParts, Part, Routine, Step, Tensors
from onert.ir import Subgraph
from onert.ir.analysis.cost import cost

from .observer import Observer, Work

Call = Callable[[], None]


class Watching:
    """The observers of one execution. Their calls run a sequence piece by piece if its kernel supports that."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = tuple(observers)

    def __call__(self, routine: Routine, tensors: Tensors, calls: Sequence[Call]) -> tuple[Call, ...]:
        """The calls of a routine's steps, observed."""
        return tuple(self._watched(routine, step, tensors, call) for step, call in enumerate(calls))

    def _watched(self, routine: Routine, number: int, tensors: Tensors, call: Call) -> Call:
        step = routine.steps[number]
        if isinstance(call, HasParts):
            parts: Iterable[Part] = call.parts
            groups = {at: group for group in step.sequence.groups for at in group.operations}
            whole = [
                (operations, _in_turn([part.call for part in same]))
                for operations, same in groupby(parts, lambda part: groups[part.operations[0]].operations)
            ]
        else:
            whole = [(step.sequence.operations, call)]
        whole = _with_idle(whole, step.sequence.groups)
        return _in_turn([self._piece(work(routine, number, step, at), tensors, run) for at, run in whole])

    def _piece(self, work: Work, tensors: Tensors, call: Call) -> Call:
        observers = self.observers

        def run() -> None:
            for observer in observers:
                observer.begins(work, tensors)
            start = perf_counter_ns()
            call()
            end = perf_counter_ns()
            for observer in observers:
                observer.ends(work, tensors, start, end)

        return run


def _with_idle(
    whole: list[tuple[tuple[int, ...], Call]], groups: Sequence[Group]
) -> list[tuple[tuple[int, ...], Call]]:
    """The pieces, preceded by the groups before them that need no work."""
    covered = {at for operations, _ in whole for at in operations}
    position = {at: index for index, group in enumerate(groups) for at in group.operations}
    idle = [(index, group.operations) for index, group in enumerate(groups) if covered.isdisjoint(group.operations)]
    found = []
    for operations, call in whole:
        while idle and idle[0][0] < position[operations[0]]:
            found.append((idle.pop(0)[1], _nothing))
        found.append((operations, call))
    return found + [(operations, _nothing) for _, operations in idle]


def _in_turn(calls: Sequence[Call]) -> Call:
    """One call that makes all of these in order."""
    if len(calls) == 1:
        return calls[0]

    def run() -> None:
        for call in calls:
            call()

    return run


def _nothing() -> None:
    """The call of a piece that needs no work."""


def work(routine: Routine, number: int, step: Step, operations: tuple[int, ...]) -> Work:
    """The description for observers of operations that a step runs as one."""
    subgraph = routine.subgraph
    body = [subgraph.operations[at] for at in operations]
    flops = sum(cost(operation.op, subgraph.types(operation)).flops for operation in body)
    label = (
        str(body[0]) if len(body) == 1 else f"{body[0]} to {body[-1]}" if len(body) > 2 else " + ".join(map(str, body))
    )
    return Work(
        routine, number, step.backend, operations, label, flops, _traffic(subgraph, operations, step.sequence.groups)
    )


def _traffic(subgraph: Subgraph, operations: tuple[int, ...], groups: Sequence[Group]) -> int:
    """Bytes of the operands that are in memory, each counted once."""
    unstored = {operand for group in groups for operand in group.unstored}
    body = [subgraph.operations[at] for at in operations]
    touched = {i for operation in body for i in (*operation.used, *operation.outputs)} - unstored
    return sum(subgraph.type(i).nbytes for i in touched if subgraph.type(i).is_static)
