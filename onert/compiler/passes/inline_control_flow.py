"""Loops and branches as operations that hold their graphs, where these are known to end and all shapes are known.

    y = While(x) {condition=1, body=2}   -->   y = Loop(x) {condition=subgraph ..., body=subgraph ...}

What a `Call` runs takes its place, and so does the branch of an `If` whose condition is known. A branch that is sure to
refuse is made to refuse with results of the other's types. A backend then sees all that is run, with the shapes of this
very call, and may run it as one. What stays a `While` or an `If` is run by the executor, subgraph by subgraph: a loop
that may never end, so that it can be stopped; shapes that change from round to round; what keeps state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onert.compiler.limits import WORK_OF_A_COMMAND, work_of_a_command
from onert.compiler.rewrite.called_graphs import (
    Enclosed,
    Taken,
    informed,
    inlined,
    own_outputs,
    refusal,
    refusing_like,
    replaced,
    settled_call,
    size,
)
from onert.compiler.rewrite.counts.ends import End, Given, ends_of, entered, given, is_known, leaving, left, unified
from onert.compiler.rewrite.counts.extents import Extents
from onert.compiler.rewrite.effects import is_function
from onert.compiler.rewrite.lists import as_tensors
from onert.compiler.rewrite.trip_counts import ends, grows, known_trips, trips
from onert.ir import CallTypes, Constant, ModelError, Operation, RuleError, Shape, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import Call, If, While
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.shape import static

EVEN_ROUNDS = 1000
"""With fewer rounds allowed, a loop in a loop is left to the executor: its rounds take long, and it counts them all."""

MOST_NESTED = 8
"""How deep graphs may lie in graphs. Models nest two or three; backends descend into them by recursion."""

SETTLED, SETTLED_AGAIN = 2048, 4
"""Operations to which passes may be applied on the way: so many, and each of the model's so many times. What would take
more stays as it is: a subgraph is settled for each combination of shapes, and nested branches can have very many.
"""

AT_ONCE = 16
"""Operations of which types are inferred for what passes cost on one: no passes follow a call that takes its place."""

MOST_WIDENED = 4
"""How often the shapes of a loop's state may be found to need more room."""

MOST_REPEATED = 256
"""Operations of subgraphs that are held more than once: calls in calls may be many more than there are subgraphs."""

Settle = Callable[[Subgraph], Subgraph]
"""The passes, after which types are inferred anew."""


Runs = Callable[[Operation, CallTypes], bool]
"""Whether an operation is run as it is, so that enclosing pays."""


def enclose(
    model: Subgraphs, graph: Subgraph, settle: Settle, runs: Runs, most: int | None, work: int | None = None
) -> Subgraph:
    """A graph of the model, with its loops, which may make `most` rounds, and its branches enclosed.

    With `work` additions allowed for one run, each loop may also make no more rounds than its share of them lets it.
    """
    return _Enclosing(model, settle, runs, most, work).graph(graph)


_Key = tuple[int, tuple[tuple[Shape, tuple[int, ...], tuple[int, ...]], ...], tuple[tuple[int, Constant], ...]]
"""A subgraph, of which shapes it is given what, and which inputs are known."""


