"""Pooling and reductions of bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.window import Margins
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import Reduce, Reduction, axes_of, mean_multiplier
from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize
from onert_llvm.kernels.reduction.pool import PoolInt8
from onert_llvm.kernels.reduction.pool_int8 import WindowPoolInt8
from onert_llvm.kernels.reduction.reduce_int8 import Ending, Gather, ReduceColumnsInt8, ReduceRowsInt8
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane, counts, pooled_plane
from onert_llvm.lower.dtype_sets import BYTES
from onert_llvm.lower.strided_copy import move, operand, side
from onert_llvm.schedule.cost_model import strip
from onert_llvm.schedule.weight_packing import pack_columns, pack_reals, real_scaling, scaling

MOST_TAPS = 16
"""Elements of a window whose loads are all written out."""

_MOST_COUNTED = 1 << 15
"""Elements of an average: the sum of bytes, and half of the count, stay below 2**24; those of 16-bit numbers 2**31."""


def why_no_pool(op: Pool2D, types: CallTypes) -> str | None:
    """Why this backend does not pool the bytes; None if it does."""
    if types.input(0).dtype not in BYTES or op.kind is Pooling.L2:
        return "only the average and the greatest of bytes are native"
    return why_no_windows(op, types)


def why_no_windows(op: Pool2D, types: CallTypes) -> str | None:
    """Why windows do not slide over integers, whatever their bits; None if they do."""
    x, out = types.input(0), types.output
    if out.quantization is None or not out.quantization.per_tensor or op.activation.value.function is not None:
        return "its quantisation or activation has no integer form"
    if 0 in (x.shape + out.shape):
        return "a tensor has no elements"
    area = op.filter_height * op.filter_width
    return None if area <= _MOST_COUNTED else f"its window has {area} elements, expected at most {_MOST_COUNTED}"


def _covers(op: Pool2D, types: CallTypes) -> bool:
    """Whether one window covers the whole picture and nothing else."""
    x, out = types.input(0).shape, types.output.shape
    alone = (op.filter_height, op.filter_width) == x[1:3] and out[1:3] == (1, 1)
    return alone and not isinstance(op.padding, Margins)


def lower_pool(lowering: Lowering, operations: Sequence[int]) -> None:
    """Windows that slide, or one that covers all."""
    at, operation, op = lowering.single(operations, Pool2D)
    types = lowering.subgraph.types(operation)
    x, out = lowering.shape(operation.used[0]), lowering.shape(operation.outputs[0])
    average, signed = op.kind is Pooling.AVERAGE, types.output.dtype is DType.INT8
    if _covers(op, types):
        gather = Gather.AVERAGE if average else Gather.MAX
        low, high = op.activation.bounds(types.output)
        clamped = (low, high) != types.output.dtype.limits
        ending = Ending(gather, Requantize(clamped=clamped), signed)
        slots: dict[str, Slot] = {"count": x[1] * x[2], "low": low, "high": high}
        _reduce(lowering, at, Block(x[0], x[1] * x[2], x[3]), ending, slots)
        return
    plane = pooled_plane(op, x, out)
    cut = evolve(strip(plane.window, op.stride_width, 1, out[2], x[3], lowering.isa), near=plane.near)
    slots = pool_slots(lowering, at, plane) | {"ldc": x[3]}
    flops = math.prod(out) * plane.taps
    small = plane.taps <= MOST_TAPS
    algorithm = PoolInt8(cut, average, signed) if small else WindowPoolInt8(average, signed)
    lowering.emit(at, algorithm, slots, out[0] * out[1], operation.used, operation.outputs, flops)


def pool_slots(lowering: Lowering, at: int, geometry: Plane) -> dict[str, Slot]:
    """The slots of windows that slide over integers; those of an average count their pixels."""
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Pool2D)
    (source,), (result,) = operation.used, operation.outputs
    type_, average = lowering.type(result), op.kind is Pooling.AVERAGE
    low, high = op.activation.bounds(type_)
    around = np.full(geometry.channels, 0 if average else type_.dtype.limits[0], type_.dtype.numpy)
    slots: dict[str, Slot] = {
        **geometry.slots,
        "input": lowering.operand(source),
        "zero": lowering.constant(around),
        "c": lowering.operand(result),
        "channels": geometry.channels,
        "low": low,
        "high": high,
    }
    if average:
        slots["count"] = lowering.computed(partial(_counts, op), *geometry.size)
    return slots


def _counts(op: Pool2D, height: int, width: int) -> Array:
    out: Array = counts(op, (1, height, width, 1)).astype(np.int32)
    return out


def why_no_reduction(op: Reduce, types: CallTypes) -> str | None:
    """Why this backend does not reduce the bytes; None if it does."""
    x, axes, out = types.input(0), types.input(1), types.output
    if x.dtype not in BYTES or op.kind not in GATHERINGS:
        return "this reduction of these elements has no native form"
    if axes.value is None or 0 in x.shape:
        return "the axes are not constant or there are no elements"
    scaled = all(t.quantization is not None and t.quantization.per_tensor for t in (x, out))
    if GATHERINGS[op.kind] is Gather.SCALED:
        return None if scaled and block_of(x, axes)[0].count < 1 << 22 else "its sums have no native form"
    return None if x.quantization == out.quantization else "its results are brought to another scale"


GATHERINGS = {
    Reduction.MEAN: Gather.SCALED,
    Reduction.SUM: Gather.SCALED,
    Reduction.MAX: Gather.MAX,
    Reduction.MIN: Gather.MIN,
}


@frozen
class Block(Value):
    """Elements as `[outer, count, inner]`, of which the middle goes."""

    outer: int
    count: int
    inner: int


def block_of(x: TensorType, axes: TensorType) -> tuple[Block, tuple[int, ...] | None]:
    """The elements of a tensor whose axes go; and, where these do not lie side by side, the order in which they do."""
    assert axes.value is not None
    at = axes_of(axes.value, x.rank)
    shape = [d or 0 for d in x.shape]
    real = [i for i in at if shape[i] != 1]
    if not real:
        return Block(math.prod(shape), 1, 1), None
    first, last = real[0], real[-1]
    if any(shape[i] != 1 and i not in at for i in range(first, last)):
        kept = [i for i in range(x.rank) if i not in real]
        outer, count = (math.prod([shape[i] for i in part]) for part in (kept, real))
        return Block(outer, count, 1), (*kept, *real)
    sizes = (shape[:first], shape[first : last + 1], shape[last + 1 :])
    return Block(*(math.prod(s) for s in sizes)), None


def arranged(lowering: Lowering, at: int, order: tuple[int, ...] | None) -> tuple[Pointer, tuple[Access, ...]]:
    """Where a reduction's elements lie with those side by side that go, and what of it is no operand."""
    source = lowering.operation(at).used[0]
    if order is None:
        return lowering.operand(source), ()
    whole = operand(lowering, source)
    shape = tuple(lowering.shape(source)[i] for i in order)
    (copy,) = lowering.scratch(whole.nbytes)
    move(lowering, at, whole.at(whole.view.transpose(order)), side(copy.pointer, shape, whole.view.itemsize), (source,))
    return copy.pointer, (evolve(copy, write=False),)


