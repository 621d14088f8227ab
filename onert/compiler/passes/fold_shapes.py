"""Fold shapes that are known before the run, and arithmetic on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit
from onert.compiler.rewrite.effects import is_function
from onert.ir import Array, CallTypes, Constant, OnertError, Op, Operation, Subgraph, TensorType, evaluate
from onert.ir.analysis.inference import declare, infer
from onert.ir.errors import MISHAPS
from onert.ir.ops.data_movement.reshape import Rank, ShapeOf
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary
from onert.ir.process import imports
from onert.ir.shape import num_elements, static
from onert.ir.symbolic.trace import is_symbolic

MOST_ELEMENTS = 64
"""The largest tensor that counts as arithmetic on shapes."""
_COMMUTATIVE = (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.MAXIMUM, BinaryKind.MINIMUM)


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def fold_shapes(subgraph: Subgraph) -> Subgraph:
    """Replace static shapes, ranks, and arithmetic on them by constants.

    Types are inferred along the way, so a shape that depends on such a number (the result of a Reshape, say) is known
    to all later operations in a single pass.

        s = ShapeOf(x of f32[2, 3]); y = Reshape(z, s)   -->   y = Reshape(z, const [2, 3])
    """
    if not any(isinstance(operation.op, ShapeOf | Rank) for operation in subgraph.operations):
        return subgraph  # everything that is folded starts from these
    edit = Edit(subgraph)
    types = [operand.known for operand in subgraph.operands]
    shapes: set[int] = set()  # tensors computed from shapes
    scaled: dict[int, int] = {}  # floats computed from lengths, possibly not integers, and their operations
    folded: set[int] = set()
    for at, operation in enumerate(subgraph.operations):
        try:
            found = _inferred(subgraph, operation, types)
        except (OnertError, *MISHAPS):
            break  # inference of the whole graph will report the error with its location
        for out, type_ in zip(operation.outputs, found, strict=True):
            types[out] = type_
        values = [_value(operation, types, shapes, which) for which in range(len(operation.outputs))]
        if len(values) == 1 and values[0] is None:
            values = [_rounded(operation, subgraph, types, scaled)]
            if values[0] is None and _may_be_rounded(operation, types, shapes, scaled):
                scaled[operation.outputs[0]] = at
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            for out, value in zip(operation.outputs, known, strict=True):
                types[out] = types[out].with_shape(value.shape).with_data(Constant(value))
                shapes.add(out)
                type_ = types[out].with_data(None)
                new = evolve(subgraph.operands[out], type=type_, data=types[out].data, from_sizes=True)
                edit.redefine(out, new)
            edit.remove(at)
            folded.add(at)
    for at in _unused(subgraph, scaled, folded):
        edit.remove(at)
    return edit.done()


def _inferred(subgraph: Subgraph, operation: Operation, types: list[TensorType]) -> tuple[TensorType, ...]:
    """The types of an operation's results; results of subgraphs keep their declared types."""
    declared = tuple(subgraph.type(o) for o in operation.outputs)
    if operation.op.subgraphs:
        return declared
    results = infer(operation.op, [None if i is None else types[i] for i in operation.inputs])
    if results is None:
        return declared
    return tuple(declare(result, type_) for result, type_ in zip(results, declared, strict=True))


def _value(operation: Operation, types: list[TensorType], shapes: set[int], which: int) -> Array | None:
    """One of the operation's results if shapes and constants determine it; otherwise None."""
    inputs = tuple(None if i is None else types[i] for i in operation.inputs)
    if inputs and inputs[0] is not None and (value := _of_type(operation.op, inputs[0])) is not None:
        return value
    outputs = tuple(types[o] for o in operation.outputs)
    output = outputs[which]
    if not shapes.intersection(operation.used) or not is_function(operation) or not _small(output):
        return None
    if any(t is not None and t.data is None for t in inputs):
        return None
    arrays = [None if t is None or t.data is None else t.data.array for t in inputs]
    if any(t is not None and t.data is not None and t.data.is_symbolic for t in inputs):
        found: Array | None = _arithmetic().evaluated(operation.op, arrays, output, which)
        return found  # None: the run computes it for each length
    try:
        result = evaluate(operation.op, arrays, CallTypes(inputs, outputs))[which]
    except (OnertError, *MISHAPS):
        return None  # the run will report the error with the operation's location
    return np.ascontiguousarray(result).reshape(result.shape) if result.shape == output.shape else None


