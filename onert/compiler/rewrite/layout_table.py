"""Which operations can run on permuted axes, and how their attributes change.

A row of the table says where an operation refers to axes. How operand axes correspond to result axes follows from the
types, as blocks: some operand axes, and the result axes made from them. `Reduce` over the third axis of [2, 3, 4] has
the blocks 0 -> 0, 1 -> 1 and 2 -> nothing; a reshape of [2, 3, 4] to [2, 12] has 0 -> 0 and 1, 2 -> 1. The blocks may
be in any order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, Op, TensorType
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, MirrorPad, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import AddN, Binary, PRelu
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast, Dequantize, FakeQuant, Quantize
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, ZerosLike
from onert.ir.ops.reduction.norm import L2Normalization, RmsNorm
from onert.ir.ops.reduction.reduce import ArgReduce, Reduce
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.ops.vision_audio.interpolate import Interpolate
from onert.ir.shape import normalize_axis, static
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value

Order = tuple[int, ...]
"""A permutation as in a transpose: axis i of the result is axis `order[i]` of the operand."""

Block = tuple[Order, Order]
"""Axes of the operand, and the axes of the result made from them."""


@frozen
class Orders(Value):
    """The order of the operands' axes, and that of the results' axes."""

    operand: Order
    result: Order


Changed = tuple[Op, Mapping[int, Array]]
"""An operation, and new elements for operands that refer to axes."""


@frozen
class Row(Value):
    """How an operation refers to axes.

    `operands` are those whose axes move, None for all; those of lower rank are broadcast. `attributes`, and the
    elements of the operands `axis_operands`, are axes of the operand, or of the result if its rank is higher; if its
    rank is lower, these axes are missing in it. The operands in `per_axis_operands` have an element, or a row, for each
    axis. The last `last` axes have to stay last. `condition` says which forms of the operation may be moved at all;
    `change` computes the changed operation if the other fields do not suffice.
    """

    operands: tuple[int, ...] | None = (0,)
    attributes: tuple[str, ...] = ()
    axis_operands: tuple[int, ...] = ()
    per_axis_operands: tuple[int, ...] = ()
    last: int = 0
    condition: Callable[[Any, CallTypes], bool] | None = None
    change: Callable[[Any, CallTypes, Orders], Changed] | None = None


def _resized(op: Interpolate, types: CallTypes, orders: Orders) -> Changed:
    """The resize with axes in ascending order, and their scales and regions in the same order."""
    positions = [orders.operand.index(axis) for axis in op.axes]
    order = sorted(range(len(positions)), key=positions.__getitem__)

    def sorted_(values: Sequence[float]) -> tuple[float, ...]:
        return tuple(values[i] for i in order) if values else ()

    changed = evolve(
        op,
        axes=tuple(positions[i] for i in order),
        scales=None if op.scales is None else sorted_(op.scales),
        starts=sorted_(op.starts),
        ends=sorted_(op.ends),
    )
    elements = {
        i: t.value.reshape(-1, len(order))[:, order].reshape(t.value.shape)  # a region has all starts, then all ends
        for i, t in enumerate(types.inputs)
        if i and t is not None and t.value is not None
    }
    return changed, elements


def _known(op: Op, types: CallTypes) -> bool:
    return all(t is None or t.value is not None for t in types.inputs[1:])


def _sliced(op: StridedSlice, types: CallTypes, orders: Orders) -> Changed:
    """The slice with bounds for every axis and permuted mask bits; missing bounds become full ranges."""
    rank = len(orders.operand)
    bounds = [t.value.reshape(-1) for t in types.inputs[1:] if t is not None and t.value is not None]
    count = len(bounds[0])
    masks = {name: getattr(op, name) for name in ("begin_mask", "end_mask", "shrink_axis_mask")}
    whole = ((1 << rank) - 1) >> count << count
    masks = {name: mask & ~whole | (0 if name == "shrink_axis_mask" else whole) for name, mask in masks.items()}
    moved = {
        name: sum((mask >> axis & 1) << i for i, axis in enumerate(orders.operand)) for name, mask in masks.items()
    }
    full = [np.concatenate([b, np.full(rank - count, i == 2, b.dtype)]) for i, b in enumerate(bounds)]
    return evolve(op, **moved), {1 + i: b[list(orders.operand)] for i, b in enumerate(full)}


def _plain_slice(op: StridedSlice, types: CallTypes) -> bool:
    return _known(op, types) and not op.ellipsis_mask and not op.new_axis_mask and types.input(1).rank == 1


def _reshaped(op: Op, types: CallTypes, orders: Orders) -> Changed:
    shape = types.output.shape
    if types.output.is_static:
        return Reshape(static(tuple(shape[a] for a in orders.result))), {}
    if isinstance(op, Squeeze):
        removed = [normalize_axis(a, types.input(0).rank) for a in op.axes]
        return Squeeze(tuple(sorted(orders.operand.index(a) for a in removed))), {}
    axis = _axes(types.inputs[1], types.output.rank)[0]
    return ExpandDims(), {1: np.full(types.input(1).shape, orders.result.index(axis), types.input(1).dtype.numpy)}


def _pointwise(op: Conv2D, types: CallTypes) -> bool:
    """Whether the convolution computes each pixel only from the pixel at the same position."""
    filters = types.input(1)
    steps = (op.stride_height, op.stride_width)
    return filters.shape[1:3] == steps == (1, 1) and op.padding in (Padding.VALID, Padding.SAME)


_ALL = Row(None)
_LAST = Row(last=1)

TABLE: Mapping[type[Op], Row] = {
    Unary: Row(),
    LeakyRelu: Row(),
    ZerosLike: Row(),
    Cast: Row(),
    Quantize: Row(),
    Dequantize: Row(),
    FakeQuant: Row(),
    Copy: Row(),
    Binary: _ALL,
    Comparison: _ALL,
    AddN: _ALL,
    PRelu: _ALL,
    Select: Row(None, condition=lambda op, types: not op.rows),
    Concat: Row(None, attributes=("axis",)),
    Pack: Row(None, attributes=("axis",)),
    Unpack: Row(attributes=("axis",)),
    Split: Row((1,), axis_operands=(0,)),
    SplitV: Row((0,), axis_operands=(2,)),
    Gather: Row(
        attributes=("axis",),
        condition=lambda op, types: op.batch_dims == 0 and types.input(1).ranked and types.input(1).rank < 2,
    ),
    Reverse: Row(axis_operands=(1,)),
    CumSum: Row(axis_operands=(1,)),
    Reduce: Row(axis_operands=(1,)),
    ArgReduce: Row(axis_operands=(1,)),
    Slice: Row(per_axis_operands=(1, 2)),
    StridedSlice: Row(condition=_plain_slice, change=_sliced),
    Pad: Row(per_axis_operands=(1,)),
    MirrorPad: Row(per_axis_operands=(1,)),
    Tile: Row(per_axis_operands=(1,)),
    BroadcastTo: Row(per_axis_operands=(1,), condition=lambda op, types: types.input(0).rank == types.output.rank),
    Interpolate: Row(condition=_known, change=_resized),
    Softmax: _LAST,
    LogSoftmax: _LAST,
    L2Normalization: _LAST,
    RmsNorm: _LAST,
    FullyConnected: Row(last=1, condition=lambda op, types: op.keep_dims),
    Conv2D: Row(last=1, condition=_pointwise),
    Reshape: Row(change=_reshaped),
    Squeeze: Row(change=_reshaped),
    ExpandDims: Row(change=_reshaped),
}
"""The operations whose axes may be permuted."""


def _axes(axes: TensorType | None, rank: int) -> list[int]:
    value = None if axes is None else axes.value
    return [] if value is None else [normalize_axis(int(a), rank) for a in value.reshape(-1)]


def row_of(op: Op, types: CallTypes) -> Row | None:
    """The row of an operation on these types; None if its axes cannot move."""
    row = TABLE.get(type(op))
    all_types = (*types.inputs, *types.outputs)
    if row is None or not all(t is None or t.ranked for t in all_types):
        return None
    if any(t is not None and t.quantization is not None and not t.quantization.per_tensor for t in all_types):
        return None
    if any(
        i >= len(types.inputs) or types.input(i).value is None for i in (*row.axis_operands, *row.per_axis_operands)
    ):
        return None
    return row if row.condition is None or row.condition(op, types) else None


def moved_operands(row: Row, types: CallTypes) -> tuple[int, ...]:
    """The operands whose axes move."""
    return tuple(range(len(types.inputs))) if row.operands is None else row.operands


def blocks_of(op: Op, types: CallTypes, row: Row) -> tuple[Block, ...] | None:
    """The blocks of an operation's axes; None if they are unknown."""
    ranks = [types.input(i).rank for i in moved_operands(row, types)]
    rank, results = max(ranks), types.outputs[0].rank
    if rank == 0:
        return None
    if isinstance(op, Reshape | Squeeze | ExpandDims):
        return _blocks_of_reshape(op, types)
    axes = {normalize_axis(getattr(op, name), max(rank, results)) for name in row.attributes}
    axes |= {a for i in row.axis_operands for a in _axes(types.inputs[i], max(rank, results))}
    if isinstance(op, StridedSlice):
        axes = {i for i in range(types.input(1).shape[0] or 0) if op.shrink_axis_mask >> i & 1}
    if rank == results:
        return tuple(((i,), (i,)) for i in range(rank))
    if rank + 1 == results and len(axes) == 1:
        return tuple(_consecutive((0 if i in axes else 1 for i in range(results)), (1,) * results))
    if rank - len(axes) == results:
        return tuple(_consecutive((1,) * rank, (0 if i in axes else 1 for i in range(rank))))
    return None


