"""Replace products with one-hot rows, and functions of gathered constant rows, by gathers from tables of results."""

from __future__ import annotations

from math import prod

import numpy as np
from attrs import evolve, frozen

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import (
    Array,
    CallTypes,
    Constant,
    DType,
    OnertError,
    Op,
    Operand,
    Operation,
    Subgraph,
    TensorType,
    evaluate,
)
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.gather import Gather, OneHot
from onert.ir.ops.data_movement.reshape import Squeeze
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary
from onert.ir.value import Value

MOST_BYTES = 1 << 20
"""The largest table of precomputed function results."""


@frozen(eq=False)
class _Picked(Value):
    """The rows `table[indices]`; `count` is their number, 0 if unknown."""

    table: Array
    indices: int
    count: int


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def pick_rows(subgraph: Subgraph) -> Subgraph:
    """Replace a product of one-hot rows and a constant by a gather, and move functions of gathered rows into the table.

    A table of function results has no more rows than are picked. An index out of range picks the bias alone.

        h = OneHot(i, 3, 1, 0); y = FullyConnected(h, w, b)   -->   y = Gather(table, clamp(i))
        g = Gather(w, i); y = Tanh(g)                         -->   y = Gather(tanh(w), i)
    """
    edit = Edit(subgraph)
    picked: dict[int, _Picked] = {}
    lifted: dict[int, int] = {}
    for at, operation in enumerate(subgraph.operations):
        if len(operation.outputs) != 1:
            continue
        found = (
            _product(edit, at, operation) or _gathered(subgraph, operation) or _function(subgraph, operation, picked)
        )
        if found is not None:
            (result,) = operation.outputs
            picked[result] = found
            if not isinstance(operation.op, Gather):
                lifted[at] = result
    for at, result in lifted.items():
        stays = result in subgraph.kept or any(user not in lifted for user in subgraph.uses.get(result, ()))
        if stays:
            table = edit.constant(picked[result].table)
            inputs = (table, picked[result].indices)
            edit.replace(at, evolve(subgraph.operations[at], op=Gather(0), inputs=inputs))
        else:
            edit.remove(at)
    return edit.done()


def _gathered(subgraph: Subgraph, operation: Operation) -> _Picked | None:
    """The rows that the model itself gathers from a constant table."""
    op = operation.op
    if not isinstance(op, Gather) or op.axis or op.batch_dims:
        return None
    table, indices = operation.used
    type_ = subgraph.operands[table].known
    plain = type_.value is not None and type_.rank == 2 and type_.dtype is DType.FLOAT32 and type_.quantization is None
    count = prod(d or 0 for d in subgraph.type(indices).shape)
    return _Picked(type_.value, indices, count) if plain and type_.value is not None else None


def _function(subgraph: Subgraph, operation: Operation, picked: dict[int, _Picked]) -> _Picked | None:
    """The rows of an element-wise function of scalars and of rows that are picked by the same indices."""
    op, types = operation.op, subgraph.types(operation)
    rows = [picked[i] for i in operation.used if i in picked]
    if not isinstance(op, Unary | Binary) or not rows or len({row.indices for row in rows}) != 1:
        return None
    height, width = rows[0].table.shape
    if height > rows[0].count or height * width * 4 > MOST_BYTES or types.output.dtype is not DType.FLOAT32:
        return None
    arrays: list[Array] = []
    for operand in operation.used:
        type_ = subgraph.operands[operand].known
        if operand in picked:
            arrays.append(picked[operand].table)
        elif type_.value is not None and type_.value.size == 1 and type_.dtype is DType.FLOAT32:
            arrays.append(type_.value.reshape(1, 1))
        else:
            return None
    table = _evaluated(op, arrays, (height, width))
    return None if table is None else _Picked(table, rows[0].indices, rows[0].count)


