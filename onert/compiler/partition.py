"""Partition: which operations a backend gets as one sequence, and in which order sequences run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as List
from heapq import heappop, heappush

from attrs import evolve, frozen

from onert.backend import Backend, Group, Sequence
from onert.ir.value import Value

from .lowering import Lowered

Predecessors = tuple[tuple[int, ...], ...]


@frozen
class Part(Value):
    """A sequence, its backend, and the parts that must have run before it."""

    backend: Backend
    sequence: Sequence
    dependencies: tuple[int, ...]


def partition(lowered: Lowered, before: Predecessors) -> tuple[Part, ...]:
    """Sequences as long as possible, in an order that is right: an order of the operations that changes backends
    seldom, cut where it does. `before` names for each operation those that must have run; a backend that is `single`
    gets one operation a sequence.
    """
    return _parts(lowered, before, _runs(lowered, _order(lowered.backends, before)))


def split(lowered: Lowered, before: Predecessors, parts: List[Part]) -> tuple[Part, ...]:
    """The groups of these parts as sequences that may run at a time: chains without branches, each branch another.

    Groups stay whole, so that every executor runs the same kernels and all give the same results to the bit.
    """
    groups = [group for part in parts for group in part.sequence.groups]
    cut = _chains(lowered, before, groups)
    found = _parts(lowered, before, [tuple(at for group in chain for at in group.operations) for chain in cut])
    return tuple(
        evolve(part, sequence=evolve(part.sequence, groups=chain)) for part, chain in zip(found, cut, strict=True)
    )


def _parts(lowered: Lowered, before: Predecessors, cut: List[tuple[int, ...]]) -> tuple[Part, ...]:
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


def _chains(lowered: Lowered, before: Predecessors, groups: List[Group]) -> list[tuple[Group, ...]]:
    """Groups, in an order that is right, as chains: each next one is all that waits for the one before.

    Nothing else waits for an inner group of a chain, so that chains cannot wait for one another in a circle.
    """
    owner = {at: index for index, group in enumerate(groups) for at in group.operations}
    preceding = [
        sorted({owner[p] for at in group.operations for p in before[at]} - {i}) for i, group in enumerate(groups)
    ]
    waiting = Counter(p for own in preceding for p in own)
    chains: list[list[int]] = []
    chain_of: dict[int, int] = {}
    for index, group in enumerate(groups):
        backend = lowered.backends[group.operations[0]]
        for p in preceding[index]:
            tail = chains[chain_of[p]][-1] == p
            same = lowered.backends[groups[p].operations[0]] is backend and not backend.single
            if tail and waiting[p] == 1 and same:
                chains[chain_of[p]].append(index)
                chain_of[index] = chain_of[p]
                break
        else:
            chain_of[index] = len(chains)
            chains.append([index])
    return [tuple(groups[i] for i in chain) for chain in sorted(chains, key=lambda chain: chain[-1])]


def _sequence(lowered: Lowered, operations: tuple[int, ...], name: str) -> Sequence:
    subgraph = lowered.subgraph
    inside = frozenset(operations)
    made = [o for at in operations for o in subgraph.operations[at].outputs]
    made_here = frozenset(made)
    read = dict.fromkeys(i for at in operations for i in subgraph.operations[at].used if i not in made_here)
    outputs = (o for o in made if o in subgraph.kept or not inside.issuperset(subgraph.uses.get(o, ())))
    return Sequence(subgraph, operations, tuple(read), tuple(outputs), name)