def _consecutive(operand: Any, result: Any) -> list[Block]:
    """Consecutive blocks, given the number of axes of each in the operand and in the result."""
    found, i, j = [], 0, 0
    for a, b in zip(operand, result, strict=True):
        found.append((tuple(range(i, i + a)), tuple(range(j, j + b))))
        i, j = i + a, j + b
    return found


def _blocks_of_reshape(op: Op, types: CallTypes) -> tuple[Block, ...] | None:
    """The blocks of a reshape: groups of operand and result dimensions with equal products."""
    before, after = types.input(0).shape, types.output.shape
    if isinstance(op, Squeeze) and op.axes:
        removed = {normalize_axis(a, len(before)) for a in op.axes}
        return tuple(_consecutive((1,) * len(before), (i not in removed for i in range(len(before)))))
    if isinstance(op, ExpandDims) and types.input(1).value is not None:
        new = set(_axes(types.inputs[1], len(after)))
        return tuple(_consecutive((i not in new for i in range(len(after))), (1,) * len(after)))
    if None in before or None in after or 0 in before:
        return None
    return tuple(_factored(static(before), static(after)))


def _factored(before: Sequence[int], after: Sequence[int]) -> list[Block]:
    try:
        return _matched(before, after, are_same)
    except IndexError:  # the products are equal for some lengths only
        return _matched(before, after, operator.eq)


