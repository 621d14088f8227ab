"""Kernel generation: each backend turns its sequences into kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import evolve

from onert.backend import Backend, Group, Kernel, Settings, Step
from onert.backend import Sequence as OperationSequence
from onert.ir import BackendError, Effect
from onert.ir.errors import call_foreign

from .partition import Part

Result = TypeVar("Result")


def fuse(part: Part, settings: Settings) -> Part:
    """The part with its operations grouped by its backend. Raises BackendError if the groups are invalid."""
    sequence, backend = part.sequence, part.backend
    groups = _call(part, backend.fuse, settings)
    _check(backend, sequence, groups)
    return evolve(part, sequence=evolve(sequence, groups=groups))


def generate(parts: Sequence[Part], settings: Sequence[Settings]) -> tuple[Step, ...]:
    """The kernels in the order of the parts. Raises BackendError, naming backend and operations, if one fails."""
    return tuple(
        Step(part.backend.name, part.sequence, _kernel(part, part_settings))
        for part, part_settings in zip(parts, settings, strict=True)
    )


def _kernel(part: Part, settings: Settings) -> Kernel:
    return _call(part, part.backend.generate, settings)


def _call(part: Part, method: Callable[[OperationSequence, Settings], Result], settings: Settings) -> Result:
    def failed() -> str:
        return f"backend {part.backend.name} failed on {_range(part.sequence)}"

    return call_foreign(BackendError, failed, method, part.sequence, settings)


def _range(sequence: OperationSequence) -> str:
    first, last = sequence.body[0], sequence.body[-1]
    return str(first) if len(sequence.operations) == 1 else f"{first} to {last}"


def _check(backend: Backend, sequence: OperationSequence, groups: tuple[Group, ...]) -> None:
    """Raise BackendError for groups that are incomplete, wrongly ordered, or do not store what is read elsewhere."""
    subgraph = sequence.subgraph
    grouped = [at for group in groups for at in group.operations]
    if sorted(grouped) != sorted(sequence.operations):
        raise BackendError(
            f"backend {backend.name} groups operations {grouped}, expected each of {list(sequence.operations)} once"
        )
    if [at for at in grouped if _has_effect(sequence, at)] != [
        at for at in sequence.operations if _has_effect(sequence, at)
    ]:
        raise BackendError(f"backend {backend.name} changes the order of operations with effects")
    missing = {o for at in grouped for o in subgraph.operations[at].outputs}
    stored = frozenset(sequence.outputs)
    for group in groups:
        inside = frozenset(group.operations)
        results = [o for at in group.operations for o in subgraph.operations[at].outputs]
        for at in group.operations:
            if not missing.isdisjoint(subgraph.operations[at].used):
                raise BackendError(
                    f"backend {backend.name} runs {subgraph.operations[at]} before the producer of an operand"
                )
            missing.difference_update(subgraph.operations[at].outputs)
        for operand in group.unstored:
            if operand not in results or operand in stored or not inside.issuperset(subgraph.uses.get(operand, ())):
                raise BackendError(
                    f"backend {backend.name} does not store {subgraph.label(operand)}, which is read outside its group"
                )


def _has_effect(sequence: OperationSequence, at: int) -> bool:
    op = sequence.subgraph.operations[at].op
    return op.effect is not Effect.NONE or bool(op.subgraphs)
