"""Partial constant propagation for small integer tensors: shapes with unknown dimensions, and arithmetic on them.

Exporters write a reshape to `[batch, 64]` as a chain of operators on the shape of a tensor. Each element is tracked
as a known integer or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from onert.ir import Array, DType, Op, RuleError, TensorType
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import Slice, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select

Known = Array | None
"""An array of Python integers and None."""

_MOVED = (Concat, Pack, Reshape, ExpandDims, Squeeze, StridedSlice, Slice, Gather)
_COMPUTED: dict[BinaryKind, Callable[[int, int], int | None]] = {
    BinaryKind.ADD: lambda x, y: x + y,
    BinaryKind.SUB: lambda x, y: x - y,
    BinaryKind.MUL: lambda x, y: x * y,
    BinaryKind.FLOOR_MOD: lambda x, y: x % y if y else None,
    BinaryKind.DIV: lambda x, y: int(x / y) if y and abs(x) < 1 << 40 else None,
    BinaryKind.MAXIMUM: max,
    BinaryKind.MINIMUM: min,
}
MOST = 64
"""The maximum number of elements of a tracked tensor."""


def of_constant(x: TensorType) -> Known:
    """The elements of a small integer constant; None for other tensors."""
    if x.value is None or not x.dtype.is_integer or x.value.size > MOST:
        return None
    return x.value.astype(object)


def derive(op: Op, inputs: Sequence[TensorType | None], known: Sequence[Known]) -> Known:
    """The known elements of an operation's only result; None if nothing is known."""
    if isinstance(op, ShapeOf):
        return _objects(inputs[0].shape) if inputs[0] is not None and inputs[0].ranked else None
    if isinstance(op, Cast):
        is_integer = inputs[0] is not None and inputs[0].dtype.is_integer and op.to in (DType.INT32, DType.INT64)
        return known[0] if is_integer else None
    try:
        if isinstance(op, Binary) and op.kind in _COMPUTED:
            return _computed(_COMPUTED[op.kind], known)
        if isinstance(op, Comparison):
            return _computed(lambda x, y: bool(op.kind.value.numpy(np.asarray(x), np.asarray(y))), known)
        if isinstance(op, Select):
            return _selected(inputs[0], known)
        if isinstance(op, _MOVED) and op.evaluate is not None:
            return _moved(op, inputs, known)
    except (RuleError, ValueError, IndexError, TypeError, OverflowError):
        return None
    return None


def _objects(values: Sequence[int | None]) -> Array:
    out: Array = np.empty(len(values), object)
    out[:] = values
    return out


def _computed(function: Callable[[int, int], int | None], known: Sequence[Known]) -> Known:
    if known[0] is None or known[1] is None:
        return None
    x, y = np.broadcast_arrays(known[0], known[1])
    found = [None if a is None or b is None else function(a, b) for a, b in zip(x.flat, y.flat, strict=True)]
    return _objects(found).reshape(x.shape)


def _selected(condition: TensorType | None, known: Sequence[Known]) -> Known:
    chosen = known[0] if condition is None or condition.value is None else condition.value
    if chosen is None or known[1] is None or known[2] is None:
        return None
    three = np.broadcast_arrays(chosen, known[1], known[2])
    found = [
        (x if x == y else None) if c is None else x if c else y
        for c, x, y in zip(*(a.flat for a in three), strict=True)
    ]
    return _objects(found).reshape(three[0].shape)


def _each(x: TensorType | None, found: Known) -> Known:
    """The known elements of a tensor that is moved. A small integer tensor becomes all None rather than None."""
    if found is not None or x is None or not x.is_static or not x.dtype.is_integer:
        return found
    count = math.prod(d or 0 for d in x.shape)
    return None if count > MOST else _objects([None] * count).reshape([d or 0 for d in x.shape])


def _moved(op: Op, inputs: Sequence[TensorType | None], known: Sequence[Known]) -> Known:
    """Apply an operation that moves elements; the operands that determine where they go must be constant."""
    moved = len(inputs) if isinstance(op, (Concat, Pack)) else 1
    values: list[Array | None] = []
    for at, (type_, found) in enumerate(zip(inputs, known, strict=True)):
        values.append(_each(type_, found) if at < moved else None if type_ is None else type_.value)
        if type_ is not None and values[-1] is None:
            return None
    assert op.evaluate is not None
    out: Array = np.asarray(op.evaluate(*values), object)
    return out if out.size <= MOST and any(v is not None for v in out.flat) else None
