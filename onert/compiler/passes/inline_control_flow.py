"""Turn loops and branches into operations that enclose their graphs, if all loops end and all shapes are known.

    y = While(x) {condition=1, body=2}   -->   y = Loop(x) {condition=subgraph ..., body=subgraph ...}

A `Call` is replaced by the called graph, an `If` with a known condition by its branch, and a loop of one round by its
body. A branch that is certain to fail becomes one that fails with results of the other branch's types. A backend then
sees all that runs, with the shapes of this particular call, and may run it as one. The executor runs what stays a
`While` or an `If`, subgraph by subgraph: loops that may never end if nothing limits their rounds, shapes that change
from round to round, and state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onert.compiler.limits import COMMAND_WORK, MOVED_BYTE_WORK, native_work
from onert.compiler.rewrite.called_graphs import (
    Enclosed,
    Inlined,
    certain_call,
    inlined,
    refusal,
    refusing_like,
    size,
    with_constants,
    with_copied_outputs,
    with_enclosed,
    without_copies,
)
from onert.compiler.rewrite.counts.counted_types import (
    CountedOperand,
    CountedType,
    common_type,
    counted_operand,
    counted_types,
    is_known,
    outputs_of,
    with_inputs,
    with_outputs,
)
from onert.compiler.rewrite.counts.extents import Extents
from onert.compiler.rewrite.effects import is_function
from onert.compiler.rewrite.loops.growing_state import filled, widened
from onert.compiler.rewrite.loops.invariants import (
    constant_state,
    hoisted,
    passed_through,
    returning_inputs,
    without_results,
)
from onert.compiler.rewrite.loops.lists import as_tensors
from onert.compiler.rewrite.loops.ranges import with_ranges
from onert.compiler.rewrite.loops.repeated import with_repetitions
from onert.compiler.rewrite.loops.round_limits import RoundLimits
from onert.compiler.rewrite.loops.round_work import unmoved
from onert.compiler.rewrite.loops.single_round import makes_one_round
from onert.compiler.rewrite.loops.tensor_lists import with_tables
from onert.compiler.rewrite.loops.trip_counts import changes_nothing, most_trips, terminates
from onert.compiler.rewrite.loops.unread_state import with_first_values
from onert.ir import CallTypes, Constant, ModelError, Operation, RuleError, Shape, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import Call, If, While
from onert.ir.ops.control_flow.enclosed import Branch, Loop

MOST_NESTED = 8
"""How deep graphs may be nested. Models nest two or three; backends process them recursively."""

PASS_BUDGET, PASS_BUDGET_FACTOR = 2048, 4
"""The budget of operations that passes may process: a floor, and a factor for the model's operations. Control flow that
exceeds it stays as it is, since a subgraph is settled for each combination of shapes, and nested branches can have very
many."""

INFERENCE_DISCOUNT = 16
"""Type inference costs this much less per operation than passes. A graph that replaces a call is only inferred."""

MOST_WIDENED = 4
"""How often the shapes of a loop's state may be widened."""

MOST_REPEATED = 256
"""The most operations of subgraphs that are enclosed more than once: nested calls multiply the subgraphs."""

Simplify = Callable[[Subgraph], Subgraph]
"""Applies the passes and infers types again."""

Steps = tuple[Simplify, Simplify]
"""The passes alone; and the passes, after which operations that no backend runs are decomposed."""


Runs = Callable[[Operation, CallTypes], bool]
"""Whether a backend runs an operation as it is, so that enclosing is worthwhile."""


def enclose(
    model: Subgraphs, graph: Subgraph, steps: Steps, runs: Runs, most: int | None, work: int | None = None
) -> Subgraph:
    """A graph of the model with its loops and branches enclosed. A loop may make at most `most` rounds.

    If one run is limited to `work` additions, each loop's rounds are also limited by its share of them.
    """
    return _Enclosing(model, steps, runs, most, work).graph(graph)


_Key = tuple[int, tuple[tuple[Shape, tuple[int, ...], tuple[int, ...]], ...], tuple[tuple[int, Constant], ...]]
"""A subgraph, the shapes of its operands, and the inputs that are constants."""


