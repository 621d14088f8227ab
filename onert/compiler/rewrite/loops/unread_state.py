"""Loops with state whose first value no round reads, such as a variable that each round assigns before it reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.called_graphs import with_constants
from onert.compiler.rewrite.counts.counted_types import CountedOperand, CountedType, counted_types, outputs_of
from onert.compiler.rewrite.edit import Edit
from onert.ir import ModelError, Operation, RuleError, Subgraph, Subgraphs
from onert.ir.ops.control_flow.control import While

MOST_ZEROS = 16 << 20
"""The most bytes of a first value that is replaced; beyond this the executor runs the loop."""

Specialized = Callable[[int, Sequence[CountedType]], Subgraph | None]
"""A subgraph of the model specialised to operands; None if that is not possible."""


def with_first_values(
    model: Subgraphs,
    graph: Subgraph,
    at: int,
    operands: Sequence[CountedOperand],
    specialized: Specialized,
    simplify: Callable[[Subgraph], Subgraph],
) -> Subgraph:
    """The graph whose loop, operation `at`, begins with zeros in the shapes that a round returns, instead of values of
    other shapes that no round reads. Only if the loop is certain to run once, because these would be its results."""
    operation = graph.operations[at]
    if not isinstance(operation.op, While):
        return graph
    unread = [k for k in range(len(operands)) if _is_unread(model, operation, k)]
    try:
        if not unread or not _begins(model[operation.op.condition], operands, simplify):
            return graph
        body = specialized(operation.op.body, counted_types(operands))
        after = None if body is None else outputs_of(body)
    except (ModelError, RuleError):
        return graph  # the run will report it
    edit, inputs = Edit(graph), list(operation.inputs)
    for k in unread if after is not None else ():
        assert after is not None
        before, new = operands[k].counted.type, after[k].counted.type
        plain = new.is_static and not after[k].counts and not new.dtype.is_handle and new.nbytes <= MOST_ZEROS
        if plain and new.shape != before.shape:
            zeros = np.zeros([size or 0 for size in new.shape], new.dtype.numpy)
            inputs[k] = edit.constant(zeros, new.dtype, new.quantization)
    if tuple(inputs) != operation.inputs:
        edit.replace(at, evolve(operation, inputs=tuple(inputs)))
    return edit.done()


def _is_unread(model: Subgraphs, operation: Operation, position: int) -> bool:
    """Whether neither a loop's body nor its condition reads or returns a value of its state."""
    graphs = [model[index] for index in operation.op.subgraphs]
    return not any(g.inputs[position] in g.uses or g.inputs[position] in g.outputs for g in graphs)


def _begins(condition: Subgraph, operands: Sequence[CountedOperand], simplify: Callable[[Subgraph], Subgraph]) -> bool:
    """Whether the condition is known to hold for the loop's first values."""
    known = {k: data for k, each in enumerate(operands) if (data := each.counted.type.data) is not None}
    found = simplify(with_constants(condition, known))
    result = found.operands[found.outputs[0]].data
    return result is not None and bool(result.array.all())
