"""Reductions along dimensions and over windows, and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from onert.compiler.legalize.hlo.shapes import MOST_NUMBERS, padded
from onert.ir import Array, CallTypes, DType
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.data_movement.fill import TopK
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import ArgReduce, Reduce, Reduction, axes_of
from onert.ir.ops.reduction.reduce_window import ReduceWindow, WindowReduction
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.stablehlo.with_bodies import HloReduce, HloReduceWindow, HloSort
from onert.ir.shape import static

from .decomposition import Decomposition, only_float32
from .draft import Draft

_KINDS = {
    BinaryKind.ADD: Reduction.SUM,
    BinaryKind.MUL: Reduction.PROD,
    BinaryKind.MAXIMUM: Reduction.MAX,
    BinaryKind.MINIMUM: Reduction.MIN,
    BinaryKind.LOGICAL_AND: Reduction.ALL,
    BinaryKind.LOGICAL_OR: Reduction.ANY,
}
_NUMBERS = (DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)


def _why_not_known(op: HloReduce | HloReduceWindow, types: CallTypes) -> str | None:
    if op.function not in _KINDS:
        return "its function is a graph" if op.function is None else f"there is no reduction by {op.function.name}"
    for x in types.outputs:
        logical = op.function in (BinaryKind.LOGICAL_AND, BinaryKind.LOGICAL_OR)
        if x.dtype is not DType.BOOL if logical else x.dtype not in _NUMBERS:
            return f"elements of {x.dtype.text} are reduced in a type of their own"
    quantized = any(t is not None and t.quantization is not None for t in types.inputs)
    return "a tensor is quantised" if quantized else None


def _with_start(d: Draft, function: BinaryKind, x: int, start: int) -> int:
    """The function of `x` and a scalar; `x` itself if that changes nothing."""
    value = d.type(start).value
    if function is BinaryKind.ADD and d.dtype(x).is_integer and value is not None and not value.any():
        return x
    return d.binary(function, x, d.reshaped(start))


def _reduce(d: Draft, op: HloReduce, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Binary(Reduce(x), initial), tensor by tensor"""
    function = op.function
    assert function is not None
    count = len(operands) // 2
    found = []
    for x, start, out in zip(operands[:count], operands[count:], types.outputs, strict=True):
        shape = static(out.shape)
        if 0 in d.shape(x):
            found.append(d.broadcast(d.reshaped(start, *(1,) * len(shape)), shape))
        else:
            reduced = d.reduced(_KINDS[function], x, op.dimensions) if op.dimensions else x
            found.append(_with_start(d, function, reduced, start))
    return found


# ---- windows


