"""Replace loops that reduce a range of rows in each round, as over bags of embeddings, by operations on all ranges."""

from __future__ import annotations

from onert.compiler.rewrite.called_graphs import with_constants
from onert.ir import (
    DType,
    ModelError,
    RuleError,
    Subgraph,
    Subgraphs,
    TensorType,
)
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.sequences import SequenceJoin
from onert.ir.ops.reduction.reduce import Reduce

from .all_rounds import AllRounds, is_pure
from .invariants import constant_state
from .lists import Simplify, counted, is_appended, is_list


def with_ranges(model: Subgraphs, graph: Subgraph, at: int, simplify: Simplify) -> Subgraph | None:
    """The graph that computes the tensors which loop `at` appends to, or the lists it fills, without the loop. None
    unless each round computes its entry from a range of rows that is reduced, and otherwise element by element.

        y = []; While {y = Concat(y, ExpandDims(Reduce(x[begin[i] : end[i]])))}   -->   y = ReduceRanges(x, begin, end)

    A branch becomes a choice between both results.
    """
    operation = graph.operations[at]
    op = operation.op
    if not isinstance(op, While) or None in operation.inputs:
        return None
    operands, (condition, body) = operation.used, (model[op.condition], model[op.body])
    wanted = [k for k, o in enumerate(operation.outputs) if o in graph.uses or o in graph.kept]
    lists = [k for k in wanted if is_list(graph, condition, body, operation, k, _is_joined)]
    if not wanted or not is_pure(condition) or not is_pure(body) or not _reduces(model, body):
        return None
    others = [i for i in operands if graph.type(i).dtype is not DType.VARIANT]
    if not all(graph.type(i).is_static for i in others):
        return None
    types = {i: graph.type(g).with_data(None) for i, g in zip(body.inputs, operands, strict=True)}
    types = {i: _open(t) if body.inputs.index(i) in wanted else t for i, t in types.items()}
    fixed = constant_state([graph.operands[i].data for i in operands], body)
    try:
        simplified = simplify(with_constants(body.with_types(types), fixed))
        starts = [graph.operands[i].known for i in operands]
        rounds = counted(condition, simplified, starts, fixed, simplify)
        if rounds is None or rounds.first or rounds.rounds < 1:
            return None
        appended = [k for k in wanted if k not in lists and is_appended(starts[k], condition, simplified, k)]
        if len(lists) + len(appended) != len(wanted):
            return None
        loop = AllRounds(model, graph, operation, rounds, simplify)
        return loop.replaced(at, simplified, lists, appended)
    except (ModelError, RuleError):
        return None  # the loop will report the error, if a run gets there


def _reduces(model: Subgraphs, graph: Subgraph) -> bool:
    """Whether a graph, or one that it may call, has a reduction."""
    found, left = set[int](), [graph]
    while left:
        for op in (operation.op for operation in left.pop().operations):
            if isinstance(op, Reduce):
                return True
            left += [model[i] for i in op.subgraphs if i not in found]
            found |= set(op.subgraphs)
    return False


def _is_joined(join: SequenceJoin) -> bool:
    return join.axis == 0


def _open(type_: TensorType) -> TensorType:
    """The type of a tensor to which rounds append, in any round."""
    return type_.with_shape((None, *type_.shape[1:])) if type_.ranked and type_.rank else type_
