"""StableHLO's operations on shapes and single elements, as operations that TFLite also has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.compiler.legalize.decomposition import Decomposition, always, moves
from onert.compiler.legalize.draft import Draft
from onert.ir import CallTypes, DType
from onert.ir.ops.data_movement.dense import Dilate
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, PutRow
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.slicing import Pad, StridedSlice
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.stablehlo import shapes_and_elements as hlo
from onert.ir.shape import static

_NARROW = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)
MOST_NUMBERS = 1 << 24
"""The most elements of a table of indices."""


def _broadcast(d: Draft, op: hlo.HloBroadcastInDim, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """BroadcastTo(Reshape(Transpose(x)))"""
    (x,) = operands
    wide = [1] * len(op.shape)
    for size, axis in zip(d.shape(x), op.dimensions, strict=True):
        wide[axis] = size
    transposed = d.transposed(x, [int(i) for i in np.argsort(op.dimensions, kind="stable")])
    return [d.broadcast(d.reshaped(transposed, *wide), op.shape)]


def _clamp(d: Draft, op: hlo.HloClamp, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Minimum(Maximum(x, low), high)"""
    low, x, high = operands
    return [d.binary(BinaryKind.MINIMUM, d.binary(BinaryKind.MAXIMUM, x, low), high)]


def _why_not_wide(op: hlo.HloClamp, types: CallTypes) -> str | None:
    return None if types.output.dtype in _NARROW else "only integers of 8 and 16 bits are widened"