class _Enclosing:
    def __init__(self, model: Subgraphs, steps: Steps, runs: Runs, most: int | None, work: int | None) -> None:
        self.model = model
        self._simplify, self._prepare = steps
        self.budget = PASS_BUDGET + PASS_BUDGET_FACTOR * sum(len(graph.operations) for graph in model.subgraphs)
        self.depth = 0
        loops = sum(isinstance(o.op, While) for graph in model.subgraphs for o in graph.operations)
        self.limits = RoundLimits(most, work, loops)
        self.runs = runs
        self.repeat_budget = MOST_REPEATED
        self.specializations: dict[_Key, Subgraph | None] = {}

    def simplify(self, graph: Subgraph) -> Subgraph:
        """The graph after the passes."""
        self.budget -= 1 + len(graph.operations)
        return self._simplify(graph)

    def prepare(self, graph: Subgraph) -> Subgraph:
        """The graph after the passes, with operations decomposed."""
        self.budget -= 1 + len(graph.operations)
        return self._prepare(graph)

    def graph(self, graph: Subgraph) -> Subgraph:
        """A graph after its operations were processed in order: one loop may determine the shapes of the next."""
        unchanged: set[tuple[Operation, tuple[TensorType | None, ...]]] = set()
        is_simplified = True  # False between the inlining of consecutive calls, so that passes run once for all of them
        while True:
            for at, operation in enumerate(graph.operations):
                if not isinstance(operation.op, While | If | Call):
                    continue
                if not is_simplified and not isinstance(operation.op, Call):
                    graph, is_simplified = self.prepare(graph), True
                    break
                key = (operation, graph.types(operation).inputs)
                changed = None if key in unchanged else self.changed(graph, at)
                if changed is not None:
                    is_simplified = not isinstance(operation.op, Call)
                    graph = self.prepare(changed) if is_simplified else changed
                    break
                unchanged.add(key)
            else:
                if is_simplified:
                    return graph
                graph, is_simplified = self.prepare(graph), True

    def changed(self, graph: Subgraph, at: int) -> Subgraph | None:
        """The graph with an operation enclosed or replaced by what it calls; None if it stays."""
        if self.budget < 0 or self.depth == MOST_NESTED:
            return None
        operation = graph.operations[at]
        if isinstance(operation.op, Call):
            return self.inline_calls(graph, at)
        if isinstance(operation.op, While):
            repeated = with_repetitions(self.model, graph, at, self.prepare)
            replaced = repeated or with_ranges(self.model, graph, at, self.simplify)
            if replaced is not None:
                return replaced
        listed = None
        if isinstance(operation.op, While):
            listed = with_tables(self.model, graph, at, self.prepare) or as_tensors(self.model, graph, at, self.prepare)
        if listed is not None:
            self.model, graph = listed
            at = next(
                i
                for i, o in enumerate(graph.operations)
                if o.op.subgraphs == (len(self.model) - 2, len(self.model) - 1)
            )
            operation = graph.operations[at]
        operands = _counted_operands(graph, operation)
        if operands is None:
            return None
        inlined_call = self.inlinable(operation, operands)
        if inlined_call is not None:
            return infer_alone(inlined(graph, {at: inlined_call}))
        graph = with_first_values(self.model, graph, at, operands, self.specialized, self.prepare)
        operation, operands = graph.operations[at], _counted_operands(graph, graph.operations[at]) or operands
        enclosed = self.enclosed(graph, operation, operands)
        if enclosed is None:
            return None
        changed, at = hoisted(*with_enclosed(graph, at, operands, enclosed))
        return changed if self.runs(changed.operations[at], changed.types(changed.operations[at])) else None

    def inline_calls(self, graph: Subgraph, first: int) -> Subgraph | None:
        """The graph with all calls, from the `first` to the next loop or branch, replaced by what they call, so that
        types are inferred only once; None if the first call stays.
        """
        found: dict[int, Inlined] = {}
        operations = len(graph.operations)
        for at, operation in enumerate(graph.operations[first:], first):
            if isinstance(operation.op, While | If) or self.budget < 0:
                break
            operands = _counted_operands(graph, operation) if isinstance(operation.op, Call) else None
            inlined_call = None if operands is None else self.inlinable(operation, operands)
            if inlined_call is not None:
                found[at] = inlined_call
                operations += len(inlined_call.graph.operations)
                self.budget -= 1 + operations // INFERENCE_DISCOUNT
            elif at == first:
                return None
        return infer_alone(inlined(graph, found))

    def inlinable(self, operation: Operation, operands: Sequence[CountedOperand]) -> Inlined | None:
        """The subgraph that an operation is certain to run exactly once, if it can replace the operation."""
        op, index = operation.op, certain_call(operation.op, [each.counted for each in operands])
        if isinstance(op, While) and makes_one_round(self.model, op, [o.counted.type for o in operands], self.prepare):
            index = op.body
        if index is None:
            return None
        passed = operands[len(operands) - len(self.model[index].inputs) :]
        try:
            called = self.settled(index, counted_types(passed))
        except (ModelError, RuleError):
            return None
        return None if called is None or not (_closed(called) or refusal(called)) else Inlined(called, passed)

    def enclosed(self, graph: Subgraph, operation: Operation, operands: Sequence[CountedOperand]) -> Enclosed | None:
        """The operation enclosing its graphs; None if it stays."""
        try:
            if isinstance(operation.op, While):
                return self.loop(graph, operation.op, operands)
            assert isinstance(operation.op, If)
            condition, *xs = operands
            return None if condition.counts else self.branch(operation.op, counted_types(xs), condition)
        except (ModelError, RuleError):
            return None  # the run will report the error with the operation's location

    def branch(self, op: If, operands: Sequence[CountedType], condition: CountedOperand) -> Enclosed | None:
        """Both branches, with room for the larger of two result sizes. A branch that is certain to fail has results of
        the other's types."""
        found = [self.settled(index, operands) for index in op.subgraphs]
        refusals = [None if side is None else refusal(side) for side in found]
        sides = [
            None if side is None or refused is not None or not _closed(side) else side
            for side, refused in zip(found, refusals, strict=True)
        ]
        valid_sides = [side for side in sides if side is not None]
        passed = passed_through(valid_sides, operands)
        sides = [None if side is None else without_results(side, passed) for side in sides]
        outputs = [[each.counted for each in outputs_of(side) or ()] for side in sides if side is not None]
        common = [common_type(*pair) for pair in zip(outputs[0], outputs[-1], strict=True)] if outputs else []
        results = [each for each in common if each is not None]
        if not outputs or len(results) != len(common):
            return None
        sides = [None if side is None else self.with_results(side, results) for side in sides]
        for at, refused in enumerate(refusals):
            valid = sides[1 - at]
            if refused is not None and valid is not None:
                sides[at] = refusing_like(valid, refused)
        graphs = [with_copied_outputs(side) for side in sides if side is not None]
        if len(graphs) != 2:
            return None
        return Enclosed(Branch(*graphs), [condition.counted, *operands], results, passed=passed)

    def with_results(self, graph: Subgraph, results: Sequence[CountedType]) -> Subgraph:
        """A graph with its results as `terminates` describes, after the passes if that changed it."""
        found = with_outputs(graph, results)
        return graph if found is graph else self.prepare(found)

    def loop(self, graph: Subgraph, op: While, operands: Sequence[CountedOperand]) -> Enclosed | None:
        starts = state = [each.counted for each in operands]
        types = [each.type for each in starts]
        largest = _upper_bounds(graph, operands)
        estimate = most_trips(self.model[op.condition], self.model[op.body], types, largest)
        for _ in range(MOST_WIDENED):
            with self.limits.inside(estimate):
                condition, body = self.round(op, operands, state)
            if condition is None or body is None or not all(o.type.is_static for o in condition.operands):
                return None
            if not terminates(condition, body) and (not self.limits.limited or changes_nothing(body)):
                return None
            after = outputs_of(body)
            if after is None:
                return None
            rounds = most_trips(condition, body, types, largest)
            most = self.limits.bounded(rounds)
            found = [
                widened(first, old, each.counted, most) for first, old, each in zip(starts, state, after, strict=True)
            ]
            wider = [each for each in found if each is not None]
            if len(wider) != len(found):
                return None
            if all(a.axes == b.axes and a.type.shape == b.type.shape for a, b in zip(wider, state, strict=True)):
                break
            state = wider
        else:
            return None
        body = self.with_results(body, wider)
        allowed = self.limits.most_rounds(_run_work(condition) + _run_work(body, is_body=True), rounds)
        if allowed == 0:
            return None
        whole = filled(condition, body, starts, wider) if rounds is not None else frozenset()
        return Enclosed(
            Loop(with_copied_outputs(condition), with_copied_outputs(body, keep=True), allowed), wider, wider, whole
        )

    def round(
        self, op: While, operands: Sequence[CountedOperand], state: Sequence[CountedType]
    ) -> tuple[Subgraph | None, Subgraph | None]:
        """A loop's condition and body for a state. They read the constants among the operands that no round changes:
        the passes may show that there are more of these, since a branch returns them too."""
        given = [each.counted.type.data for each in operands]
        fixed = constant_state(given, self.model[op.body])
        while True:
            condition, body = (self.called(index, state, fixed) for index in op.subgraphs)
            if body is None:
                return condition, None
            known = constant_state(given, body)
            if known.keys() <= fixed.keys():
                return condition, returning_inputs(body, fixed)
            fixed |= known

    def called(
        self, index: int, types: Sequence[CountedType], fixed: Mapping[int, Constant] | None = None
    ) -> Subgraph | None:
        """A subgraph specialised to such operands, with everything in it known; None if something stays unknown."""
        found = self.specialized(index, types, fixed)
        return found if found is not None and _closed(found) else None

    def settled(self, index: int, types: Sequence[CountedType]) -> Subgraph | None:
        """A subgraph specialised to such operands, and to the constants among them if something else stays unknown:
        they may be sizes."""
        found = self.specialized(index, types)
        fixed = {at: each.type.data for at, each in enumerate(types) if each.type.data is not None}
        if found is None or not fixed or _closed(found) or refusal(found):
            return found
        return self.specialized(index, types, fixed) or found

    def specialized(
        self, index: int, types: Sequence[CountedType], fixed: Mapping[int, Constant] | None = None
    ) -> Subgraph | None:
        """A subgraph specialised to such operands; None if it does not accept them, or was requested too often.

        `fixed` has the values of some inputs, by position; these stay inputs, which nothing reads.
        """
        shapes = tuple((e.type.shape, e.axes, e.same_counts) for e in types)
        key = (index, shapes, tuple(sorted((fixed or {}).items(), key=lambda each: each[0])))
        if key not in self.specializations:
            self.specializations[key] = self._specialize(self.model[index], types, fixed or {})
            return self.specializations[key]
        specialization = self.specializations[key]
        self.repeat_budget -= 0 if specialization is None else size(specialization)
        return specialization if self.repeat_budget >= 0 else None

    def _specialize(
        self, graph: Subgraph, types: Sequence[CountedType], fixed: Mapping[int, Constant]
    ) -> Subgraph | None:
        if len(graph.inputs) != len(types):
            return None
        self.depth += 1
        try:
            return without_copies(self.graph(self.prepare(with_constants(with_inputs(graph, types), fixed))))
        finally:
            self.depth -= 1