def _evaluated(op: Op, arrays: list[Array], shape: tuple[int, ...]) -> Array | None:
    """The result of an operation; None if it fails or has another shape or type."""
    inputs = tuple(TensorType(DType.FLOAT32, a.shape, data=Constant(a)) for a in arrays)
    try:
        (found,) = evaluate(op, arrays, CallTypes(inputs, (TensorType(DType.FLOAT32, shape),)))
    except (OnertError, ValueError, ArithmeticError):
        return None  # the run will report the error
    return np.ascontiguousarray(found) if found.shape == shape and found.dtype == np.float32 else None


def _product(edit: Edit, at: int, operation: Operation) -> _Picked | None:
    """The rows that a product of one-hot rows and constant weights amounts to."""
    subgraph, op = edit.subgraph, operation.op
    if not isinstance(op, FullyConnected) or not op.keep_dims:
        return None
    types = subgraph.types(operation)
    if any(t is not None and (t.dtype is not DType.FLOAT32 or t.quantization is not None) for t in types.inputs):
        return None
    weights = types.input(1).value
    bias = types.inputs[2] if len(types.inputs) > 2 else None
    if weights is None or not np.isfinite(weights).all() or (bias is not None and bias.value is None):
        return None
    indices = _indices(subgraph, operation.used[0], weights.shape[1])
    if indices is None:
        return None
    summand = np.zeros(weights.shape[0], np.float32) if bias is None or bias.value is None else bias.value.reshape(-1)
    table = np.empty((weights.shape[1] + 2, weights.shape[0]), np.float32)
    table[1:-1] = weights.T + summand
    table[[0, -1]] = summand
    clamped = _clamped(edit, at, *indices, weights.shape[1])
    count = prod(d or 0 for d in types.output.shape[:-1])
    return _Picked(np.asarray(op.activation.apply(table), np.float32), clamped, count)


def _indices(subgraph: Subgraph, rows: int, depth: int) -> tuple[int, bool] | None:
    """The operand with the positions of the ones in one-hot rows, and whether it has an extra last dimension of 1; None
    if the rows are not one-hot."""
    producer = definer(subgraph, rows)
    if producer is not None and isinstance(producer.op, OneHot):
        numbers = [subgraph.operands[i].known.value for i in producer.used[1:]]
        rank = subgraph.type(rows).rank
        is_last_axis = producer.op.axis in (-1, rank - 1)
        found = [None if n is None else float(n.reshape(())) for n in numbers if n is None or n.size == 1]
        return (producer.used[0], False) if is_last_axis and found == [depth, 1, 0] else None
    if producer is None or not isinstance(producer.op, Cast):
        return None
    compared = definer(subgraph, producer.used[0])
    if compared is None or not isinstance(compared.op, Comparison) or compared.op.kind is not ComparisonKind.EQUAL:
        return None
    for one, other in (compared.used, compared.used[::-1]):
        numbers_, type_ = subgraph.operands[other].known.value, subgraph.type(one)
        counts = numbers_ is not None and numbers_.size == depth == numbers_.shape[-1]
        if counts and numbers_ is not None and np.array_equal(numbers_.reshape(-1), np.arange(depth)):
            fits = type_.dtype in (DType.INT32, DType.INT64) and type_.rank == subgraph.type(rows).rank
            if fits and type_.shape[-1] == 1 and depth > 1:
                return one, True
    return None


def _clamped(edit: Edit, at: int, indices: int, has_extra_axis: bool, depth: int) -> int:
    """Indices into a table that has an extra row before the first and after the last, for indices out of range."""
    type_ = edit.subgraph.type(indices).plain()
    location = edit.subgraph.operations[at].location
    steps: list[tuple[Op, Array | None]] = [
        (Binary(BinaryKind.MAXIMUM), np.array(-1)),
        (Binary(BinaryKind.MINIMUM), np.array(depth)),
        (Binary(BinaryKind.ADD), np.array(1)),
    ]
    if has_extra_axis:
        type_ = type_.with_shape(type_.shape[:-1])
        steps.insert(0, (Squeeze((type_.rank,)), None))
    for op, number in steps:
        result = edit.operand(Operand(type_))
        more = () if number is None else (edit.constant(number.astype(type_.dtype.numpy)),)
        edit.insert(at, Operation(op, (indices, *more), (result,), location))
        indices = result
    return indices
