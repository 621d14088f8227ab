"""Partitioning: which operations form one sequence of a backend, and in which order sequences run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from collections.abc import Sequence as List

from attrs import evolve, frozen

from onert.backend import Backend, Group, Sequence, Settings
from onert.ir.analysis.ordering import around, in_order
from onert.ir.value import Value

from .linearize import Timeline
from .lowering import Lowered

Predecessors = tuple[tuple[int, ...], ...]


@frozen
class Part(Value):
    """A sequence, its backend, and the parts that must have run before it."""

    backend: Backend
    sequence: Sequence
    dependencies: tuple[int, ...]


@frozen
class Steps(Value):
    """Parts in a valid execution order, and the settings for each part's backend.

    `timeline` and `needs` are for the memory plan: the moments, and for each step the steps that must finish before it;
    `needs` is None if steps run strictly one after the other.
    """

    parts: tuple[Part, ...]
    settings: tuple[Settings, ...]
    timeline: Timeline
    needs: tuple[tuple[int, ...], ...] | None


def partition(lowered: Lowered, before: Predecessors) -> tuple[Part, ...]:
    """Sequences that are as long as possible, in a valid order: the operations are ordered so that the backend rarely
    changes, and cut where it does. `before` lists the predecessors of each operation. A backend that is `single` gets
    one operation per sequence.
    """
    return _parts(lowered, before, _runs(lowered, _order(lowered.backends, before)))


def split(lowered: Lowered, before: Predecessors, parts: List[Part], concurrent: bool = False) -> tuple[Part, ...]:
    """The groups of these parts as sequences: chains without branches, with each branch a chain of its own.

    If chains are to run concurrently (`concurrent`), a group that joins branches begins a new chain, so that no branch
    waits for another. Backends that run groups side by side themselves then get sequences with branches: all groups
    with the same predecessors and successors on other backends form one. Groups stay whole, so every executor runs the
    same kernels and all results are bit-identical.
    """
    groups = [group for part in parts for group in part.sequence.groups]
    owners = [lowered.backends[group.operations[0]] for group in groups]
    needs = _needs(before, groups)
    chains = _chains(owners, needs, concurrent)
    cut = [tuple(groups[at] for at in chain) for chain in chains]
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
    """A topological order of all operations: next is always the first ready one, in file order, on the current backend;
    the backend changes only if none is ready there."""
    return tuple(in_order(before, kinds=[backend.name for backend in backends]))


def _runs(lowered: Lowered, order: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The order, cut where the backend changes."""
    runs: list[list[int]] = []
    for at in order:
        backend = lowered.backends[at]
        if runs and not backend.single and lowered.backends[runs[-1][-1]] is backend:
            runs[-1].append(at)
        else:
            runs.append([at])
    return [tuple(run) for run in runs]


def _needs(before: Predecessors, groups: List[Group]) -> list[list[int]]:
    """For each group, the groups that must run before it."""
    owner = {at: index for index, group in enumerate(groups) for at in group.operations}
    return [sorted({owner[p] for at in group.operations for p in before[at]} - {i}) for i, group in enumerate(groups)]


def _chains(owners: List[Backend], needs: List[List[int]], concurrent: bool) -> list[list[int]]:
    """Groups joined to sequences, in a valid order.

    In a chain each group is the only one that waits for the group before it. Nothing else waits for an inner group of
    a chain, so chains cannot wait for each other in a cycle. With `concurrent`, groups of `side_by_side` backends are
    joined by equal predecessors and equal successors on other backends: no foreign group lies between two such groups,
    so there is no cycle either.
    """
    dependents = Counter(p for needed in needs for p in needed)
    chains: list[list[int]] = []
    chain_of: dict[int, list[int]] = {}
    by_neighbours: dict[Hashable, list[int]] = {}
    ancestors, successors = around(needs)
    foreign = _foreign(owners, ancestors, successors) if concurrent else []

    def continued(index: int) -> Iterator[list[int]]:
        """The chains that a group may extend."""
        for p in needs[index]:
            chain = chain_of[p]
            others = sum(1 << q for q in needs[index] if q != p)
            waits_for_others = concurrent and others & ~ancestors[chain[0]]
            same_backend = owners[p] is owners[index] and not owners[p].single
            if same_backend and dependents[p] == 1 and chain[-1] == p and not waits_for_others:
                yield chain

    for index, backend in enumerate(owners):
        if concurrent and backend.side_by_side:
            extended = by_neighbours.setdefault((backend.name, foreign[index]), [])
        else:
            extended = next(continued(index), [])
        if not extended:
            chains.append(extended)
        extended.append(index)
        chain_of[index] = extended
    return _in_order(chains, needs)


def _foreign(owners: List[Backend], before: List[int], after: List[int]) -> list[tuple[int, int]]:
    """For each group, its predecessors and its successors on other backends, as bit sets."""
    every = dict.fromkeys(backend.name for backend in owners)
    others = {name: sum(1 << i for i, backend in enumerate(owners) if backend.name != name) for name in every}
    return [(b & others[o.name], a & others[o.name]) for o, b, a in zip(owners, before, after, strict=True)]


def _in_order(chains: List[list[int]], needs: List[List[int]]) -> list[list[int]]:
    """Sequences of groups in topological order; of those that are ready, the one whose last group comes first."""
    owner = {index: number for number, chain in enumerate(chains) for index in chain}
    waits = [{owner[p] for index in chain for p in needs[index]} - {n} for n, chain in enumerate(chains)]
    return [chains[number] for number in in_order(waits, lambda number: chains[number][-1])]


def _sequence(lowered: Lowered, operations: tuple[int, ...], name: str) -> Sequence:
    subgraph = lowered.subgraph
    inside = frozenset(operations)
    results = [o for at in operations for o in subgraph.operations[at].outputs]
    produced = frozenset(results)
    read = dict.fromkeys(i for at in operations for i in subgraph.operations[at].used if i not in produced)
    outputs = (o for o in results if o in subgraph.kept or not inside.issuperset(subgraph.uses.get(o, ())))
    return Sequence(subgraph, operations, tuple(read), tuple(outputs), name)
