"""Pooling, reductions and softmax of 16-bit integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.pool import Pool2D, Pooling
from onert.ir.ops.reduce import Reduce, Reduction, mean_multiplier
from onert.ir.ops.softmax import RECIPROCALS, Softmax, exponentials_of_16_bits
from onert.ir.ops.window import Window
from onert_llvm.kernels.gather_int16 import ReduceInt16, SoftmaxInt16, WindowPoolInt16
from onert_llvm.kernels.reduce_int8 import Gather
from onert_llvm.kernels.short_scaling import Rounding

from .builder import Lowering
from .command import Slot
from .integer_pooling import Block, block_of, counts, pooled_plane

_MOST = 1 << 15
"""Numbers whose sum, with what is subtracted from each, fits 32 bits."""

_GATHER = {
    Reduction.MEAN: Gather.SCALED,
    Reduction.SUM: Gather.SCALED,
    Reduction.MAX: Gather.MAX,
    Reduction.MIN: Gather.MIN,
}


def why_no_pool(op: Pool2D, types: CallTypes) -> str | None:
    """Why this backend does not pool; None where it does."""
    x, out = types.input(0), types.output
    if x.dtype is not DType.INT16 or op.kind is Pooling.L2:
        return "only the average and the greatest of 16-bit numbers are native"
    if out.quantization is None or not out.quantization.per_tensor or op.activation.value.function is not None:
        return "its quantisation or activation has no integer form"
    if 0 in (x.shape + out.shape):
        return "a tensor has no elements"
    area = op.filter_height * op.filter_width
    return None if area <= _MOST else f"its window has {area} elements, expected at most {_MOST}"


def lower_pool(lowering: Lowering, operations: Sequence[int]) -> None:
    """Windows that slide."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Pool2D)
    types = lowering.subgraph.types(operation)
    x, out = lowering.shape(operation.used[0]), lowering.shape(operation.outputs[0])
    low, high = op.activation.bounds(types.output)
    average = op.kind is Pooling.AVERAGE
    windows = [
        Window(op.filter_height, op.stride_height, 1, op.padding),
        Window(op.filter_width, op.stride_width, 1, op.padding),
    ]
    slots: dict[str, Slot] = {
        **pooled_plane(x, out, windows).slots,
        "input": lowering.operand(operation.used[0]),
        "zero": lowering.constant(np.full(x[3], 0 if average else -(1 << 15), np.int16)),
        "c": lowering.operand(operation.outputs[0]),
        "channels": x[3],
        "low": low,
        "high": high,
    }
    if average:
        slots["count"] = lowering.constant(counts(windows, x))
    flops = int(np.prod(out, dtype=np.int64)) * op.filter_height * op.filter_width
    algorithm = WindowPoolInt16(Gather.AVERAGE if average else Gather.MAX)
    lowering.emit(at, algorithm, slots, out[0] * out[1], operation.used, operation.outputs, flops)


def why_no_reduction(op: Reduce, types: CallTypes) -> str | None:
    """Why this backend does not reduce; None where it does."""
    x, axes, out = types.input(0), types.input(1), types.output
    if x.dtype is not DType.INT16 or op.kind not in _GATHER or axes.value is None or 0 in x.shape:
        return "this reduction of these elements has no native form"
    block = block_of(x, axes)
    if block is None:
        return "its axes do not lie side by side"
    if _GATHER[op.kind] is not Gather.SCALED:
        return None if x.quantization == out.quantization else "its results are brought to another scale"
    if any(t.quantization is None or not t.quantization.per_tensor for t in (x, out)) or out.zero_point:
        return "its quantisation has no native form"
    return None if block.count <= _MOST else f"{block.count} numbers are added up, expected at most {_MOST}"


def lower_reduction(lowering: Lowering, operations: Sequence[int]) -> None:
    """A reduction along neighbouring axes."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Reduce)
    types = lowering.subgraph.types(operation)
    block = block_of(types.input(0), types.input(1))
    assert block is not None
    source, target = operation.used[0], operation.outputs[0]
    single = block.inner == 1
    chunks = 1 if single else -(-block.inner // lowering.isa.f32)
    slots: dict[str, Slot] = {
        "x": lowering.operand(source),
        "out": lowering.operand(target),
        "rows": block.count,
        "width": block.inner,
        "chunks": chunks,
    }
    gather = _GATHER[op.kind]
    rounding = Rounding.AWAY if op.kind is Reduction.SUM else Rounding.FIXED
    if gather is Gather.SCALED:
        slots |= _scaled(lowering, op, types, block)
    flops = block.outer * block.count * block.inner
    algorithm = ReduceInt16(gather, rounding, single)
    lowering.emit(at, algorithm, slots, block.outer * chunks, (source,), (target,), flops)


def _scaled(lowering: Lowering, op: Reduce, types: CallTypes, block: Block) -> dict[str, Slot]:
    """The slots of `ShortScaling` for one register, all of whose lanes are the same."""
    before, after, lanes = types.input(0), types.output, lowering.isa.f32
    low, high = after.dtype.limits
    bias = np.full(lanes, -before.zero_point * block.count, np.int32)
    if op.kind is Reduction.SUM:
        factors = np.full(lanes, before.scale / after.scale)
    else:
        multiplier = mean_multiplier(before, after, block.count)
        fields = (multiplier.mantissa, max(-multiplier.shift, 0), max(multiplier.shift, 0))
        factors = np.repeat(np.array(fields, np.int32), lanes)
    return {"bias": lowering.constant(bias), "factors": lowering.constant(factors), "low": low, "high": high}


def why_no_softmax(op: Softmax, types: CallTypes) -> str | None:
    """Why this backend does not run the softmax; None where it does."""
    x, out = types.input(0), types.output
    if x.dtype is not DType.INT16 or out.dtype is not DType.INT16 or 0 in x.shape:
        return "only 16-bit numbers to such are native"
    return None if op.in_fixed_point(out) else "its result is not quantised as fixed point wants it"


def lower_softmax(lowering: Lowering, operations: Sequence[int]) -> None:
    """Row by row."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Softmax)
    source, target = operation.used[0], operation.outputs[0]
    shape = lowering.shape(source)
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    exps = exponentials_of_16_bits(lowering.type(source).scale, op.beta)
    slots: dict[str, Slot] = {
        "x": lowering.operand(source),
        "out": lowering.operand(target),
        "width": shape[-1],
        "exps": lowering.constant(exps.astype(np.int16)),
        "inverses": lowering.constant(RECIPROCALS.astype(np.int16)),
    }
    lowering.emit(at, SoftmaxInt16(), slots, rows, (source,), (target,), 4 * rows * shape[-1])
