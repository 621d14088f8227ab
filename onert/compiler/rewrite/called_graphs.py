"""Inlining called graphs, and enclosing graphs in operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from onert.compiler.rewrite.counts.counted_types import COUNT, CountedOperand, CountedType, fitted
from onert.compiler.rewrite.counts.counting import Writer, first_entries
from onert.ir import Constant, Op, Operand, Operation, Subgraph, TensorType
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import Call, If
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.ops.control_flow.refuse import Refuse
from onert.ir.ops.custom import declared
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.value import Value

from .edit import Edit, compact, definer
from .effects import is_function


@frozen
class Enclosed(Value):
    """An operation enclosing its graphs, its operands (`operands`) and results (`results`): counted tensors are passed
    whole, followed by all counts. All entries of results at the positions `whole` are valid.

    `passed` are results of a branch that are operands of its sides, by position; the others are `results`.
    """

    op: Op
    operands: Sequence[CountedType]
    results: Sequence[CountedType]
    whole: frozenset[int] = frozenset()
    passed: Mapping[int, int] = field(factory=dict)


def size(graph: Subgraph) -> int:
    """The number of operations in a graph and in the graphs it encloses."""
    return sum(1 + sum(map(size, inner_graphs(operation.op))) for operation in graph.operations)


def inner_graphs(op: Op) -> tuple[Subgraph, ...]:
    if isinstance(op, Loop):
        return op.condition, op.body
    return (op.then, op.otherwise) if isinstance(op, Branch) else ()


def with_constants(graph: Subgraph, fixed: Mapping[int, Constant]) -> Subgraph:
    """The graph with operations reading constants (`fixed`, by position) instead of some inputs."""
    if not fixed:
        return graph
    edit = Edit(graph)
    constants = {}
    for at, data in fixed.items():
        operand = graph.inputs[at]
        constants[operand] = edit.operand(Operand(graph.type(operand), data=data))
    for at, operation in enumerate(graph.operations):
        if not constants.keys().isdisjoint(operation.used):
            edit.replace(at, operation.with_inputs(lambda i: constants.get(i, i)))
    return edit.done()


def certain_call(op: Op, counted: Sequence[CountedType]) -> int | None:
    """The subgraph that an operation is certain to run once, on its last operands; None if that is unknown."""
    if isinstance(op, Call):
        return op.subgraph
    chosen = counted[0].type.value if isinstance(op, If) and counted else None
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
class Inlined(Value):
    """A graph that replaces a call, and its operands."""

    graph: Subgraph
    operands: Sequence[CountedOperand]


def inlined(graph: Subgraph, calls: Mapping[int, Inlined]) -> Subgraph:
    """The graph with calls, by operation number, replaced by the operations of the called graphs."""
    edit = Edit(graph)
    for at, replacement in calls.items():
        operation, called = graph.operations[at], replacement.graph
        number = dict(zip(called.inputs, _passed_operands(replacement.operands), strict=True))
        number |= {i: edit.operand(o) for i, o in enumerate(called.operands) if i not in number}
        edit.replace(
            at,
            *(evolve(o.with_operands(number.__getitem__), location=f"{o} in {operation}") for o in called.operations),
        )
        for result, output in zip(operation.outputs, called.outputs, strict=True):
            edit.redirect(result, number[output])
    return edit.done()


def _passed_operands(operands: Sequence[CountedOperand]) -> list[int]:
    """The operands to pass to a graph: the tensors, followed by their numbers of valid entries."""
    return [each.operand for each in operands] + [count for each in operands for count in each.counts]


def with_enclosed(
    graph: Subgraph, at: int, operands: Sequence[CountedOperand], enclosed: Enclosed
) -> tuple[Subgraph, int]:
    """The graph with operation `at` replaced by its enclosed form, operands and results fitted, and the new index."""
    old = graph.operations[at]
    w = Writer(Edit(graph))
    w.begin(old.location)
    pairs = [fitted(w, each, result) for each, result in zip(operands, enclosed.operands, strict=True)]
    before = tuple(w.operations)
    inputs = [whole for whole, _ in pairs] + [count for _, axis_counts in pairs for count in axis_counts]
    outputs = [o for at, o in enumerate(old.outputs) if at not in enclosed.passed]
    for at_result, given in enclosed.passed.items():
        w.edit.redirect(old.outputs[at_result], operands[1 + given].operand)
    counts, first = list[int](), list[Operation]()
    for number, result in enumerate(enclosed.results):
        if not result.axes:
            continue
        axes = {axis: w.new(COUNT) for axis in result.axes}
        counts += axes.values()
        if number in enclosed.whole:
            w.edit.redefine(outputs[number], evolve(graph.operands[outputs[number]], type=result.type))
            continue
        cut, outputs[number] = outputs[number], w.new(result.type)
        found = first_entries(outputs[number], result.type, axes, cut, w.new)
        first += (evolve(each, location=old.location) for each in found)
    new = evolve(old, op=enclosed.op, inputs=tuple(inputs), outputs=(*outputs, *counts))
    w.edit.replace(at, *before, new, *first)
    return infer_alone(w.edit.done()), at + len(before)


def plain(types: Sequence[TensorType]) -> list[TensorType]:
    """Types without known elements."""
    return [evolve(t, data=None) for t in types]


def without_copies(graph: Subgraph) -> Subgraph:
    """The graph returning what the copies among its outputs copy."""
    edit = Edit(graph)
    for output in graph.outputs:
        copy = definer(graph, output)
        if copy is not None and isinstance(copy.op, Copy):
            edit.redirect(output, copy.used[0])
            edit.remove(graph.definitions[output])
    return edit.done()


def with_copied_outputs(graph: Subgraph, *, keep: bool = False) -> Subgraph:
    """The graph with every output defined by a separate operation, except, with `keep`, inputs that are returned
    unchanged at the same position.
    """
    operands, operations, outputs = list(graph.operands), list(graph.operations), list(graph.outputs)
    for at, output in enumerate(graph.outputs):
        is_separate = output in graph.definitions and output not in outputs[:at]
        if is_separate or (keep and at < len(graph.inputs) and output == graph.inputs[at]):
            continue
        operands.append(Operand(graph.type(output), graph.operands[output].name))
        outputs[at] = len(operands) - 1
        operations.append(Operation(Copy(), (output,), (outputs[at],), f"copy of {graph.label(output)}"))
    return compact(evolve(graph, operands=tuple(operands), operations=tuple(operations), outputs=tuple(outputs)))
