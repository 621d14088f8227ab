"""Elements moved as they are stored: reshaped, joined, taken apart, padded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, Op, TensorType
from onert.ir.ops.activation import Activation
from onert.ir.ops.joining import Concat, Split
from onert.ir.ops.slicing import Pad
from onert.ir.shape import normalize_axis
from onert_llvm.kernels.copy import CopyRows, FillRows

from .builder import Lowering
from .command import Slot

_PIECE = 1 << 14
"""Bytes of a work tile where a whole tensor is copied."""


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not move the elements; None where it does."""
    if any(t is not None and (t.dtype.is_handle or 0 in t.shape) for t in (*types.inputs, *types.outputs)):
        return "a tensor holds no plain elements"
    if isinstance(op, Concat):
        same = all(t is not None and t.quantization == types.output.quantization for t in types.inputs)
        return None if same and op.activation is Activation.NONE else "its operands are brought to another scale"
    if isinstance(op, Split):
        return None if types.input(0).value is not None else "the axis is not constant"
    if isinstance(op, Pad):
        return _why_no_pad(types)
    return None


def _why_no_pad(types: CallTypes) -> str | None:
    x, paddings = types.input(0), types.input(1).value
    if paddings is None or len(types.inputs) > 2:
        return "the margins or the value are not known before the run"
    if x.dtype.itemsize not in (1, 4) or x.rank > 4:
        return "elements of this size or shape have no native form"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """The commands of one operation that moves elements."""
    (at,) = operations
    op = lowering.operation(at).op
    if isinstance(op, Concat):
        _concat(lowering, at, op)
    elif isinstance(op, Split):
        _split(lowering, at)
    elif isinstance(op, Pad):
        _pad(lowering, at)
    else:
        _copy(lowering, at)


def _copy(lowering: Lowering, at: int) -> None:
    """All bytes as they lie; nothing at all where source and target share memory."""
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    total = lowering.type(source).nbytes
    width = min(_PIECE, total)
    whole = total // width
    _rows(lowering, at, source, target, whole, width, width, width, 0, 0)
    if total > whole * width:
        _rows(lowering, at, source, target, 1, total - whole * width, 0, 0, whole * width, whole * width)


def _rows(
    lowering: Lowering,
    at: int,
    source: int,
    target: int,
    rows: int,
    width: int,
    source_step: int,
    target_step: int,
    source_offset: int,
    target_offset: int,
) -> None:
    slots: dict[str, Slot] = {
        "source": lowering.operand(source, source_offset),
        "target": lowering.operand(target, target_offset),
        "width": width,
        "source_step": source_step,
        "target_step": target_step,
    }
    lowering.emit(at, CopyRows(), slots, rows, (source,), (target,))


def _around(type_: TensorType, axis: int) -> tuple[int, int]:
    """How many rows lie before an axis, and the bytes of one of them."""
    shape = [d or 0 for d in type_.shape]
    outer = int(np.prod(shape[:axis], dtype=np.int64))
    return outer, int(np.prod(shape[axis:], dtype=np.int64)) * type_.dtype.itemsize


def _concat(lowering: Lowering, at: int, op: Concat) -> None:
    operation = lowering.operation(at)
    target = operation.outputs[0]
    axis = normalize_axis(op.axis, lowering.type(target).rank)
    outer, whole = _around(lowering.type(target), axis)
    offset = 0
    for source in operation.used:
        _, width = _around(lowering.type(source), axis)
        _rows(lowering, at, source, target, outer, width, width, whole, 0, offset)
        offset += width


def _split(lowering: Lowering, at: int) -> None:
    operation = lowering.operation(at)
    where, source = operation.used
    axis = normalize_axis(int(lowering.elements(where).reshape(-1)[0]), lowering.type(source).rank)
    outer, whole = _around(lowering.type(source), axis)
    offset = 0
    for target in operation.outputs:
        _, width = _around(lowering.type(target), axis)
        _rows(lowering, at, source, target, outer, width, whole, width, offset, 0)
        offset += width


def _pad(lowering: Lowering, at: int) -> None:
    """The whole result filled, then the elements copied row by row of the third dimension from the back."""
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    type_ = lowering.type(source)
    size = type_.dtype.itemsize
    pairs = lowering.elements(operation.used[1]).tolist()
    zero = 0 if type_.quantization is None or not type_.dtype.is_integer else type_.quantization.zero_points[0]
    out = lowering.shape(target)
    rows = int(np.prod(out[:-1], dtype=np.int64))
    fill: dict[str, Slot] = {
        "target": lowering.operand(target),
        "width": out[-1],
        "target_step": out[-1],
        "value": zero,
    }
    lowering.emit(at, FillRows(size), fill, rows, (), (target,))
    own = (1,) * (4 - type_.rank) + lowering.shape(source)
    wide = (1,) * (4 - type_.rank) + out
    margins = [(0, 0)] * (4 - type_.rank) + pairs
    whole_rows = margins[3] == [0, 0] or margins[3] == (0, 0)
    for n in range(own[0]):
        for h in range(own[1]):
            first = (((n + margins[0][0]) * wide[1] + h + margins[1][0]) * wide[2] + margins[2][0]) * wide[3]
            here = (n * own[1] + h) * own[2] * own[3] * size
            there = (first + margins[3][0]) * size
            if whole_rows:
                _rows(lowering, at, source, target, 1, own[2] * own[3] * size, 0, 0, here, there)
            else:
                width, step = own[3] * size, wide[3] * size
                _rows(lowering, at, source, target, own[2], width, width, step, here, there)