class _Enclosing:
    def __init__(self, model: Subgraphs, settle: Settle, runs: Runs, most: int | None, work: int | None) -> None:
        self.model = model
        self._settle = settle
        self.left = SETTLED + SETTLED_AGAIN * sum(len(graph.operations) for graph in model.subgraphs)
        self.depth = 0
        self.loops = 0  # how many loops are around what is looked at
        loops = sum(isinstance(o.op, While) for graph in model.subgraphs for o in graph.operations)
        self.share = None if work is None else work // max(1, loops)
        self.runs = runs
        self.most = most
        self.room = MOST_REPEATED
        self.found: dict[_Key, Subgraph | None] = {}

    def settle(self, graph: Subgraph) -> Subgraph:
        """The graph after the passes."""
        self.left -= 1 + len(graph.operations)
        return self._settle(graph)

    def graph(self, graph: Subgraph) -> Subgraph:
        """A graph after its operations were looked at one after the other: a loop may tell the shapes of the next."""
        given_up: set[tuple[Operation, tuple[TensorType | None, ...]]] = set()
        settled = True  # calls with nothing but other operations between them take their places one after the other
        while True:
            for at, operation in enumerate(graph.operations):
                if not isinstance(operation.op, While | If | Call):
                    continue
                if not settled and not isinstance(operation.op, Call):
                    graph, settled = self.settle(graph), True
                    break
                key = (operation, graph.types(operation).inputs)
                changed = None if key in given_up else self.changed(graph, at)
                if changed is not None:
                    settled = not isinstance(operation.op, Call)
                    graph = self.settle(changed) if settled else changed
                    break
                given_up.add(key)
            else:
                if settled:
                    return graph
                graph, settled = self.settle(graph), True

    def changed(self, graph: Subgraph, at: int) -> Subgraph | None:
        """The graph with an operation enclosed, or with what it calls in its stead; None if it stays."""
        if self.left < 0 or self.depth == MOST_NESTED:
            return None
        operation = graph.operations[at]
        if isinstance(operation.op, Call):
            return self.without_calls(graph, at)
        listed = as_tensors(self.model, graph, at, self.settle) if isinstance(operation.op, While) else None
        if listed is not None:
            self.model, graph = listed
            at = next(
                i
                for i, o in enumerate(graph.operations)
                if o.op.subgraphs == (len(self.model) - 2, len(self.model) - 1)
            )
            operation = graph.operations[at]
        givens = _givens(graph, operation)
        if givens is None:
            return None
        taken = self.stand_in(operation, givens)
        if taken is not None:
            return infer_alone(inlined(graph, {at: taken}))
        enclosed = self.enclosed(graph, operation, givens)
        if enclosed is None:
            return None
        changed, at = replaced(graph, at, givens, enclosed)
        return changed if self.runs(changed.operations[at], changed.types(changed.operations[at])) else None

    def without_calls(self, graph: Subgraph, first: int) -> Subgraph | None:
        """The graph with what is called in the stead of calls, from the `first` to the next loop or branch, so that
        types are inferred once for all of them; None if the first one stays.
        """
        found: dict[int, Taken] = {}
        operations = len(graph.operations)
        for at, operation in enumerate(graph.operations[first:], first):
            if isinstance(operation.op, While | If) or self.left < 0:
                break
            givens = _givens(graph, operation) if isinstance(operation.op, Call) else None
            taken = None if givens is None else self.stand_in(operation, givens)
            if taken is not None:
                found[at] = taken
                operations += len(taken.graph.operations)
                self.left -= 1 + operations // AT_ONCE
            elif at == first:
                return None
        return infer_alone(inlined(graph, found))

    def stand_in(self, operation: Operation, givens: Sequence[Given]) -> Taken | None:
        """What an operation is sure to run once, if it can take its place."""
        settled = settled_call(operation.op, [each.end for each in givens])
        if settled is None:
            return None
        taken = givens[len(givens) - len(self.model[settled].inputs) :]
        try:
            called = self.specialized(settled, ends_of(taken))
        except (ModelError, RuleError):
            return None
        return None if called is None or not (_closed(called) or refusal(called)) else Taken(called, taken)

    def enclosed(self, graph: Subgraph, operation: Operation, givens: Sequence[Given]) -> Enclosed | None:
        """The operation with its graphs in it; None if it stays."""
        try:
            if isinstance(operation.op, While):
                return self.loop(graph, operation.op, givens)
            assert isinstance(operation.op, If)
            condition, *xs = givens
            return None if condition.counts else self.branch(operation.op, ends_of(xs), condition)
        except (ModelError, RuleError):
            return None  # whoever runs the operation says so, with its place

    def branch(self, op: If, ends: Sequence[End], condition: Given) -> Enclosed | None:
        """Both branches, with room for the larger of results of two sizes; one that is sure to refuse has results of
        the types of the other's."""
        found = [self.specialized(index, ends) for index in op.subgraphs]
        refusals = [None if side is None else refusal(side) for side in found]
        sides = [
            None if side is None or refused is not None or not _closed(side) else side
            for side, refused in zip(found, refusals, strict=True)
        ]
        results = [[each.end for each in left(side) or ()] for side in sides if side is not None]
        wanted = [unified(*pair) for pair in zip(results[0], results[-1], strict=True)] if results else []
        gives = [each for each in wanted if each is not None]
        if not results or len(gives) != len(wanted):
            return None
        sides = [None if side is None else self.giving(side, gives) for side in sides]
        for at, refused in enumerate(refusals):
            other = sides[1 - at]
            if refused is not None and other is not None:
                sides[at] = refusing_like(other, refused)
        both = [own_outputs(side) for side in sides if side is not None]
        return Enclosed(Branch(*both), [condition.end, *ends], gives) if len(both) == 2 else None

    def giving(self, graph: Subgraph, ends: Sequence[End]) -> Subgraph:
        """A graph that gives its results so, after the passes where that is something new."""
        found = leaving(graph, ends)
        return graph if found is graph else self.settle(found)

    def loop(self, graph: Subgraph, op: While, givens: Sequence[Given]) -> Enclosed | None:
        fixed = {
            at: each.end.type.data
            for at, (each, i, o) in enumerate(
                zip(givens, self.model[op.body].inputs, self.model[op.body].outputs, strict=True)
            )
            if i == o and each.end.type.data is not None
        }
        starts = state = [each.end for each in givens]
        for _ in range(MOST_WIDENED):
            self.loops += 1
            try:
                condition, body = (self.called(index, state, fixed) for index in op.subgraphs)
            finally:
                self.loops -= 1
            if condition is None or body is None or not all(o.type.is_static for o in condition.operands):
                return None
            if not ends(condition, body):
                return None
            after = left(body)
            if after is None:
                return None
            rounds = trips(condition, body, [each.type for each in starts], _largest(graph, givens))
            most = rounds if self.most is None or rounds is None else min(rounds, self.most)
            now = [_widened(first, old, each.end, most) for first, old, each in zip(starts, state, after, strict=True)]
            wider = [each for each in now if each is not None]
            if len(wider) != len(now):
                return None
            if all(a.axes == b.axes and a.type.shape == b.type.shape for a, b in zip(wider, state, strict=True)):
                break
            state = wider
        else:
            return None
        body = self.giving(body, wider)
        allowed = self.bound(condition, body, rounds)
        if allowed == 0:
            return None
        whole = _whole(condition, body, starts, wider) if rounds is not None else frozenset()
        return Enclosed(Loop(own_outputs(condition), own_outputs(body, keep=True), allowed), wider, wider, whole)

    def bound(self, condition: Subgraph, body: Subgraph, known: int | None) -> int | None:
        """The rounds that a loop may make, None for any number; 0 where the executor is to count them.

        Nothing counts the rounds of loops in loops together once they are enclosed, so their bounds multiplied are what
        a run may take: a loop that makes a `known` number has that, the others share the rest evenly.
        """
        if self.most is None or self.share is None:
            return self.most
        allowed = max(1, self.share // (_work_of_a_run(condition) + _work_of_a_run(body)))
        if not self.loops:
            return min(self.most, allowed)
        if known is not None and 0 < known <= min(self.most, allowed):
            return known
        even = int(allowed ** (1 / (1 + self.loops)))
        return min(self.most, even) if even >= EVEN_ROUNDS else 0

    def called(self, index: int, ends: Sequence[End], fixed: Mapping[int, Constant] | None = None) -> Subgraph | None:
        """A subgraph for such operands, all in it known; None if something stays unknown."""
        found = self.specialized(index, ends, fixed)
        return found if found is not None and _closed(found) else None

    def specialized(
        self, index: int, ends: Sequence[End], fixed: Mapping[int, Constant] | None = None
    ) -> Subgraph | None:
        """A subgraph for such operands; None if it takes others, or was asked for too often.

        `fixed` are the elements of some inputs, by position; they stay inputs that nothing reads.
        """
        taken = tuple((e.type.shape, e.axes, e.like) for e in ends)
        key = (index, taken, tuple(sorted((fixed or {}).items(), key=lambda each: each[0])))
        if key not in self.found:
            self.found[key] = self._specialized(self.model[index], ends, fixed or {})
            return self.found[key]
        again = self.found[key]
        self.room -= 0 if again is None else size(again)
        return again if self.room >= 0 else None

    def _specialized(self, graph: Subgraph, ends: Sequence[End], fixed: Mapping[int, Constant]) -> Subgraph | None:
        if len(graph.inputs) != len(ends):
            return None
        self.depth += 1
        try:
            graph = self.graph(self.settle(informed(entered(graph, ends), fixed)))
        finally:
            self.depth -= 1
        return graph


def _givens(graph: Subgraph, operation: Operation) -> list[Given] | None:
    """What an operation is given; None unless all of it is known."""
    found = [None if i is None else given(graph, i) for i in operation.inputs]
    givens = [each for each in found if each is not None]
    return givens if len(givens) == len(found) else None


def _largest(graph: Subgraph, givens: Sequence[Given]) -> dict[int, int]:
    """How large integers that a loop is given can be, by position, where something tells."""
    extents = Extents(graph, {i: o.known for i, o in enumerate(graph.operands)}, {}, lambda _: {})
    found = {}
    for at, each in enumerate(givens):
        one = extents.one(each.operand) if not each.counts else None
        if one is not None:
            found[at] = one.high
    return found


def _whole(condition: Subgraph, body: Subgraph, starts: Sequence[End], state: Sequence[End]) -> frozenset[int]:
    """The places of the state that grow alike in each round of a loop whose number of rounds is known: in the end all
    that they have room for counts."""
    rounds = known_trips(condition, body, [each.type for each in starts])
    if rounds is None:
        return frozenset()
    counted = [(at, axis) for at, end in enumerate(state) for axis in end.axes]
    found, partly = set[int](), set[int]()
    for place, (at, axis) in enumerate(counted, len(state)):
        start, step = starts[at], grows(body, place)
        room = None if step is None else (start.type.shape[axis] or 0) + rounds * step
        (partly if start.axes or room != state[at].type.shape[axis] else found).add(at)
    return frozenset(found - partly)


def _widened(first: End, now: End, after: End, rounds: int | None) -> End | None:
    """Room for the state of a loop whose round makes `after` of what lies in the room of `now`; None if rounds that
    nobody knows add to it, or too many.

    The room along an axis is the one of `first` and of what one round adds as often as there are rounds.
    """
    found = unified(now, after)
    sizes = list(static(now.type.shape))
    for axis in () if found is None else found.axes:
        had, gets = now.type.shape[axis] or 0, after.type.shape[axis] or 0
        if gets > had:
            if rounds is None:
                return None
            sizes[axis] = max(had, (first.type.shape[axis] or 0) + rounds * (gets - had))
    return None if found is None else found.sized(sizes)


def _closed(graph: Subgraph) -> bool:
    """Whether a run of the graph gives results and does nothing else, and all types are known, but for first entries
    that it gives."""
    if graph.state or not is_known(graph):
        return False
    return all(is_function(o) or isinstance(o.op, Loop | Branch) for o in graph.operations)


def _work_of_a_run(graph: Subgraph) -> int:
    """The additions, and what takes as long, of one run of a graph in which all is known, loops at their longest."""
    total = WORK_OF_A_COMMAND
    for operation in graph.operations:
        op = operation.op
        if isinstance(op, Loop):
            total += (op.most or 1) * (_work_of_a_run(op.condition) + _work_of_a_run(op.body))
        elif isinstance(op, Branch):
            total += max(_work_of_a_run(op.then), _work_of_a_run(op.otherwise))
        else:
            total += work_of_a_command(op, graph.types(operation))
    return total
