"""What is updated in place: results of updates that have the memory of the tensor that they update.

A variable, an input or a result is one *version* of some memory, and so is each of its reshaped views. An update of
parts makes the next version. It may do so in the same memory if everything that reads the version before runs earlier,
and nothing keeps that version beyond the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set

from attrs import field, frozen

from onert.ir import Operation, Subgraph
from onert.ir.ops.data_movement.part_update import Record, Update
from onert.ir.value import Value

Order = Callable[[int], int]
"""When each operation runs, by its index in the subgraph."""


@frozen
class InPlace(Value):
    """The decision for a subgraph.

    `roots` are operands that lie outside of the arena with no memory of their own: where each one lies, a variable, an
    input or an output. `updates` are the part updates whose results lie where their first operands do. `after` names,
    for each of these, what must have run before: all else that reads what it overwrites. `pairs` are inputs and the
    outputs that a caller may let lie in the same memory: nothing reads the input when the output is written.
    """

    roots: Mapping[int, int] = field(factory=dict)
    updates: frozenset[int] = frozenset()
    after: Mapping[int, tuple[int, ...]] = field(factory=dict)
    pairs: tuple[tuple[int, int], ...] = ()


@frozen
class Chain(Value):
    """Versions of one memory, by the operands that they begin with, and the updates between them.

    `origin` is the variable or input that the first version is, None where an operation makes it; `end` is the variable
    or output in whose memory the last one is to be at the end.
    """

    versions: tuple[int, ...]
    updates: tuple[int, ...]
    origin: int | None
    end: int


class Versions:
    """The versions of a subgraph, and what reads each of them.

    `can` says whether an operation may be updated in place as far as who runs it is concerned, `shared` whether two
    operands lie in one memory space that both can share.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        order: Order = int,
        can: Callable[[int], bool] = lambda at: True,
        shared: Callable[[int, int], bool] = lambda a, b: True,
    ) -> None:
        self.subgraph = subgraph
        self._order = order
        self._can = can
        self._shared = shared
        self._version: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}
        outputs = frozenset(subgraph.outputs)
        for operation in subgraph.operations:
            viewed = _viewed(subgraph, operation)
            if viewed is not None and operation.outputs[0] not in outputs and shared(viewed, operation.outputs[0]):
                made, version = operation.outputs[0], self.of(viewed)
                self._version[made] = version
                self._members.setdefault(version, [version]).append(made)

    def of(self, operand: int) -> int:
        """The operand that the version begins with which an operand is a view of."""
        return self._version.get(operand, operand)

    def members(self, version: int) -> list[int]:
        """All views of a version, itself first."""
        return self._members.get(version, [version])

    def readers(self, version: int) -> Iterator[int]:
        """The operations that read a version."""
        for member in self.members(version):
            yield from self.subgraph.uses.get(member, ())

    def late(self, update: int) -> list[int]:
        """What reads the version that a part update replaces, and does not run before it."""
        version = self.of(self._source(update))
        when = self._order(update)
        return [at for at in self.readers(version) if at != update and self._order(at) >= when]

    def is_in_place(self, update: int) -> bool:
        """Whether a part update may write to its first operand's memory."""
        operation = self.subgraph.operations[update]
        source, result = self._source(update), operation.outputs[0]
        members = self.members(self.of(source))
        return (
            self._can(update)
            and all(self.subgraph.type(i).is_static for i in operation.used)
            and _fits(self.subgraph, source, result)
            and self._shared(source, result)
            and not any(self.of(i) == self.of(source) for i in operation.used[1:])
            and not any(self.subgraph.operands[i].is_constant for i in members)
            and self.subgraph.kept.isdisjoint(members)
            and not self.late(update)
        )

    def _source(self, update: int) -> int:
        return self.subgraph.operations[update].used[0]

    def chain(self, last: int, end: int) -> Chain | None:
        """The chain that ends in the version of operand `last`, as far as its updates are in place; None if it has
        no update, or one that is not."""
        versions, updates = [self.of(last)], []
        while True:
            at = self.subgraph.definitions.get(versions[-1])
            if at is None or not isinstance(self.subgraph.operations[at].op, Update):
                break
            updates.append(at)
            versions.append(self.of(self._source(at)))
        if not updates or not all(map(self.is_in_place, updates)):
            return None
        first = versions[-1]
        made = first in self.subgraph.definitions
        return Chain(tuple(reversed(versions)), tuple(reversed(updates)), None if made else first, end)

    def chains(self) -> Iterator[Chain]:
        """What ends in a variable that it begins with, or in an output."""
        graph = self.subgraph
        outputs = frozenset(graph.outputs)
        taken: set[int] = set()
        for update in graph.state:
            views = self.members(self.of(update.source))
            found = None if outputs & {*views} else self.chain(update.source, update.variable)
            if found is not None and found.origin == update.variable:
                taken.update(found.versions)
                yield found
        for output in dict.fromkeys(graph.outputs):
            found = self.chain(self._before(output), output)
            if found is None or not taken.isdisjoint(found.versions):
                continue
            last = {*self.members(found.versions[-1])} - {output}
            if last & graph.kept or (found.origin is not None and found.origin not in graph.inputs):
                continue
            taken.update(found.versions)
            yield found

    def views_of_ends(self, claimed: Set[int]) -> dict[int, int]:
        """Which results lie where an input does that they are views of, or where an output does that is a view of them.

        None of `claimed` versions, nor of those that an update reads or makes, nor what outlives a run.
        """
        graph, found = self.subgraph, dict[int, int]()
        for end in dict.fromkeys((*graph.inputs, *graph.outputs)):
            version = self.of(self._before(end))
            views = [member for member in self.members(version) if member != end]
            made = graph.definitions.get(version)
            if (made is None and version != end) or version in {*claimed, *found} or not graph.kept.isdisjoint(views):
                continue
            touching = [graph.operations[at].op for at in (*self.readers(version), *(() if made is None else (made,)))]
            if not any(isinstance(op, Update) for op in touching):
                found |= dict.fromkeys(views, end)
        return found

    def _before(self, output: int) -> int:
        """The operand that an output is a view of, itself if it is none."""
        at = self.subgraph.definitions.get(output)
        viewed = None if at is None else _viewed(self.subgraph, self.subgraph.operations[at])
        return output if viewed is None or not self._shared(viewed, output) else viewed


