"""Pooling, reductions and softmax of 16-bit integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import Reduce, Reduction, mean_multiplier
from onert.ir.ops.reduction.softmax import RECIPROCALS, Softmax, exponentials_of_16_bits
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.requantize_int16 import Rounding
from onert_llvm.kernels.reduction.pool_reduce_int16 import ReduceInt16, SoftmaxInt16, WindowPoolInt16
from onert_llvm.kernels.reduction.reduce_int8 import Gather
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import pooled_plane

from .int8_pool_reduce import GATHERINGS, Block, arranged, block_of, pool_slots, why_no_windows
from .int8_softmax import emit_rows

_MOST = 1 << 15
"""Numbers whose sum, with what is subtracted from each, fits 32 bits."""


def why_no_pool(op: Pool2D, types: CallTypes) -> str | None:
    """Why this backend does not pool; None if it does."""
    if types.input(0).dtype is not DType.INT16 or op.kind is Pooling.L2:
        return "only the average and the greatest of 16-bit numbers are native"
    return why_no_windows(op, types)


def lower_pool(lowering: Lowering, operations: Sequence[int]) -> None:
    """Windows that slide."""
    at, operation, op = lowering.single(operations, Pool2D)
    out = lowering.shape(operation.outputs[0])
    geometry = pooled_plane(op, lowering.shape(operation.used[0]), out)
    slots, flops = pool_slots(lowering, at, geometry), math.prod(out) * geometry.taps
    algorithm = WindowPoolInt16(Gather.AVERAGE if op.kind is Pooling.AVERAGE else Gather.MAX)
    lowering.emit(at, algorithm, slots, out[0] * out[1], operation.used, operation.outputs, flops)


def why_no_reduction(op: Reduce, types: CallTypes) -> str | None:
    """Why this backend does not reduce; None if it does."""
    x, axes, out = types.input(0), types.input(1), types.output
    if x.dtype is not DType.INT16 or op.kind not in GATHERINGS or axes.value is None or 0 in x.shape:
        return "this reduction of these elements has no native form"
    block, _ = block_of(x, axes)
    if GATHERINGS[op.kind] is not Gather.SCALED:
        return None if x.quantization == out.quantization else "its results are brought to another scale"
    if any(t.quantization is None or not t.quantization.per_tensor for t in (x, out)) or out.zero_point:
        return "its quantisation has no native form"
    return None if block.count <= _MOST else f"{block.count} numbers are added up, expected at most {_MOST}"


def lower_reduction(lowering: Lowering, operations: Sequence[int]) -> None:
    """A reduction along neighbouring axes."""
    at, operation, op = lowering.single(operations, Reduce)
    types = lowering.subgraph.types(operation)
    block, order = block_of(types.input(0), types.input(1))
    source, target = operation.used[0], operation.outputs[0]
    single = block.inner == 1
    chunks = 1 if single else -(-block.inner // lowering.isa.f32)
    x, copied = arranged(lowering, at, order)
    slots: dict[str, Slot] = {
        "x": x,
        "out": lowering.operand(target),
        "rows": block.count,
        "width": block.inner,
        "chunks": chunks,
    }
    gather = GATHERINGS[op.kind]
    rounding = Rounding.AWAY if op.kind is Reduction.SUM else Rounding.FIXED
    if gather is Gather.SCALED:
        slots |= _scaled(lowering, op, types, block)
    flops = block.outer * block.count * block.inner
    algorithm = ReduceInt16(gather, rounding, single)
    reads = () if copied else (source,)
    lowering.emit(at, algorithm, slots, block.outer * chunks, reads, (target,), flops, copied)


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
    """Why this backend does not run the softmax; None if it does."""
    x, out = types.input(0), types.output
    if x.dtype is not DType.INT16 or out.dtype is not DType.INT16 or 0 in x.shape:
        return "only 16-bit to 16-bit numbers are native"
    return None if op.in_fixed_point(out) else "its result is not quantised as fixed point wants it"


def lower_softmax(lowering: Lowering, operations: Sequence[int]) -> None:
    """Row by row."""
    at, operation, op = lowering.single(operations, Softmax)
    exps = exponentials_of_16_bits(lowering.type(operation.used[0]).scale, op.beta)
    emit_rows(lowering, at, SoftmaxInt16(), {"exps": exps.astype(np.int16), "inverses": RECIPROCALS.astype(np.int16)})
