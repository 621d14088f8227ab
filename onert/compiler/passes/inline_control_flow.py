"""Loops and branches as operations that hold their graphs, where these are known to end and all shapes are known.

    y = While(x) {condition=1, body=2}   -->   y = Loop(x) {condition=subgraph ..., body=subgraph ...}

What a `Call` runs takes its place. A backend then sees all that is run, with the shapes of this very call, and may run
it as one. What stays a `While` or an `If` is run by the executor, subgraph by subgraph: a loop that may never end, so
that it can be stopped; shapes that change from round to round; what keeps state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from attrs import evolve

from onert.compiler.limits import WORK_OF_A_COMMAND, work_of_a_command
from onert.compiler.rewrite.edit import Edit, compact, definer
from onert.compiler.rewrite.effects import is_function
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
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.control_flow.control import Call, If, While
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind

EVEN_ROUNDS = 1000
"""With fewer rounds allowed, a loop in a loop is left to the executor: its rounds take long, and it counts them all."""

MOST_NESTED = 8
"""How deep graphs may lie in graphs. Models nest two or three; backends descend into them by recursion."""

SETTLED, SETTLED_AGAIN = 2048, 4
"""Operations to which passes may be applied on the way: so many, and each of the model's so many times. What would take
more stays as it is: a subgraph is settled for each combination of shapes, and nested branches can have very many.
"""

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
        while True:
            for at, operation in enumerate(graph.operations):
                if not isinstance(operation.op, While | If | Call):
                    continue
                key = (operation, graph.types(operation).inputs)
                changed = None if key in given_up else self.changed(graph, at)
                if changed is not None:
                    graph = self.settle(changed)
                    break
                given_up.add(key)
            else:
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
        if isinstance(operation.op, Call):
            try:
                called = self.called(operation.op.subgraph, given)
            except (ModelError, RuleError):
                return None
            return None if called is None else infer_alone(_inlined(graph, at, called))
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
            sides = [self.called(index, given[1:]) for index in operation.op.subgraphs]
            ends = [[s.type(o) for o in s.outputs] for s in sides if s is not None]
            if len(ends) != 2 or _plain(ends[0]) != _plain(ends[1]):
                return None
            return evolve(operation, op=Branch(*(own_outputs(s) for s in sides if s is not None)))
        except (ModelError, RuleError):
            return None  # whoever runs the operation says so, with its place

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
        """A subgraph for operands of these types, all in it known; None if something stays unknown.

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
        return graph if _closed(graph) else None


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


def _inlined(graph: Subgraph, at: int, called: Subgraph) -> Subgraph:
    """The graph with a call's operations in its stead."""
    operation, edit = graph.operations[at], Edit(graph)
    number = dict(zip(called.inputs, operation.used, strict=True))
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


def ends(condition: Subgraph, body: Subgraph) -> bool:
    """Whether a loop is sure to end: it goes on only while a counter, one more in each round, is below a bound that
    stays as it is.
    """
    return next(_counters(condition, body), None) is not None


def trips(condition: Subgraph, body: Subgraph, given: Sequence[TensorType]) -> int | None:
    """The most rounds of a loop whose counter starts at a number that is known; None if it is not."""
    found = []
    for at, limit, step in _counters(condition, body):
        start = given[at].value
        if start is not None:
            found.append(max(0, -((int(start.min(initial=limit)) - limit) // step)))
    return min(found, default=None)


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


def _counters(condition: Subgraph, body: Subgraph) -> Iterator[tuple[int, int, int]]:
    """The counters of a loop: the position of each, the bound below which the loop goes on, and the step."""
    waiting = [condition.outputs[0]]
    seen: set[int] = set()
    while waiting:
        operand = waiting.pop()
        made = None if operand in seen else definer(condition, operand)
        seen.add(operand)
        if made is not None and isinstance(made.op, Binary) and made.op.kind is BinaryKind.LOGICAL_AND:
            waiting += made.used
        elif made is not None and isinstance(made.op, Comparison):
            found = _counter(condition, body, made)
            if found is not None:
                yield found


def _counter(condition: Subgraph, body: Subgraph, compared: Operation) -> tuple[int, int, int] | None:
    op: Op = compared.op
    assert isinstance(op, Comparison)
    counter, bound = compared.used
    if op.kind is ComparisonKind.GREATER:
        counter, bound = bound, counter
    elif op.kind is not ComparisonKind.LESS:
        return None
    if counter not in condition.inputs:
        return None
    at = condition.inputs.index(counter)
    limit = _limit(condition, body, bound)
    step = _step(body, at)
    if limit is None or step is None or step < 1:
        return None
    # A counter that comes to the bound does not pass the largest number on its way.
    sure = step == 1 or limit + step <= np.iinfo(condition.type(counter).dtype.numpy).max
    return (at, limit, step) if sure else None


def _limit(condition: Subgraph, body: Subgraph, bound: int) -> int | None:
    """The largest that a bound can be; None if it may change."""
    data = condition.operands[bound].data
    if data is not None:
        return int(data.array.max())
    if bound not in condition.inputs:
        return None
    at = condition.inputs.index(bound)
    same = body.outputs[at] == body.inputs[at]
    return int(np.iinfo(condition.type(bound).dtype.numpy).max) if same else None


def _step(body: Subgraph, at: int) -> int | None:
    """By how much an input grows in each round; None if it does something else, or is no integer."""
    made = definer(body, body.outputs[at])
    plain = made is not None and isinstance(made.op, Binary) and made.op.kind is BinaryKind.ADD
    if made is None or not plain or not body.type(body.inputs[at]).dtype.is_integer:
        return None
    assert isinstance(made.op, Binary)
    if made.op.activation is not Activation.NONE or body.inputs[at] not in made.used:
        return None
    others = [i for i in made.used if i != body.inputs[at]]
    data = body.operands[others[0]].data if len(others) == 1 else None
    return None if data is None or data.array.size != 1 else int(data.array.reshape(()))