def _rounded(operation: Operation, subgraph: Subgraph, types: list[TensorType], scaled: dict[int, int]) -> Array | None:
    """The operation's result if it rounds floats computed from lengths and constants; otherwise None."""
    output = types[operation.outputs[0]]
    if not isinstance(operation.op, Cast | Unary) or operation.used[0] not in scaled or not _small(output):
        return None
    found: Array | None
    scale = _scale(operation.used[0], subgraph, types, scaled)
    if scale is not None:
        steps, lengths = scale
        found = _arithmetic().rounded(operation.op, steps, lengths, types[operation.used[0]].dtype, output)
        return found
    needed, waiting = set[int](), [*operation.used]
    while waiting:
        at = scaled.get(waiting.pop())
        if at is not None and at not in needed:
            needed.add(at)
            waiting += subgraph.operations[at].used
    before = [subgraph.operations[at] for at in sorted(needed)]
    if not any((data := types[i].data) is not None and data.is_symbolic for each in before for i in each.used):
        return None
    found = imports.module("onert.compiler.rewrite.float_sizes").rounded(operation, before, types, output)
    return found


def _may_be_rounded(operation: Operation, types: list[TensorType], shapes: set[int], scaled: dict[int, int]) -> bool:
    """Whether an operation computes a few floats from lengths and constants, which a later one might round to sizes."""
    output = types[operation.outputs[0]]
    known = all(i in scaled or types[i].data is not None for i in operation.used)
    from_lengths = not shapes.isdisjoint(operation.used) or not scaled.keys().isdisjoint(operation.used)
    return known and from_lengths and output.dtype.is_float and is_function(operation) and _small(output)


def _scale(
    operand: int, subgraph: Subgraph, types: list[TensorType], scaled: dict[int, int]
) -> tuple[list[tuple[Binary, Array]], Array] | None:
    """The steps with constants that compute floats from lengths, and these; None if there are others."""
    steps: list[tuple[Binary, Array]] = []
    while (at := scaled.get(operand)) is not None:
        first = subgraph.operations[at]
        if not isinstance(first.op, Binary):
            return None
        operands = [*first.used] if len(first.used) == 2 else []
        if first.op.kind in _COMMUTATIVE:
            operands.sort(key=lambda i: (data := types[i].data) is not None and not data.is_symbolic)
        if len(operands) < 2 or (number := types[operands[1]].data) is None or number.is_symbolic:
            return None
        steps.insert(0, (first.op, number.array))
        operand = operands[0]
    lengths = types[operand].data
    return (steps, lengths.array) if lengths is not None and lengths.is_symbolic else None


def _arithmetic() -> Any:
    """The module for arithmetic on lengths, imported only for programs that serve several lengths."""
    return imports.module("onert.compiler.rewrite.shape_arithmetic")


def _unused(subgraph: Subgraph, scaled: dict[int, int], folded: set[int]) -> Iterator[int]:
    """The operations that scale lengths and whose results only folded or unused operations read."""
    reads = Counter(i for at, operation in enumerate(subgraph.operations) if at not in folded for i in operation.used)
    for out, at in reversed(scaled.items()):
        if not reads[out] and out not in subgraph.kept and at not in folded:
            reads.subtract(subgraph.operations[at].used)
            yield at


def _of_type(op: Op, x: TensorType) -> Array | None:
    """The operation's result if the operand's type determines it; otherwise None."""
    if not x.ranked:
        return None
    if isinstance(op, Rank):
        return np.array(x.rank, np.int32)
    if isinstance(op, ShapeOf) and x.is_static:
        symbolic = any(map(is_symbolic, x.shape))
        return np.array(static(x.shape), object if symbolic else op.to.numpy)
    return None


def _small(type_: TensorType) -> bool:
    if any(map(is_symbolic, type_.shape)):
        return False  # decided before a size is compared, which would add a condition to the trace
    return type_.is_static and not type_.dtype.is_handle and (num_elements(type_.shape) or 0) <= MOST_ELEMENTS
