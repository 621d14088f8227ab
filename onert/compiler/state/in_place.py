"""Updates in place: results that share the memory of the tensor they update.

A variable, an input or a result, together with its reshaped views, is one *version* of some memory. A part update
produces the next version. It may reuse the memory if all readers of the previous version run earlier, and nothing needs
that version beyond the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set

from attrs import field, frozen

from onert.ir import Operation, Subgraph
from onert.ir.ops.data_movement.part_update import Record, Update
from onert.ir.value import Value

Order = Callable[[int], int]
"""Maps the index of an operation in the subgraph to the time at which it runs."""


@frozen
class InPlace(Value):
    """The decisions for a subgraph.

    `roots` maps operands outside the arena without memory of their own to the variable, input or output whose memory
    they share. `updates` are the part updates whose results share their first operand's memory. `must_follow` lists,
    for each of these, the operations that must run before: all other readers of what it overwrites. `pairs` are inputs
    and outputs for which a caller may pass the same memory: no operation reads the input once the output is written.
    """

    roots: Mapping[int, int] = field(factory=dict)
    updates: frozenset[int] = frozenset()
    must_follow: Mapping[int, tuple[int, ...]] = field(factory=dict)
    pairs: tuple[tuple[int, int], ...] = ()


@frozen
class Chain(Value):
    """Successive versions of one memory, each given by its first operand, and the updates between them.

    `origin` is the variable or input that is the first version, None if an operation produces it; `end` is the variable
    or output in whose memory the last version has to be at the end of the run.
    """

    versions: tuple[int, ...]
    updates: tuple[int, ...]
    origin: int | None
    end: int


class Versions:
    """The versions of a subgraph and their readers.

    `can` says whether an operation's backend supports updating in place, `shared` whether two operands are in a memory
    space in which they can share memory.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        order: Order = int,
        can_update: Callable[[int], bool] = lambda at: True,
        shared: Callable[[int, int], bool] = lambda a, b: True,
    ) -> None:
        self.subgraph = subgraph
        self._order = order
        self._can_update = can_update
        self._shared = shared
        self._version: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}
        outputs = frozenset(subgraph.outputs)
        for operation in subgraph.operations:
            viewed = _viewed(subgraph, operation)
            if viewed is not None and operation.outputs[0] not in outputs and shared(viewed, operation.outputs[0]):
                result, version = operation.outputs[0], self.of(viewed)
                self._version[result] = version
                self._members.setdefault(version, [version]).append(result)

    def of(self, operand: int) -> int:
        """The version (its first operand) that an operand is a view of."""
        return self._version.get(operand, operand)

    def members(self, version: int) -> list[int]:
        """A version and all its views, the version first."""
        return self._members.get(version, [version])

    def readers(self, version: int) -> Iterator[int]:
        """The operations that read a version."""
        for member in self.members(version):
            yield from self.subgraph.uses.get(member, ())

    def late_readers(self, update: int) -> list[int]:
        """The readers of the version that a part update replaces that do not run before the update."""
        version = self.of(self._source(update))
        when = self._order(update)
        return [at for at in self.readers(version) if at != update and self._order(at) >= when]

    def is_in_place(self, update: int) -> bool:
        """Whether a part update may write to its first operand's memory."""
        operation = self.subgraph.operations[update]
        source, result = self._source(update), operation.outputs[0]
        members = self.members(self.of(source))
        return (
            self._can_update(update)
            and all(self.subgraph.type(i).is_static for i in operation.used)
            and _fits(self.subgraph, source, result)
            and self._shared(source, result)
            and not any(self.of(i) == self.of(source) for i in operation.used[1:])
            and not any(self.subgraph.operands[i].is_constant for i in members)
            and self.subgraph.kept.isdisjoint(members)
            and not self.late_readers(update)
        )

    def _source(self, update: int) -> int:
        return self.subgraph.operations[update].used[0]

    def chain(self, last: int, end: int) -> Chain | None:
        """The chain that ends with the version of operand `last`; None if it has no update, or one that cannot be made
        in place."""
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
        is_computed = first in self.subgraph.definitions
        return Chain(tuple(reversed(versions)), tuple(reversed(updates)), None if is_computed else first, end)

    def chains(self) -> Iterator[Chain]:
        """The chains that end in the variable they start from, or in an output."""
        graph = self.subgraph
        outputs = frozenset(graph.outputs)
        used: set[int] = set()
        for update in graph.state:
            views = self.members(self.of(update.source))
            found = None if outputs & {*views} else self.chain(update.source, update.variable)
            if found is not None and found.origin == update.variable:
                used.update(found.versions)
                yield found
        for output in dict.fromkeys(graph.outputs):
            found = self.chain(self._viewed_operand(output), output)
            if found is None or not used.isdisjoint(found.versions):
                continue
            last = {*self.members(found.versions[-1])} - {output}
            if last & graph.kept or (found.origin is not None and found.origin not in graph.inputs):
                continue
            used.update(found.versions)
            yield found

    def views_of_ends(self, claimed: Set[int]) -> dict[int, int]:
        """Results that share the memory of an input that they are views of, or of an output that is a view of them.

        Excludes `claimed` versions, versions that an update reads or produces, and operands that outlive a run.
        """
        graph, found = self.subgraph, dict[int, int]()
        for end in dict.fromkeys((*graph.inputs, *graph.outputs)):
            version = self.of(self._viewed_operand(end))
            views = [member for member in self.members(version) if member != end]
            producer = graph.definitions.get(version)
            if (
                (producer is None and version != end)
                or version in {*claimed, *found}
                or not graph.kept.isdisjoint(views)
            ):
                continue
            touching = [
                graph.operations[at].op for at in (*self.readers(version), *(() if producer is None else (producer,)))
            ]
            if not any(isinstance(op, Update) for op in touching):
                found |= dict.fromkeys(views, end)
        return found

    def _viewed_operand(self, output: int) -> int:
        """The operand that an output is a view of; the output itself if it is not a view."""
        at = self.subgraph.definitions.get(output)
        viewed = None if at is None else _viewed(self.subgraph, self.subgraph.operations[at])
        return output if viewed is None or not self._shared(viewed, output) else viewed


