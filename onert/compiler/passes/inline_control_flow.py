"""Turn loops and branches into operations that enclose their graphs, if loops are sure to end and shapes are known.

    y = While(x) {condition=1, body=2}   -->   y = Loop(x) {condition=subgraph ..., body=subgraph ...}

A `Call` is replaced by the called graph, and an `If` with a known condition by its branch. A branch that is certain to
fail becomes one that fails with results of the other branch's types. A backend then sees all that runs, with the shapes
of this particular call, and may run it as one. The executor runs what stays a `While` or an `If`, subgraph by subgraph:
loops that may never end (so that they can be stopped), shapes that change from round to round, and state.
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
"""If a nested loop may make fewer rounds than this, it is left to the executor: such rounds are long, and the executor
counts the rounds of all loops."""

MOST_NESTED = 8
"""How deep graphs may be nested. Models nest two or three; backends process them recursively."""

SETTLED, SETTLED_AGAIN = 2048, 4
"""The budget of operations that passes may process: a floor, and a factor for the model's operations. Control flow that
exceeds it stays as it is, since a subgraph is settled for each combination of shapes, and nested branches can have very
many."""

AT_ONCE = 16
"""Type inference costs this much less per operation than passes. A graph that replaces a call is only inferred."""

MOST_WIDENED = 4
"""How often the shapes of a loop's state may be widened."""

MOST_REPEATED = 256
"""The most operations of subgraphs that are enclosed more than once: nested calls multiply the subgraphs."""

Settle = Callable[[Subgraph], Subgraph]
"""Applies the passes and infers types again."""


Runs = Callable[[Operation, CallTypes], bool]
"""Whether a backend runs an operation as it is, so that enclosing is worthwhile."""


def enclose(
    model: Subgraphs, graph: Subgraph, settle: Settle, runs: Runs, most: int | None, work: int | None = None
) -> Subgraph:
    """A graph of the model with its loops and branches enclosed. A loop may make at most `most` rounds.

    If one run is limited to `work` additions, each loop's rounds are also limited by its share of them.
    """
    return _Enclosing(model, settle, runs, most, work).graph(graph)


_Key = tuple[int, tuple[tuple[Shape, tuple[int, ...], tuple[int, ...]], ...], tuple[tuple[int, Constant], ...]]
"""A subgraph, the shapes of its operands, and the inputs that are constants."""


class _Enclosing:
    def __init__(self, model: Subgraphs, settle: Settle, runs: Runs, most: int | None, work: int | None) -> None:
        self.model = model
        self._settle = settle
        self.left = SETTLED + SETTLED_AGAIN * sum(len(graph.operations) for graph in model.subgraphs)
        self.depth = 0
        self.loops = 0  # how many loops enclose the current graph
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
        """A graph after its operations were processed in order: one loop may determine the shapes of the next."""
        given_up: set[tuple[Operation, tuple[TensorType | None, ...]]] = set()
        settled = True  # False between the inlining of consecutive calls, so that passes run once for all of them
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
        """The graph with an operation enclosed or replaced by what it calls; None if it stays."""
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
        """The graph with all calls, from the `first` to the next loop or branch, replaced by what they call, so that
        types are inferred only once; None if the first call stays.
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
        """The subgraph that an operation is certain to run exactly once, if it can replace the operation."""
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
        """The operation enclosing its graphs; None if it stays."""
        try:
            if isinstance(operation.op, While):
                return self.loop(graph, operation.op, givens)
            assert isinstance(operation.op, If)
            condition, *xs = givens
            return None if condition.counts else self.branch(operation.op, ends_of(xs), condition)
        except (ModelError, RuleError):
            return None  # the run will report the error with the operation's location

    def branch(self, op: If, ends: Sequence[End], condition: Given) -> Enclosed | None:
        """Both branches, with room for the larger of two result sizes. A branch that is certain to fail has results of
        the other's types."""
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
        """A graph with its results as `ends` describes, after the passes if that changed it."""
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
        """The most rounds that a loop may make; None if unlimited, 0 if the executor has to count them.

        Once nested loops are enclosed, nothing counts their rounds together, so the product of their bounds must stay
        within the limit of a run: a loop with a `known` number of rounds has that bound, the others share evenly.
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
        """A subgraph specialised to such operands, with everything in it known; None if something stays unknown."""
        found = self.specialized(index, ends, fixed)
        return found if found is not None and _closed(found) else None

    def specialized(
        self, index: int, ends: Sequence[End], fixed: Mapping[int, Constant] | None = None
    ) -> Subgraph | None:
        """A subgraph specialised to such operands; None if it does not accept them, or was requested too often.

        `fixed` has the values of some inputs, by position; these stay inputs, which nothing reads.
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
    """An operation's operands; None unless all are known."""
    found = [None if i is None else given(graph, i) for i in operation.inputs]
    givens = [each for each in found if each is not None]
    return givens if len(givens) == len(found) else None


def _largest(graph: Subgraph, givens: Sequence[Given]) -> dict[int, int]:
    """Upper bounds, if known, of the integers among a loop's operands, by position."""
    extents = Extents(graph, {i: o.known for i, o in enumerate(graph.operands)}, {}, lambda _: {})
    found = {}
    for at, each in enumerate(givens):
        one = extents.one(each.operand) if not each.counts else None
        if one is not None:
            found[at] = one.high
    return found


def _whole(condition: Subgraph, body: Subgraph, starts: Sequence[End], state: Sequence[End]) -> frozenset[int]:
    """The positions in the state that grow by the same amount in each round of a loop with a known number of rounds:
    at the end their room is filled completely."""
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
    """Room for a loop's state, of which one round turns `now` into `after`; None if it grows in an unknown number of
    rounds, or too much.

    The room along an axis is that of `first`, plus what one round adds times the number of rounds.
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
    """Whether the graph has no side effects and all types are known, except for first entries that it returns."""
    if graph.state or not is_known(graph):
        return False
    return all(is_function(o) or isinstance(o.op, Loop | Branch) for o in graph.operations)


def _work_of_a_run(graph: Subgraph) -> int:
    """The work of one run, in additions, of a graph in which everything is known, with loops at their bounds."""
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
