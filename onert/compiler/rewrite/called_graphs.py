"""Inlining called graphs, and enclosing graphs in operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from onert.compiler.rewrite.counts.counting import Writer, first_entries
from onert.compiler.rewrite.counts.ends import COUNT, End, Given, fitted
from onert.ir import Constant, Op, Operand, Operation, Subgraph, TensorType
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import Call, If
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.ops.control_flow.refuse import Refuse
from onert.ir.ops.custom import declared
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.value import Value

from .edit import Edit, compact
from .effects import is_function


@frozen
class Enclosed(Value):
    """An operation enclosing its graphs, its operands (`takes`) and results (`gives`): counted tensors are passed
    whole, followed by all counts. All entries of results at the positions `whole` are valid."""

    op: Op
    takes: Sequence[End]
    gives: Sequence[End]
    whole: frozenset[int] = frozenset()


def size(graph: Subgraph) -> int:
    """The number of operations in a graph and in the graphs it encloses."""
    return sum(1 + sum(map(size, held(operation.op))) for operation in graph.operations)


def held(op: Op) -> tuple[Subgraph, ...]:
    if isinstance(op, Loop):
        return op.condition, op.body
    return (op.then, op.otherwise) if isinstance(op, Branch) else ()


def informed(graph: Subgraph, fixed: Mapping[int, Constant]) -> Subgraph:
    """The graph with operations reading constants (`fixed`, by position) instead of some inputs."""
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


def settled_call(op: Op, ends: Sequence[End]) -> int | None:
    """The subgraph that an operation is certain to run once, on its last operands; None if that is unknown."""
    if isinstance(op, Call):
        return op.subgraph
    chosen = ends[0].type.value if isinstance(op, If) and ends else None
    return None if chosen is None else op.subgraphs[0 if bool(chosen.reshape(-1)[0]) else 1]


def refusal(graph: Subgraph) -> Operation | None:
    """The `Refuse` with which every run of a graph without side effects fails; None if there is none."""
    if graph.state or not all(is_function(o) or isinstance(o.op, Loop | Branch) for o in graph.operations):
        return None
    return next((operation for operation in graph.operations if isinstance(operation.op, Refuse)), None)


def refusing_like(other: Subgraph, refused: Operation) -> Subgraph:
    """A graph with the inputs and outputs of another that only fails, as `refused` does."""
    assert isinstance(refused.op, Refuse)
    types = declared(tuple(other.type(o) for o in other.outputs))
    inputs = tuple(Operand(t) for t in plain([other.type(i) for i in other.inputs]))
    outputs = tuple(range(len(inputs), len(inputs) + len(types)))
    operation = Operation(evolve(refused.op, results=types), (), outputs, refused.location)
    return Subgraph((*inputs, *map(Operand, types)), (operation,), tuple(range(len(inputs))), outputs)


@frozen
class Taken(Value):
    """A graph that replaces a call, and its operands."""

    graph: Subgraph
    givens: Sequence[Given]


def inlined(graph: Subgraph, found: Mapping[int, Taken]) -> Subgraph:
    """The graph with calls, by operation number, replaced by the operations of the called graphs."""
    edit = Edit(graph)
    for at, taken in found.items():
        operation, called = graph.operations[at], taken.graph
        number = dict(zip(called.inputs, _handed(taken.givens), strict=True))
        number |= {i: edit.operand(o) for i, o in enumerate(called.operands) if i not in number}
        edit.replace(
            at,
            *(
                evolve(
                    o,
                    inputs=tuple(None if i is None else number[i] for i in o.inputs),
                    outputs=tuple(number[i] for i in o.outputs),
                    location=f"{o} in {operation}",
                )
                for o in called.operations
            ),
        )
        for mine, theirs in zip(operation.outputs, called.outputs, strict=True):
            edit.redirect(mine, number[theirs])
    return edit.done()


def _handed(givens: Sequence[Given]) -> list[int]:
    """The operands to pass to a graph: the tensors, followed by their numbers of valid entries."""
    return [each.operand for each in givens] + [count for each in givens for count in each.counts]


def replaced(graph: Subgraph, at: int, givens: Sequence[Given], made: Enclosed) -> tuple[Subgraph, int]:
    """The graph with operation `at` replaced by its enclosed form, operands and results fitted, and the new index."""
    old = graph.operations[at]
    w = Writer(Edit(graph))
    w.begin(old.location)
    pairs = [fitted(w, each, end) for each, end in zip(givens, made.takes, strict=True)]
    before = tuple(w.made)
    inputs = [whole for whole, _ in pairs] + [count for _, own in pairs for count in own]
    outputs, counts, first = list(old.outputs), list[int](), list[Operation]()
    for number, end in enumerate(made.gives):
        if not end.axes:
            continue
        axes = {axis: w.new(COUNT) for axis in end.axes}
        counts += axes.values()
        if number in made.whole:
            w.edit.redefine(old.outputs[number], evolve(graph.operands[old.outputs[number]], type=end.type))
            continue
        outputs[number] = w.new(end.type)
        found = first_entries(outputs[number], end.type, axes, old.outputs[number], w.new)
        first += (evolve(each, location=old.location) for each in found)
    new = evolve(old, op=made.op, inputs=tuple(inputs), outputs=(*outputs, *counts))
    w.edit.replace(at, *before, new, *first)
    return infer_alone(w.edit.done()), at + len(before)


def plain(types: Sequence[TensorType]) -> list[TensorType]:
    """Types without known elements."""
    return [evolve(t, data=None) for t in types]


def own_outputs(graph: Subgraph, *, keep: bool = False) -> Subgraph:
    """The graph with every output defined by a separate operation, except, with `keep`, inputs that are returned
    unchanged at the same position.
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
