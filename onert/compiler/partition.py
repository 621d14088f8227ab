"""Partition: which operations a backend gets as one sequence, and in which order sequences run."""

from __future__ import annotations

from collections.abc import Sequence as List
from heapq import heappop, heappush

from attrs import frozen

from onert.backend import Backend, Sequence
from onert.ir.value import Value

from .lowering import Lowered

Predecessors = tuple[tuple[int, ...], ...]


@frozen
class Part(Value):
    """A sequence, its backend, and the parts that must have run before it."""

    backend: Backend
    sequence: Sequence
    dependencies: tuple[int, ...]


def partition(lowered: Lowered, before: Predecessors, *, concurrent: bool) -> tuple[Part, ...]:
    """Sequences in an order that is right; `before` names for each operation those that must have run.

    One after the other, sequences are as long as possible: an order of the operations that changes backends seldom, cut
    where it does. Where steps run at a time (`concurrent`), a sequence is a chain without branches, so that branches
    are different steps. A backend that is `single` gets one operation a sequence.
    """
    cut = _chains(lowered, before) if concurrent else _runs(lowered, _order(lowered.backends, before))
    owner = {at: index for index, operations in enumerate(cut) for at in operations}
    parts = []
    for index, operations in enumerate(cut):
        dependencies = {owner[p] for at in operations for p in before[at]} - {index}
        sequence = _sequence(lowered, operations, f"step{index}")
        parts.append(Part(lowered.backends[operations[0]], sequence, tuple(sorted(dependencies))))
    return tuple(parts)


def _order(backends: List[Backend], before: Predecessors) -> tuple[int, ...]:
    """All operations, each after its predecessors: the first in the file's order that is ready on the backend at hand,
    and another backend only where none is."""
    waiting = [len(p) for p in before]
    after: list[list[int]] = [[] for _ in before]
    for at, preceding in enumerate(before):
        for p in preceding:
            after[p].append(at)
    ready: dict[str, list[int]] = {}
    for at, count in enumerate(waiting):
        if count == 0:
            heappush(ready.setdefault(backends[at].name, []), at)
    order: list[int] = []
    current = ""
    while any(ready.values()):
        if not ready.get(current):
            current = min((queue[0], name) for name, queue in ready.items() if queue)[1]
        at = heappop(ready[current])
        order.append(at)
        for follower in after[at]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready.setdefault(backends[follower].name, []), follower)
    return tuple(order)


def _runs(lowered: Lowered, order: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The order cut where the backend changes."""
    runs: list[list[int]] = []
    for at in order:
        backend = lowered.backends[at]
        if runs and not backend.single and lowered.backends[runs[-1][-1]] is backend:
            runs[-1].append(at)
        else:
            runs.append([at])
    return [tuple(run) for run in runs]


def _chains(lowered: Lowered, before: Predecessors) -> list[tuple[int, ...]]:
    """The operations as chains: each next one is all that waits for the one before.

    Nothing else waits for an inner operation of a chain, so that chains cannot wait for one another in a circle.
    """
    followers: list[list[int]] = [[] for _ in before]
    for at, preceding in enumerate(before):
        for p in preceding:
            followers[p].append(at)
    chains: list[list[int]] = []
    chain_of: dict[int, int] = {}
    for at, preceding in enumerate(before):
        backend = lowered.backends[at]
        for p in preceding:
            tail = chains[chain_of[p]][-1] == p
            if tail and len(followers[p]) == 1 and lowered.backends[p] is backend and not backend.single:
                chains[chain_of[p]].append(at)
                chain_of[at] = chain_of[p]
                break
        else:
            chain_of[at] = len(chains)
            chains.append([at])
    return [tuple(chain) for chain in sorted(chains, key=lambda chain: chain[-1])]


def _sequence(lowered: Lowered, operations: tuple[int, ...], name: str) -> Sequence:
    subgraph = lowered.subgraph
    inside = frozenset(operations)
    made = [o for at in operations for o in subgraph.operations[at].outputs]
    made_here = frozenset(made)
    read = dict.fromkeys(i for at in operations for i in subgraph.operations[at].used if i not in made_here)
    outputs = (o for o in made if o in subgraph.kept or not inside.issuperset(subgraph.uses.get(o, ())))
    return Sequence(subgraph, operations, tuple(read), tuple(outputs), name)
