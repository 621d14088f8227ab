"""Telling observers of a run: calls that do the same as others, and say so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter_ns

from onert.backend import Group, HasParts, Part, Routine, Step, Tensors
from onert.ir import Subgraph
from onert.ir.cost import cost

from .observer import Observer, Work

Call = Callable[[], None]


class Watching:
    """The observers of one execution. Calls it makes run a sequence piece by piece where its kernel can."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = tuple(observers)

    def __call__(self, routine: Routine, tensors: Tensors, calls: Sequence[Call]) -> tuple[Call, ...]:
        """The calls of a routine's steps, watched."""
        return tuple(self._watched(routine, step, tensors, call) for step, call in enumerate(calls))

    def _watched(self, routine: Routine, number: int, tensors: Tensors, call: Call) -> Call:
        step = routine.steps[number]
        if isinstance(call, HasParts):
            parts: Iterable[Part] = call.parts
            groups = {at: group for group in step.sequence.groups for at in group.operations}
            whole = [(groups[part.operations[0]].operations, part.call) for part in parts]
        else:
            whole = [(step.sequence.operations, call)]
        told = {at for operations, _ in whole for at in operations}
        pieces = [self._piece(work(routine, number, step, at), tensors, run) for at, run in whole]
        for group in step.sequence.groups:
            if told.isdisjoint(group.operations):
                pieces.append(self._piece(work(routine, number, step, group.operations), tensors, _nothing))

        def run() -> None:
            for piece in pieces:
                piece()

        return run

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


def _nothing() -> None:
    """What a piece does that needs nothing done."""


def work(routine: Routine, number: int, step: Step, operations: tuple[int, ...]) -> Work:
    """What observers are told of operations that a step runs as one."""
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
    """Bytes of the operands that are in memory, each once."""
    unstored = {operand for group in groups for operand in group.unstored}
    body = [subgraph.operations[at] for at in operations]
    touched = {i for operation in body for i in (*operation.used, *operation.outputs)} - unstored
    return sum(subgraph.type(i).nbytes for i in touched if subgraph.type(i).is_static)