def _matched(before: Sequence[int], after: Sequence[int], same: Callable[[int, int], bool]) -> list[Block]:
    found: list[Block] = []
    i = j = 0
    while i < len(before) or j < len(after):
        first, second = i, j
        if i == len(before) or (j < len(after) and are_same(after[j], 1) and not are_same(before[i], 1)):
            j += 1
        elif j == len(after) or (are_same(before[i], 1) and not are_same(after[j], 1)):
            i += 1
        else:
            a, b, i, j = before[i], after[j], i + 1, j + 1
            while not same(a, b):
                if hint(a) < hint(b):
                    a, i = a * before[i], i + 1
                else:
                    b, j = b * after[j], j + 1
        found.append((tuple(range(first, i)), tuple(range(second, j))))
    return found


def rearranged(op: Op, types: CallTypes, row: Row, orders: Orders) -> Changed:
    """The operation changed for operands and results with axes in these orders."""
    if row.change is not None:
        return row.change(op, types, orders)
    wide = orders.operand if len(orders.operand) >= len(orders.result) else orders.result
    attributes = {name: wide.index(normalize_axis(getattr(op, name), len(wide))) for name in row.attributes}
    changed: Any = evolve(op, **attributes) if attributes else op
    elements: dict[int, Array] = {}
    for i in row.axis_operands:
        type_ = types.input(i)
        positions = [wide.index(a) for a in _axes(type_, len(wide))]
        elements[i] = np.array(positions, type_.dtype.numpy).reshape(static(type_.shape))
    for i in row.per_axis_operands:
        value = types.input(i).value
        assert value is not None
        elements[i] = np.ascontiguousarray(value[list(orders.operand)])
    return changed, elements