def _counted_operands(graph: Subgraph, operation: Operation) -> list[CountedOperand] | None:
    """An operation's operands; None unless all are known."""
    found = [None if i is None else counted_operand(graph, i) for i in operation.inputs]
    operands = [each for each in found if each is not None]
    return operands if len(operands) == len(found) else None


def _upper_bounds(graph: Subgraph, operands: Sequence[CountedOperand]) -> dict[int, int]:
    """Upper bounds, if known, of the integers among a loop's operands, by position."""
    extents = Extents(graph, {i: o.known for i, o in enumerate(graph.operands)}, {}, lambda _: {})
    found = {}
    for at, each in enumerate(operands):
        extent = extents.one(each.operand) if not each.counts else None
        if extent is not None:
            found[at] = extent.high
    return found


def _closed(graph: Subgraph) -> bool:
    """Whether the graph has no side effects and all types are known, except for first entries that it returns."""
    if graph.state or not is_known(graph):
        return False
    return all(is_function(o) or isinstance(o.op, Loop | Branch) for o in graph.operations)


def _run_work(graph: Subgraph, *, is_body: bool = False) -> int:
    """The work of one run, in additions, of a graph in which everything is known, with loops at their bounds."""
    total = COMMAND_WORK
    for operation in graph.operations:
        op = operation.op
        if isinstance(op, Loop):
            total += (op.most or 1) * (_run_work(op.condition) + _run_work(op.body, is_body=True))
        elif isinstance(op, Branch):
            total += max(_run_work(op.then), _run_work(op.otherwise))
        else:
            total += native_work(op, graph.types(operation))
            total -= MOVED_BYTE_WORK * unmoved(graph, operation, is_body=is_body)
    return total