def _clamp_wide(d: Draft, op: hlo.HloClamp, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Cast(Minimum(Maximum(Cast(x), Cast(low)), Cast(high)))"""
    (found,) = _clamp(d, op, types, [d.cast(operand, DType.INT32) for operand in operands])
    return [d.cast(found, types.output.dtype)]


def _slice(d: Draft, op: hlo.HloSlice, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """StridedSlice(x, starts, limits, strides), or Slice if it skips no element"""
    (x,) = operands
    sizes = static(types.output.shape)
    steps = [min(step, max(size, 1)) for step, size in zip(op.strides, d.shape(x), strict=True)]
    if all(step == 1 or size == 1 for step, size in zip(steps, sizes, strict=True)):
        return [d.part(x, op.starts, sizes)]
    return [d.moved(StridedSlice(), x, *(d.integers(*numbers) for numbers in (op.starts, op.limits, steps)))]


def _transpose(d: Draft, op: hlo.HloTranspose, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Transpose(x, permutation)"""
    return [d.transposed(operands[0], op.permutation)]


def _dynamic_slice(d: Draft, op: hlo.HloDynamicSlice, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Gather(x, clamp(start) + [0, 1 ..]) along each sliced dimension, starting with the one that shrinks most"""
    x, *starts = operands
    sizes = d.shape(x)
    cut = [axis for axis, (size, part) in enumerate(zip(sizes, op.sizes, strict=True)) if part < size]
    for axis in sorted(cut, key=lambda a: op.sizes[a] / sizes[a]):
        at = d.clamped(d.reshaped(d.index(starts[axis]), 1), 0, sizes[axis] - op.sizes[axis])
        part = op.sizes[axis]
        found = d.type(at).value
        if found is not None:
            begin, size = [0] * len(sizes), list(d.shape(x))
            begin[axis], size[axis] = int(found[0]), part
            x = d.part(x, begin, size)
        else:
            x = d.gathered(x, at if part == 1 else d.sum(at, d.numbers(part, at, (part,))), axis)
    return [x]


def _starts(d: Draft, starts: Sequence[int]) -> int:
    """The start indices as one vector."""
    parts = [d.reshaped(d.index(start), 1) for start in starts]
    to = DType.INT64 if any(d.dtype(part) is DType.INT64 for part in parts) else DType.INT32
    parts = [d.cast(part, to) for part in parts]
    known = [d.type(part).value for part in parts]
    if all(value is not None for value in known):
        return d.constant(np.concatenate([value for value in known if value is not None]))
    return d.add(Concat(0), *parts)


def _update(d: Draft, op: hlo.HloDynamicUpdateSlice, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """DynamicUpdateSlice(x, update, Concat(starts))"""
    x, update, *starts = operands
    if not starts:
        return [update]
    return [d.moved(DynamicUpdateSlice(), x, update, _starts(d, starts))]


def _why_no_row(op: hlo.HloDynamicUpdateSlice | DynamicUpdateSlice, types: CallTypes) -> str | None:
    x, update = static(types.input(0).shape), static(types.input(1).shape)
    row = bool(x) and 0 not in x and update == (1, *x[1:])
    return moves(op, types) if row else "it does not update one whole row of the first dimension"


def _put_row(d: Draft, op: hlo.HloDynamicUpdateSlice, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """PutRow(x, update, clamp(start))"""
    x, update, first, *_ = operands
    at = d.clamped(d.reshaped(d.index(first), 1), 0, d.shape(x)[0] - 1)
    return [d.moved(PutRow(), x, update, at)]


def _put_row_at(d: Draft, op: DynamicUpdateSlice, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """PutRow(x, update, clamp(start[0]))"""
    x, update, start = operands
    first = d.part(d.index(start), (0,), (1,))
    return [d.moved(PutRow(), x, update, d.clamped(first, 0, d.shape(x)[0] - 1))]


def _why_no_numbers(op: hlo.HloIota, types: CallTypes) -> str | None:
    count = op.shape[op.dimension]
    return None if count <= MOST_NUMBERS else f"it counts to {count}, expected at most {MOST_NUMBERS}"


def _iota(d: Draft, op: hlo.HloIota, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """BroadcastTo([0, 1, ..])"""
    along = [-1 if axis == op.dimension else 1 for axis in range(len(op.shape))]
    numbers = np.arange(op.shape[op.dimension]).astype(op.to.numpy).reshape(along)
    return [d.broadcast(d.constant(numbers, dtype=op.to), op.shape)]


def padded(d: Draft, x: int, value: int, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> int:
    """`x` with margins (negative ones crop) and `interior` elements between neighbours, all filled with `value`."""
    sizes = d.shape(x)
    dilated = [max(size - 1, 0) * between + size for size, between in zip(sizes, interior, strict=True)]
    shape = [size + a + b for size, a, b in zip(dilated, low, high, strict=True)]
    begin = [max(0, -a) for a in low]
    inner = [size - a - max(0, -b) for size, a, b in zip(dilated, begin, high, strict=True)]
    if 0 in shape:
        return d.nothing(d.type(x).with_shape(tuple(shape)))
    if 0 in sizes or min(inner, default=1) <= 0:
        return d.broadcast(d.reshaped(value, *(1,) * len(shape)), shape)
    x = d.part(_dilated(d, x, value, interior), begin, inner)
    margins = [(max(0, a), max(0, b)) for a, b in zip(low, high, strict=True)]
    if not any(map(any, margins)):
        return x
    return d.moved(Pad(), x, d.constant(np.array(margins, np.int32)), value)


def _dilated(d: Draft, x: int, value: int, interior: Sequence[int]) -> int:
    """`x` with `interior` elements after each of its own, as padding of an extra dimension of size 1."""
    sizes, axes = d.shape(x), [axis for axis, between in enumerate(interior) if between and d.shape(x)[axis] > 1]
    if not axes:
        return x
    split = [n for axis, size in enumerate(sizes) for n in ((size, 1) if axis in axes else (size,))]
    margins = [m for axis in range(len(sizes)) for m in (((0, 0), (0, interior[axis])) if axis in axes else ((0, 0),))]
    wide = d.moved(Pad(), d.reshaped(x, *split), d.constant(np.array(margins, np.int32)), value)
    return d.reshaped(wide, *(size * (1 + interior[axis] * (axis in axes)) for axis, size in enumerate(sizes)))


def _why_no_pad(op: hlo.HloPad, types: CallTypes) -> str | None:
    x = types.input(0)
    if x.rank + sum(between > 0 for between in op.interior) > 16:
        return f"spreading its {x.rank} dimensions needs a rank above 16"
    return moves(op, types)


def _pad(d: Draft, op: hlo.HloPad, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Pad(Slice(Reshape(Pad(Reshape(x)))))"""
    x, value = operands
    return [padded(d, x, value, op.low, op.high, op.interior)]


def _why_no_dilation(op: Dilate, types: CallTypes) -> str | None:
    if types.input(1).value is None:
        return "the distances are not known before the run"
    return "it needs a rank above 16" if types.input(0).rank > 8 else moves(op, types)


def _dilate(d: Draft, op: Dilate, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Slice(Reshape(Pad(Reshape(x))))"""
    x, dilations, value = operands
    steps = d.type(dilations).value
    assert steps is not None
    none = [0] * steps.size
    return [padded(d, x, value, none, none, [int(step) - 1 for step in steps.reshape(-1)])]


DECOMPOSITIONS = {
    hlo.HloBroadcastInDim: (Decomposition(moves, _broadcast),),
    hlo.HloClamp: (Decomposition(always, _clamp), Decomposition(_why_not_wide, _clamp_wide)),
    hlo.HloSlice: (Decomposition(moves, _slice),),
    hlo.HloTranspose: (Decomposition(moves, _transpose),),
    hlo.HloDynamicSlice: (Decomposition(moves, _dynamic_slice),),
    hlo.HloDynamicUpdateSlice: (Decomposition(_why_no_row, _put_row), Decomposition(moves, _update)),
    DynamicUpdateSlice: (Decomposition(_why_no_row, _put_row_at),),
    hlo.HloIota: (Decomposition(_why_no_numbers, _iota),),
    hlo.HloPad: (Decomposition(_why_no_pad, _pad),),
    Dilate: (Decomposition(_why_no_dilation, _dilate),),
}