def _reduced_windows(
    d: Draft, x: int, kind: Reduction, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> int:
    """Reductions over windows that are wholly inside, dimension by dimension, with a table of each window's indices."""
    for axis, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        length = d.shape(x)[axis]
        count = (length - (size - 1) * dilation - 1) // stride + 1
        table = np.arange(count)[:, None] * stride + np.arange(size) * dilation
        if size == 1:
            x = x if count == length else d.gathered(x, d.constant(table.reshape(-1).astype(np.int32)), axis)
        elif count == 1 and length == size:
            x = d.reduced(kind, x, (axis,), keep_dims=True)
        else:
            windows = d.gathered(x, d.constant(table.astype(np.int32)), axis)
            x = d.reduced(kind, windows, (axis + 1,))
    return x


def _why_no_windows(op: HloReduceWindow, types: CallTypes) -> str | None:
    out = static(types.output.shape)
    if any(count * size > MOST_NUMBERS for count, size in zip(out, op.dimensions, strict=True)):
        return f"a table of windows would have more than {MOST_NUMBERS} elements"
    return _why_not_known(op, types)


def _windows(d: Draft, op: HloReduceWindow, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Binary(Reduce(Gather(Pad(x), table)), initial), the table and the reduction for each dimension"""
    assert op.function is not None
    kind, steps = _KINDS[op.function], (op.sliding.strides, op.sliding.window_dilations)
    return _per_tensor(d, op, types, operands, lambda wide: _reduced_windows(d, wide, kind, op.dimensions, *steps))


def _per_tensor(
    d: Draft, op: HloReduceWindow, types: CallTypes, operands: Sequence[int], reduced: Callable[[int], int]
) -> list[int]:
    """The results, tensor by tensor; `reduced` reduces a tensor that includes its margins."""
    assert op.function is not None
    count, found = len(operands) // 2, []
    for x, start in zip(operands[:count], operands[count:], strict=True):
        wide = padded(d, x, start, op.sliding.low, op.sliding.high, [step - 1 for step in op.sliding.dilations])
        found.append(_with_start(d, op.function, reduced(wide), start))
    return found


def _window_axes(op: HloReduceWindow) -> list[int]:
    """The dimensions along which windows are larger than one element, or strided."""
    each = zip(op.dimensions, op.sliding.strides, strict=True)
    return [axis for axis, (size, stride) in enumerate(each) if size > 1 or stride > 1]


def _why_no_pool(op: HloReduceWindow, types: CallTypes) -> str | None:
    if op.function is not BinaryKind.MAXIMUM or max(op.sliding.window_dilations, default=1) > 1:
        return "it is not a maximum over undilated windows"
    axes = _window_axes(op)
    if not axes or axes[-1] - axes[0] != len(axes) - 1 or len(axes) > 2:
        return "its windows do not extend along one or two adjacent dimensions"
    return only_float32(op, types) or _why_not_known(op, types)


def _pool(d: Draft, op: HloReduceWindow, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Maximum(Reshape(MaxPool(Reshape(Pad(x)))), initial)"""
    axes = _window_axes(op)
    steps = [(op.dimensions[a], op.sliding.strides[a]) for a in axes]
    (high, down), (wide, across) = [(1, 1)] * (2 - len(steps)) + steps

    def reduced(x: int) -> int:
        shape = d.shape(x)
        before, inside, after = shape[: axes[0]], [shape[a] for a in axes], shape[axes[-1] + 1 :]
        plane = [1] * (2 - len(inside)) + inside
        image = d.reshaped(x, math.prod(before), *plane, math.prod(after))
        pooled = d.add(Pool2D(Pooling.MAX, high, wide, Padding.VALID, down, across), image)
        return d.reshaped(pooled, *before, *d.shape(pooled)[3 - len(axes) : 3], *after)

    return _per_tensor(d, op, types, operands, reduced)


def _why_no_running_sum(op: HloReduceWindow, types: CallTypes) -> str | None:
    x, start = types.input(0), types.inputs[len(types.inputs) // 2]
    axes = _window_axes(op)
    if op.function is not BinaryKind.ADD or len(axes) != 1 or start is None or start.value is None:
        return "it is not a sum from 0 along one dimension"
    length, how = x.shape[axes[0]], op.sliding
    ends = {(how.low[axes[0]], how.high[axes[0]])}
    unpadded = all(a == 0 == b for i, (a, b) in enumerate(zip(how.low, how.high, strict=True)) if i != axes[0])
    steps = {*how.strides, *how.dilations, *how.window_dilations} - {1}
    is_running = op.dimensions[axes[0]] == length and ends <= {((length or 0) - 1, 0), (0, (length or 0) - 1)}
    if (
        not (is_running and unpadded)
        or steps
        or start.value.any()
        or x.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64)
    ):
        return "it is not a running sum from 0"
    return _why_not_known(op, types)


def _running_sum(d: Draft, op: HloReduceWindow, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """CumSum(x)"""
    (axis,) = _window_axes(op)
    return [d.add(CumSum(reverse=op.sliding.low[axis] == 0), x, d.number(axis)) for x in operands[: len(operands) // 2]]


_WINDOWS = {
    WindowReduction.ADD: (BinaryKind.ADD, Reduction.SUM),
    WindowReduction.MUL: (BinaryKind.MUL, Reduction.PROD),
    WindowReduction.MIN: (BinaryKind.MINIMUM, Reduction.MIN),
    WindowReduction.MAX: (BinaryKind.MAXIMUM, Reduction.MAX),
    WindowReduction.ALL: (BinaryKind.LOGICAL_AND, Reduction.ALL),
    WindowReduction.ANY: (BinaryKind.LOGICAL_OR, Reduction.ANY),
}


def _why_no_reduce_window(op: ReduceWindow, types: CallTypes) -> str | None:
    x = types.input(0)
    if any(types.input(i).value is None for i in (2, 3, 4)):
        return "the windows are not known before the run"
    if (x.dtype is DType.BOOL) != (op.kind in (WindowReduction.ALL, WindowReduction.ANY)):
        return f"{op.kind.name.lower()} of elements of {x.dtype.text} has no counterpart"
    if x.dtype is not DType.BOOL and x.dtype not in _NUMBERS:
        return f"elements of {x.dtype.text} are reduced in a type of their own"
    if any(
        count * int(size) > MOST_NUMBERS
        for count, size in zip(types.output.shape, _elements(types, 2), strict=True)
        if count
    ):
        return f"a table of windows would have more than {MOST_NUMBERS} elements"
    return "a tensor is quantised" if x.quantization is not None else None


def _elements(types: CallTypes, at: int) -> list[int]:
    value = types.input(at).value
    assert value is not None
    return [int(v) for v in value.reshape(-1)]


def _reduce_window(d: Draft, op: ReduceWindow, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Binary(Reduce(Gather(x, table)), init), the table and the reduction for each dimension"""
    function, kind = _WINDOWS[op.kind]
    reduced = _reduced_windows(d, operands[0], kind, *(_elements(types, at) for at in (2, 3, 4)))
    return [d.binary(function, reduced, d.reshaped(operands[1]))]


# ---- sorting


def _why_not_sorted(op: HloSort, types: CallTypes) -> str | None:
    key = types.input(0)
    if op.descending is None:
        return "its order is a graph"
    if not key.dtype.is_numeric:
        return f"elements of {key.dtype.text} are not numbers"
    if any(t is not None and t.quantization is not None for t in types.inputs):
        return "a tensor is quantised"
    return "a tensor has no elements" if 0 in key.shape else None


def _sort(d: Draft, op: HloSort, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Gather(x, TopK(key)), with `least` for ascending order; NaN counts as the greatest"""
    shape = d.shape(operands[0])
    last = len(shape) - 1
    order = [*(axis for axis in range(len(shape)) if axis != op.dimension), op.dimension]
    rows = [d.transposed(x, order) for x in operands]
    first, places = d.add_many(TopK(least=not op.descending), rows[0], d.number(shape[op.dimension]))
    found = [first, *(d.gathered(x, places, last, last) for x in rows[1:])]
    return [d.transposed(x, [order.index(axis) for axis in range(len(shape))]) for x in found]


# ---- TFLite's reductions


def _why_not_mean(op: Reduce, types: CallTypes) -> str | None:
    x = types.input(0)
    if op.kind is not Reduction.MEAN or x.dtype not in (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64):
        return "it is not a mean of integers"
    if x.quantization is not None or types.output.quantization is not None:
        return "its elements are quantised"
    if types.input(1).value is None:
        return "the axes are not known before the run"
    return "a tensor has no elements" if 0 in x.shape else None


def _mean(d: Draft, op: Reduce, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Cast(Div(Sum(Cast(x)), count)) in int64"""
    x, axes = operands[0], types.input(1).value
    assert axes is not None
    at = axes_of(axes, len(d.shape(x)))
    if not at:
        return [x]
    total = d.reduced(Reduction.SUM, d.cast(x, DType.INT64), at, op.keep_dims)
    count = math.prod(d.shape(x)[axis] for axis in at)
    return [d.cast(d.binary(BinaryKind.DIV, total, d.like(total, count)), types.output.dtype)]


def _why_no_quotient(op: Reduce, types: CallTypes) -> str | None:
    if op.kind is not Reduction.MEAN or types.input(1).value is None:
        return "it is not a mean along known axes"
    if 0 in types.input(0).shape or not axes_of(_axes(types), types.input(0).rank):
        return "it has no elements or no axes"
    dtype = types.input(0).dtype
    floats = dtype in (DType.FLOAT32, DType.FLOAT64)
    return None if floats else f"elements of {dtype.text} are not divided in their own type"


def _axes(types: CallTypes) -> Array:
    value = types.input(1).value
    assert value is not None
    return value


def _quotient(d: Draft, op: Reduce, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Div(Sum(x), count)"""
    shape = d.shape(operands[0])
    at = axes_of(_axes(types), len(shape))
    total = d.reduced(Reduction.SUM, operands[0], at, op.keep_dims)
    return [d.binary(BinaryKind.DIV, total, d.like(total, math.prod(shape[axis] for axis in at)))]


def _separated_axes(types: CallTypes) -> tuple[int, ...]:
    """The axes if dimensions other than 1 separate them; otherwise ()."""
    x, axes = types.input(0), types.input(1).value
    at = () if axes is None else axes_of(axes, x.rank)
    between = (x.shape[axis] for axis in range(at[0], at[-1]) if axis not in at) if at else ()
    return at if any(d != 1 for d in between) else ()


def _why_not_separated(op: Reduce, types: CallTypes) -> str | None:
    if not _separated_axes(types):
        return "its axes are adjacent, or are not known before the run"
    if 0 in types.input(0).shape:
        return "a tensor has no elements"
    x = types.input(0)
    per_axis = x.quantization is not None and not x.quantization.per_tensor
    return "it is quantised per axis" if per_axis else None


def _with_adjacent_axes(d: Draft, op: Reduce, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Reshape(Reduce(Transpose(x)))"""
    x, at = operands[0], _separated_axes(types)
    kept = [axis for axis in range(len(d.shape(x))) if axis not in at]
    transposed = d.transposed(x, (*kept, *at))
    last = d.integers(*range(len(kept), len(kept) + len(at)))
    found = d.add(Reduce(op.kind), transposed, last, quantization=(types.output.quantization,))
    return [d.reshaped(found, *static(types.output.shape))]


def _why_not_empty(op: Reduce, types: CallTypes) -> str | None:
    x = types.input(0)
    if 0 not in x.shape or types.input(1).value is None:
        return "its operand has elements, or its axes are not known before the run"
    return "its elements are quantised" if x.quantization is not None else None


def _empty_reduction(d: Draft, op: Reduce, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """BroadcastTo(the reduction of no elements)"""
    shape = static(types.output.shape)
    dtype = types.output.dtype
    with np.errstate(all="ignore"):
        value = Reduce(op.kind).evaluate(np.zeros(0, dtype.numpy), np.zeros(1, np.int32))
    return [d.broadcast(d.constant(value.astype(dtype.numpy).reshape((1,) * len(shape)), dtype=dtype), shape)]


def _why_not_bool(op: ArgReduce, types: CallTypes) -> str | None:
    return None if types.input(0).dtype is DType.BOOL else "its elements are not booleans"


def _arg_reduce_bool(d: Draft, op: ArgReduce, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """ArgReduce(Cast(x))"""
    return [d.add(op, d.cast(operands[0], DType.INT32), operands[1])]


DECOMPOSITIONS = {
    HloReduce: (Decomposition(_why_not_known, _reduce),),
    HloReduceWindow: (
        Decomposition(_why_no_pool, _pool),
        Decomposition(_why_no_running_sum, _running_sum),
        Decomposition(_why_no_windows, _windows),
    ),
    ReduceWindow: (Decomposition(_why_no_reduce_window, _reduce_window),),
    HloSort: (Decomposition(_why_not_sorted, _sort),),
    Reduce: (
        Decomposition(_why_not_mean, _mean),
        Decomposition(_why_no_quotient, _quotient),
        Decomposition(_why_not_separated, _with_adjacent_axes),
        Decomposition(_why_not_empty, _empty_reduction),
    ),
    ArgReduce: (Decomposition(_why_not_bool, _arg_reduce_bool),),
}