def _viewed(subgraph: Subgraph, operation: Operation) -> int | None:
    """The operand that an operation's result is a reshaped view of; None if it is not a view."""
    if not operation.op.shares:
        return None
    source = operation.used[0]
    return source if _fits(subgraph, source, operation.outputs[0]) else None


def _fits(subgraph: Subgraph, source: int, result: int) -> bool:
    a, b = subgraph.type(source), subgraph.type(result)
    static = a.is_static and b.is_static and not (a.dtype.is_handle or b.dtype.is_handle)
    return static and a.nbytes == b.nbytes and bool(b.shape)


def saved_parts(subgraph: Subgraph) -> Mapping[int, int]:
    """For each update, the operation that saves what it overwrites."""
    recorded = {
        operation.outputs[-2]: at
        for at, operation in enumerate(subgraph.operations)
        if isinstance(operation.op, Record)
    }
    found = {}
    for at, operation in enumerate(subgraph.operations):
        if isinstance(operation.op, Update):
            places = operation.op.places(operation.used)  # empty for a scalar tensor
            if places and places[-1] in recorded:
                found[at] = recorded[places[-1]]
    return found


def decide(
    subgraph: Subgraph,
    order: Order = int,
    can_update: Callable[[int], bool] = lambda at: True,
    shared: Callable[[int, int], bool] = lambda a, b: True,
) -> InPlace:
    """Decide what is updated in place if a subgraph's operations run in `order`.

    The contents of a variable or an input are overwritten only if they are saved first, so that a failed run can be
    undone.
    """
    versions = Versions(subgraph, order, can_update, shared)
    if not any(o.op.overwrites for o in subgraph.operations) and not any(o.variable for o in subgraph.operands):
        return InPlace(versions.views_of_ends(frozenset()))
    saved = saved_parts(subgraph)
    roots: dict[int, int] = {}
    updates: set[int] = set()
    pairs = []
    claimed: set[int] = set()
    for chain in versions.chains():
        if chain.origin is not None and not saved.keys() >= {*chain.updates}:
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
    must_follow = {
        at: tuple(sorted({*versions.readers(versions.of(subgraph.operations[at].used[0]))} - {at})) for at in updates
    }
    return InPlace({i: root for i, root in roots.items() if i != root}, frozenset(updates), must_follow, tuple(pairs))
