"""A compiled network as indivisible units: fusion groups, and operations that must stay together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, frozen

from onert.backend import Program
from onert.compiler.rewrite.effects import operation_effect, subgraph_effects
from onert.ir import Effect, Operation, StateUpdate, Subgraph, Subgraphs
from onert.ir.analysis.ordering import in_order
from onert.ir.ops.data_movement.permute import Permute
from onert.ir.process.cached import cached


@frozen(slots=False, eq=False)  # slots would leave no room for the cached properties
class UnitGraph:
    """A network after the compiler's passes, with its operations grouped into `units`.

    Units are in topological order, a unit's operations in the graph's order. `others` are called subgraphs by index.
    """

    subgraph: Subgraph
    others: tuple[Subgraph, ...]
    units: tuple[tuple[int, ...], ...]

    @cached
    def owner(self) -> Mapping[int, int]:
        """The unit of each operation."""
        return {at: unit for unit, operations in enumerate(self.units) for at in operations}

    @cached
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """The values that each unit reads from other units and from the caller, except constants and variables."""
        return tuple(tuple(self._read(unit)) for unit in range(len(self.units)))

    def _read(self, unit: int) -> Iterable[int]:
        graph = self.subgraph
        found: dict[int, None] = {}
        made = {o for at in self.units[unit] for o in graph.operations[at].outputs}
        for at in self.units[unit]:
            for i in graph.operations[at].used:
                operand = graph.operands[i]
                if i not in made and not operand.is_constant and not operand.variable:
                    found[i] = None
        return found

    @cached
    def makes(self) -> tuple[tuple[int, ...], ...]:
        """The values that each unit produces for other units and for the caller."""
        graph, owner = self.subgraph, self.owner
        kept = frozenset(graph.outputs)
        return tuple(
            tuple(
                o
                for at in operations
                for o in graph.operations[at].outputs
                if o in kept or any(owner[user] != unit for user in graph.uses.get(o, ()))
            )
            for unit, operations in enumerate(self.units)
        )

    @cached
    def before(self) -> tuple[frozenset[int], ...]:
        """The units whose results each unit reads."""
        definitions, owner = self.subgraph.definitions, self.owner
        return tuple(frozenset(owner[definitions[v]] for v in read if v in definitions) for read in self.reads)


def unit_graph(program: Program, *, grouped: bool = True) -> UnitGraph:
    """The units of a compiled network. Without `grouped`, fusion groups may be divided.

    Operations stay together if they share state or are ordered by side effects, or if a tensor of dynamic size or with
    handles passes between them. A network with dynamic inputs is a single unit, because it is recompiled for the shapes
    of each request, and its parts would be compiled differently.
    """
    graph, number = _without_permutes(program.main.subgraph)
    others = tuple(routine.subgraph for routine in program.routines)
    groups: list[list[int]] = []
    for step in program.main.steps:
        for group in step.sequence.groups:
            own = [number[at] for at in group.operations if at in number]
            groups += [own] if grouped else [[at] for at in own]
    groups = [group for group in groups if group]
    if grouped and not all(graph.type(operand).is_static for operand in graph.inputs):
        groups = [sorted(at for group in groups for at in group)]
    return UnitGraph(graph, others, _acyclic(graph, _merged(groups, _bound(graph, program, others))))


def _without_permutes(graph: Subgraph) -> tuple[Subgraph, Mapping[int, int]]:
    """The graph without copies between memory spaces, and the new index of each remaining operation."""
    same: dict[int, int] = {}
    number: dict[int, int] = {}
    left: list[Operation] = []
    for at, operation in enumerate(graph.operations):
        if isinstance(operation.op, Permute):
            (source,) = operation.used
            same[operation.outputs[0]] = same.get(source, source)
        else:
            number[at] = len(left)
            left.append(operation)
    if not same:
        return graph, number

    def now(operand: int) -> int:
        return same.get(operand, operand)

    return (
        evolve(
            graph,
            operations=tuple(operation.with_inputs(now) for operation in left),
            outputs=tuple(map(now, graph.outputs)),
            state=tuple(StateUpdate(u.variable, now(u.source)) for u in graph.state),
        ),
        number,
    )


def _bound(graph: Subgraph, program: Program, others: Sequence[Subgraph]) -> list[set[int]]:
    """Sets of operations that must stay together."""
    effects = list(subgraph_effects(Subgraphs(tuple(others))))
    for index, other in enumerate(others):
        if index != program.entry and other.state:
            effects[index] = Effect.WRITE
    stateful = {
        at
        for at, operation in enumerate(graph.operations)
        if operation_effect(operation, effects) is not Effect.NONE
        or any(graph.operands[i].variable for i in operation.used)
    }
    found = [stateful | {graph.definitions[u.source] for u in graph.state if u.source in graph.definitions}]
    for operand, maker in graph.definitions.items():
        type_ = graph.type(operand)
        if not type_.is_static or type_.dtype.is_handle:
            found.append({maker, *graph.uses.get(operand, ())})
    return found


def _merged(groups: Sequence[Sequence[int]], bound: Iterable[Iterable[int]]) -> list[list[int]]:
    """Merge groups that share operations with the same set. A merged group takes the place of its last group."""
    leader = list(range(len(groups)))

    def find(at: int) -> int:
        while leader[at] != at:
            leader[at] = leader[leader[at]]
            at = leader[at]
        return at

    owner = {at: index for index, group in enumerate(groups) for at in group}
    for together in bound:
        places = sorted({find(owner[at]) for at in together})
        for place in places[:-1]:
            leader[place] = places[-1]
    found: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        found.setdefault(find(index), []).extend(group)
    return [found[key] for key in sorted(found)]


def _acyclic(graph: Subgraph, groups: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The groups in topological order, after merging those that form cycles."""
    owner = {at: index for index, group in enumerate(groups) for at in group}
    before = [
        {
            owner[graph.definitions[i]]
            for at in group
            for i in graph.operations[at].used
            if i in graph.definitions and owner[graph.definitions[i]] != index
        }
        for index, group in enumerate(groups)
    ]
    joined = components(before)
    of = {index: number for number, members in enumerate(joined) for index in members}
    waiting = [{of[b] for index in members for b in before[index]} - {n} for n, members in enumerate(joined)]
    order = in_order(waiting, lambda number: min(joined[number]))
    return tuple(tuple(sorted(at for index in joined[number] for at in groups[index])) for number in order)


def components(before: Sequence[Iterable[int]]) -> list[list[int]]:
    """The strongly connected components of a graph (Tarjan 1972, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in range(len(before)):
        if root in index:
            continue
        work = [(root, iter(before[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            following = next((n for n in rest if n not in index or n in on_stack), None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    found.append(stack[cut:])
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(before[following])))
            else:
                low[node] = min(low[node], index[following])
    return found
