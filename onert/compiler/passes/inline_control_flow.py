"""Loops and branches as operations that hold their graphs, where these are known to end and all shapes are known.

    y = While(x) {condition=1, body=2}   -->   y = Loop(x) {condition=subgraph ..., body=subgraph ...}

What a `Call` runs takes its place, and so does the branch of an `If` whose condition is known. A branch that is sure to
refuse is made to refuse with results of the other's types. A backend then sees all that is run, with the shapes of this
very call, and may run it as one. What stays a `While` or an `If` is run by the executor, subgraph by subgraph: a loop
that may never end, so that it can be stopped; shapes that change from round to round; what keeps state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve

from onert.compiler.limits import WORK_OF_A_COMMAND, work_of_a_command
from onert.compiler.rewrite.edit import Edit, compact
from onert.compiler.rewrite.effects import is_function
from onert.compiler.rewrite.trip_counts import ends, trips
from onert.ir import (
    CallTypes,
    Constant,
    ModelError,
    Op,
    Operand,
    Operation,
    RuleError,
    Shape,
    Subgraph,
    Subgraphs,
    TensorType,
)
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import Call, If, While
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.ops.control_flow.refuse import Refuse
from onert.ir.ops.custom import declared
from onert.ir.ops.data_movement.copy import Copy

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
        self.found: dict[tuple[int, tuple[Shape, ...], tuple[tuple[int, Constant], ...]], Subgraph | None] = {}

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
                    graph = self.settle(changed) if settled else self.moved(changed)
                    break
                given_up.add(key)
            else:
                if settled:
                    return graph
                graph, settled = self.settle(graph), True

    def moved(self, graph: Subgraph) -> Subgraph:
        """The graph after a call's operations took its place."""
        self.left -= 1 + len(graph.operations) // AT_ONCE
        return graph

    def changed(self, graph: Subgraph, at: int) -> Subgraph | None:
        """The graph with an operation enclosed, or with what it calls in its stead; None if it stays."""
        if self.left < 0 or self.depth == MOST_NESTED:
            return None
        operation = graph.operations[at]
        types = graph.types(operation).inputs
        given = [t for t in types if t is not None and t.is_static and not t.dtype.is_handle]
        if len(given) != len(operation.inputs):
            return None
        settled = _settled_call(operation.op, given)
        if settled is not None:
            try:
                called = self.specialized(settled, given[len(given) - len(self.model[settled].inputs) :])
            except (ModelError, RuleError):
                return None
            if called is None or not (_closed(called) or refusal(called)):
                return None
            return infer_alone(_inlined(graph, at, called))
        found = self.enclosed(operation, given)
        if found is None:
            return None
        changed = _replaced(graph, at, found)
        return changed if self.runs(found, changed.types(found)) else None

    def enclosed(self, operation: Operation, given: Sequence[TensorType]) -> Operation | None:
        """The operation with its graphs in it; None if it stays."""
        try:
            if isinstance(operation.op, While):
                return self.loop(operation, given)
            assert isinstance(operation.op, If)
            sides = self.sides(operation.op, given[1:])
            ends = [[s.type(o) for o in s.outputs] for s in sides if s is not None]
            if len(ends) != 2 or _plain(ends[0]) != _plain(ends[1]):
                return None
            return evolve(operation, op=Branch(*(own_outputs(s) for s in sides if s is not None)))
        except (ModelError, RuleError):
            return None  # whoever runs the operation says so, with its place

    def sides(self, op: If, given: Sequence[TensorType]) -> list[Subgraph | None]:
        """Both branches; one that is sure to refuse has results of the types of the other's."""
        found = [self.specialized(index, given) for index in op.subgraphs]
        refusals = [None if side is None else refusal(side) for side in found]
        sides = [
            None if side is None or refused is not None or not _closed(side) else side
            for side, refused in zip(found, refusals, strict=True)
        ]
        for at, refused in enumerate(refusals):
            other = sides[1 - at]
            if refused is not None and other is not None:
                sides[at] = _refusing_like(other, refused)
        return sides

    def loop(self, operation: Operation, given: Sequence[TensorType]) -> Operation | None:
        op = operation.op
        assert isinstance(op, While)
        fixed = {
            at: t.data
            for at, (t, i, o) in enumerate(
                zip(given, self.model[op.body].inputs, self.model[op.body].outputs, strict=True)
            )
            if i == o and t.data is not None
        }
        self.loops += 1
        try:
            condition, body = (self.called(index, given, fixed) for index in op.subgraphs)
        finally:
            self.loops -= 1
        if condition is None or body is None or not ends(condition, body):
            return None
        if _plain([body.type(o) for o in body.outputs]) != _plain([body.type(i) for i in body.inputs]):
            return None
        most = self.bound(condition, body, given)
        if most == 0:
            return None
        return evolve(operation, op=Loop(own_outputs(condition), own_outputs(body, keep=True), most))

    def bound(self, condition: Subgraph, body: Subgraph, given: Sequence[TensorType]) -> int | None:
        """The rounds that a loop may make, None for any number; 0 where the executor is to count them.

        Nothing counts the rounds of loops in loops together once they are enclosed, so their bounds multiplied are what
        a run may take: a loop that makes a known number has that, the others share the rest evenly.
        """
        if self.most is None or self.share is None:
            return self.most
        allowed = max(1, self.share // (work_of_a_run(condition) + work_of_a_run(body)))
        if not self.loops:
            return min(self.most, allowed)
        known = trips(condition, body, given)
        if known is not None and 0 < known <= min(self.most, allowed):
            return known
        even = int(allowed ** (1 / (1 + self.loops)))
        return min(self.most, even) if even >= EVEN_ROUNDS else 0

    def called(
        self, index: int, given: Sequence[TensorType], fixed: Mapping[int, Constant] | None = None
    ) -> Subgraph | None:
        """A subgraph for operands of these types, all in it known; None if something stays unknown."""
        found = self.specialized(index, given, fixed)
        return found if found is not None and _closed(found) else None

    def specialized(
        self, index: int, given: Sequence[TensorType], fixed: Mapping[int, Constant] | None = None
    ) -> Subgraph | None:
        """A subgraph for operands of these types; None if it takes others, or was asked for too often.

        `fixed` are the elements of some inputs, by position; they stay inputs that nothing reads.
        """
        key = (index, tuple(t.shape for t in given), tuple(sorted((fixed or {}).items(), key=lambda each: each[0])))
        if key not in self.found:
            self.found[key] = self._specialized(self.model[index], given, fixed or {})
            return self.found[key]
        again = self.found[key]
        self.room -= 0 if again is None else _size(again)
        return again if self.room >= 0 else None

    def _specialized(
        self, graph: Subgraph, given: Sequence[TensorType], fixed: Mapping[int, Constant]
    ) -> Subgraph | None:
        if len(graph.inputs) != len(given):
            return None
        types = {i: graph.type(i).with_shape(t.shape) for i, t in zip(graph.inputs, given, strict=True)}
        self.depth += 1
        try:
            graph = self.graph(self.settle(_informed(graph.with_types(types), fixed)))
        finally:
            self.depth -= 1
        return graph


def _size(graph: Subgraph) -> int:
    """The operations of a graph and of those in it."""
    return sum(1 + sum(map(_size, _held(operation.op))) for operation in graph.operations)


def _held(op: Op) -> tuple[Subgraph, ...]:
    if isinstance(op, Loop):
        return op.condition, op.body
    return (op.then, op.otherwise) if isinstance(op, Branch) else ()


def _informed(graph: Subgraph, fixed: Mapping[int, Constant]) -> Subgraph:
    """The graph whose operations read constants instead of the inputs at some positions."""
    if not fixed:
        return graph
    edit = Edit(graph)
    twins = {}
    for at, data in fixed.items():
        operand = graph.inputs[at]
        twins[operand] = edit.operand(Operand(graph.type(operand), data=data))
    for at, operation in enumerate(graph.operations):
        if not twins.keys().isdisjoint(operation.used):
            inputs = tuple(None if i is None else twins.get(i, i) for i in operation.inputs)
            edit.replace(at, evolve(operation, inputs=inputs))
    return edit.done()


def _settled_call(op: Op, given: Sequence[TensorType]) -> int | None:
    """The subgraph that an operation is sure to run once, on its last operands; None where that is not known."""
    if isinstance(op, Call):
        return op.subgraph
    chosen = given[0].value if isinstance(op, If) and given else None
    return None if chosen is None else op.subgraphs[0 if bool(chosen.reshape(-1)[0]) else 1]


def refusal(graph: Subgraph) -> Operation | None:
    """The operation that a run of a graph is sure to end with, if it does nothing but give results or refuse."""
    if graph.state or not all(is_function(o) or isinstance(o.op, Loop | Branch) for o in graph.operations):
        return None
    return next((operation for operation in graph.operations if isinstance(operation.op, Refuse)), None)


def _refusing_like(other: Subgraph, refused: Operation) -> Subgraph:
    """A graph with the ends of another that does nothing but refuse."""
    assert isinstance(refused.op, Refuse)
    types = declared(tuple(other.type(o) for o in other.outputs))
    inputs = tuple(Operand(t) for t in _plain([other.type(i) for i in other.inputs]))
    outputs = tuple(range(len(inputs), len(inputs) + len(types)))
    operation = Operation(evolve(refused.op, results=types), (), outputs, refused.location)
    return Subgraph((*inputs, *map(Operand, types)), (operation,), tuple(range(len(inputs))), outputs)


def _inlined(graph: Subgraph, at: int, called: Subgraph) -> Subgraph:
    """The graph with a call's operations in its stead."""
    operation, edit = graph.operations[at], Edit(graph)
    number = dict(zip(called.inputs, operation.used[len(operation.used) - len(called.inputs) :], strict=True))
    number |= {i: edit.operand(o) for i, o in enumerate(called.operands) if i not in number}
    edit.replace(
        at,
        *(
            evolve(
                o,
                inputs=tuple(None if i is None else number[i] for i in o.inputs),
                outputs=tuple(number[i] for i in o.outputs),
                location=f"{operation}, in it {o}",
            )
            for o in called.operations
        ),
    )
    for mine, theirs in zip(operation.outputs, called.outputs, strict=True):
        edit.redirect(mine, number[theirs])
    return edit.done()


def _replaced(graph: Subgraph, at: int, operation: Operation) -> Subgraph:
    operations = (*graph.operations[:at], operation, *graph.operations[at + 1 :])
    return infer_alone(evolve(graph, operations=operations))


def _plain(types: Sequence[TensorType]) -> list[TensorType]:
    return [evolve(t, data=None) for t in types]


def _closed(graph: Subgraph) -> bool:
    """Whether a run of the graph gives results and does nothing else, and all types are known."""
    if graph.state or any(o.variable or not o.type.is_static or o.type.dtype.is_handle for o in graph.operands):
        return False
    return all(is_function(o) or isinstance(o.op, Loop | Branch) for o in graph.operations)


def own_outputs(graph: Subgraph, *, keep: bool = False) -> Subgraph:
    """The graph, every output defined by an operation of its own; with `keep` but for inputs that are their own next
    values.
    """
    operands, operations, outputs = list(graph.operands), list(graph.operations), list(graph.outputs)
    for at, output in enumerate(graph.outputs):
        own = output in graph.definitions and output not in outputs[:at]
        if own or (keep and at < len(graph.inputs) and output == graph.inputs[at]):
            continue
        operands.append(Operand(graph.type(output), graph.operands[output].name))
        outputs[at] = len(operands) - 1
        operations.append(Operation(Copy(), (output,), (outputs[at],), f"copy of {graph.label(output)}"))
    return compact(evolve(graph, operands=tuple(operands), operations=tuple(operations), outputs=tuple(outputs)))


def work_of_a_run(graph: Subgraph) -> int:
    """The additions, and what takes as long, of one run of a graph in which all is known, loops at their longest."""
    total = WORK_OF_A_COMMAND
    for operation in graph.operations:
        op = operation.op
        if isinstance(op, Loop):
            total += (op.most or 1) * (work_of_a_run(op.condition) + work_of_a_run(op.body))
        elif isinstance(op, Branch):
            total += max(work_of_a_run(op.then), work_of_a_run(op.otherwise))
        else:
            total += work_of_a_command(op, graph.types(operation))
    return total