def _viewed(subgraph: Subgraph, operation: Operation) -> int | None:
    """The operand of which an operation's result is the same memory in another shape; None if it is none."""
    if not operation.op.shares:
        return None
    source = operation.used[0]
    return source if _fits(subgraph, source, operation.outputs[0]) else None


def _fits(subgraph: Subgraph, source: int, result: int) -> bool:
    a, b = subgraph.type(source), subgraph.type(result)
    plain = a.is_static and b.is_static and not (a.dtype.is_handle or b.dtype.is_handle)
    return plain and a.nbytes == b.nbytes and bool(b.shape)


def records(subgraph: Subgraph) -> Mapping[int, int]:
    """The operation that keeps what each update overwrites, by the update."""
    keeping = {
        operation.outputs[-2]: at
        for at, operation in enumerate(subgraph.operations)
        if isinstance(operation.op, Record)
    }
    found = {}
    for at, operation in enumerate(subgraph.operations):
        if isinstance(operation.op, Update):
            places = operation.op.places(operation.used)  # none in a tensor of no dimensions
            if places and places[-1] in keeping:
                found[at] = keeping[places[-1]]
    return found


def decide(
    subgraph: Subgraph,
    order: Order = int,
    can: Callable[[int], bool] = lambda at: True,
    shared: Callable[[int, int], bool] = lambda a, b: True,
) -> InPlace:
    """What of a subgraph is updated in place if its operations run in `order`.

    What a variable or an input holds is overwritten only where a record is kept of it, so that a run that fails can be
    undone.
    """
    versions = Versions(subgraph, order, can, shared)
    if not any(o.op.overwrites for o in subgraph.operations) and not any(o.variable for o in subgraph.operands):
        return InPlace(versions.views_of_ends(frozenset()))
    kept = records(subgraph)
    roots: dict[int, int] = {}
    updates: set[int] = set()
    pairs = []
    claimed: set[int] = set()
    for chain in versions.chains():
        if chain.origin is not None and not kept.keys() >= {*chain.updates}:
            continue
        updates.update(chain.updates)
        claimed.update(chain.versions)
        for number, version in enumerate(chain.versions):
            root = chain.end if number or chain.origin is None else chain.origin
            roots |= dict.fromkeys(versions.members(version), root)
        if chain.origin is not None and chain.end != chain.origin:
            pairs.append((chain.origin, chain.end))
    for index, operand in enumerate(subgraph.operands):
        views = versions.members(index)
        if operand.variable and index not in claimed and subgraph.kept.isdisjoint(views[1:]):
            roots |= dict.fromkeys(views, index)
    roots |= versions.views_of_ends(claimed)
    for at, operation in enumerate(subgraph.operations):
        if at in updates or not operation.op.overwrites:
            continue
        source = versions.of(operation.used[0])
        made = source in subgraph.definitions and source not in claimed
        if made and operation.outputs[0] not in subgraph.outputs and versions.is_in_place(at):
            updates.add(at)
    after = {
        at: tuple(sorted({*versions.readers(versions.of(subgraph.operations[at].used[0]))} - {at})) for at in updates
    }
    return InPlace({i: root for i, root in roots.items() if i != root}, frozenset(updates), after, tuple(pairs))