def lower_reduction(lowering: Lowering, operations: Sequence[int]) -> None:
    """A reduction along neighbouring axes."""
    at, operation, op = lowering.single(operations, Reduce)
    types = lowering.subgraph.types(operation)
    before, after = types.input(0), types.output
    block, order = block_of(before, types.input(1))
    gather, signed = GATHERINGS[op.kind], after.dtype is DType.INT8
    if gather is not Gather.SCALED:
        _reduce(lowering, at, block, Ending(gather, Requantize(), signed), {}, order)
        return
    isa = lowering.isa
    bias = np.full(isa.f32, -before.zero_point * block.count, np.int64)
    if op.kind is Reduction.SUM:
        how = real_scaling(isa)
        columns = pack_reals(bias, np.array([before.scale / after.scale]), isa)
    else:
        multiplier = mean_multiplier(before, after, block.count)
        pair = np.array([multiplier.mantissa]), np.array([multiplier.shift])
        how = scaling(np.array([block.count * 255]), pair, after.zero_point)
        columns = pack_columns(how, bias, pair, after.zero_point, isa)
    slots: dict[str, Slot] = {"columns": lowering.constant(columns), "zero_point": after.zero_point}
    _reduce(lowering, at, block, Ending(gather, Requantize(how), signed), slots, order)


def _reduce(
    lowering: Lowering,
    at: int,
    block: Block,
    ending: Ending,
    own: dict[str, Slot],
    order: tuple[int, ...] | None = None,
) -> None:
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    x, copied = arranged(lowering, at, order)
    slots: dict[str, Slot] = {"x": x, "out": lowering.operand(target)}
    algorithm: Algorithm
    if block.inner == 1:
        algorithm, tiles = ReduceRowsInt8(ending), block.outer
        slots["width"] = block.count
    else:
        chunks = -(-block.inner // (lowering.isa.f32 * ReduceColumnsInt8.CHUNK))
        algorithm, tiles = ReduceColumnsInt8(ending), block.outer * chunks
        slots |= {"rows": block.count, "width": block.inner, "chunks": chunks}
    slots |= {name: own[name] for name in ending.slots}
    flops = block.outer * block.count * block.inner
    lowering.emit(at, algorithm, slots, tiles, () if copied else (source,), (target,), flops, copied)
