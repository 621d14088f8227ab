"""Reductions of quantised 8-bit and 16-bit integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.reduction.reduce import Reduce, Reduction, axes_of, mean_multiplier
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, Scaling
from onert_llvm.kernels.arithmetic.requantize_int16 import Rounding, ShortScaling
from onert_llvm.kernels.reduction.fold import Fold
from onert_llvm.kernels.reduction.quantized_elements import Quantized
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS, QUANTIZED
from onert_llvm.lower.strided_copy import move, operand, side
from onert_llvm.schedule.weight_packing import pack_columns, pack_reals, real_scaling, scaling
from onert_llvm.target.isa import Isa

from .block import FOLDS, Block, reduction

_MOST = {1: (1 << 22) - 1, 2: 1 << 15}
"""The most integers of this size in bytes whose sum, less their zero points, fits in 32 bits."""


def why_not(op: Reduce, types: CallTypes) -> str | None:
    """Why this backend does not reduce the elements; None if it does."""
    x, axes, out = types.input(0), types.input(1), types.output
    if x.dtype not in QUANTIZED or op.kind not in FOLDS:
        return "this reduction of these elements has no native form"
    if axes.value is None or 0 in x.shape:
        return "the axes are not constant or there are no elements"
    if FOLDS[op.kind] is not Fold.SUM:
        return None if x.quantization == out.quantization else "its result has other quantisation parameters"
    if any(t.quantization is None or not t.quantization.per_tensor for t in (x, out)):
        return "its quantisation has no native form"
    if x.dtype is DType.INT16 and out.zero_point:
        return "its quantisation has no native form"
    (block, _), most = _block(x, axes), _MOST[x.dtype.itemsize]
    return None if block.count <= most else f"it adds {block.count} numbers, expected at most {most}"


def _block(x: TensorType, axes: TensorType) -> tuple[Block, tuple[int, ...] | None]:
    """The tensor as a block to reduce; and the order of axes that makes reduced axes adjacent, if they are not."""
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


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A reduction along adjacent axes; others are first made adjacent by a transposed copy."""
    at, operation, op = lowering.single(operations, Reduce)
    types = lowering.subgraph.types(operation)
    x, out, fold = types.input(0), types.output, FOLDS[op.kind]
    block, order = _block(x, types.input(1))
    elements, slots = Quantized(fold, KINDS[out.dtype]), {}
    if fold is Fold.SUM:
        how, slots = (_shorts if out.dtype is DType.INT16 else _bytes)(lowering, op, types, block)
        elements = evolve(elements, scaling=how)
    if order is None:
        reduction(lowering, at, block, elements, slots)
        return
    whole = operand(lowering, operation.used[0])
    shape = tuple(lowering.shape(operation.used[0])[i] for i in order)
    (copy,) = lowering.scratch(whole.nbytes)
    there = side(copy.pointer, shape, whole.view.itemsize)
    move(lowering, at, whole.at(whole.view.transpose(order)), there, operation.used[:1])
    reduction(lowering, at, block, elements, slots, copy.pointer, accesses=(evolve(copy, write=False),))


def _bytes(lowering: Lowering, op: Reduce, types: CallTypes, block: Block) -> tuple[Requantize, dict[str, Slot]]:
    """How sums of bytes are scaled, and the slots for one register of them."""
    before, after = (type_.with_shape(()) for type_ in (types.input(0), types.output))
    how = real_scaling(lowering.isa)
    if op.kind is Reduction.MEAN:
        how = Scaling.WIDE  # which is right for every count
        if not is_symbolic(block.count):
            how = scaling(np.array([block.count * 255]), _fixed(before, after, block.count), after.zero_point)
    columns = lowering.computed(partial(_byte_columns, op.kind, how, before, after, lowering.isa), block.count)
    return Requantize(how), {"columns": columns, "zero_point": after.zero_point}


def _byte_columns(kind: Reduction, how: Scaling, before: TensorType, after: TensorType, isa: Isa, count: int) -> Array:
    """What `Requantize` reads for a sum or mean of `count` bytes."""
    bias = np.full(isa.f32, -before.zero_point * count, np.int64)
    if kind is Reduction.SUM:
        return pack_reals(bias, np.array([before.scale / after.scale]), isa)
    return pack_columns(how, bias, _fixed(before, after, count), after.zero_point, isa)


def _fixed(before: TensorType, after: TensorType, count: int) -> tuple[Array, Array]:
    """The mantissa and the shift of a mean's multiplier."""
    multiplier = mean_multiplier(before, after, count)
    return np.array([multiplier.mantissa]), np.array([multiplier.shift])


def _shorts(lowering: Lowering, op: Reduce, types: CallTypes, block: Block) -> tuple[ShortScaling, dict[str, Slot]]:
    """The same for 16-bit integers."""
    before, after, lanes = types.input(0).with_shape(()), types.output.with_shape(()), lowering.isa.f32
    low, high = after.dtype.limits
    bias = lowering.computed(partial(_short_bias, lanes, before.zero_point), block.count)
    factors = lowering.computed(partial(_short_factors, op.kind, before, after, lanes), block.count)
    rounding = Rounding.AWAY if op.kind is Reduction.SUM else Rounding.FIXED
    return ShortScaling(rounding), {"bias": bias, "factors": factors, "low": low, "high": high}


@of_lengths
def _short_bias(lanes: int, zero_point: int, count: int) -> Array:
    return np.full(lanes, -zero_point * count, np.int32)


@of_lengths
def _short_factors(kind: Reduction, before: TensorType, after: TensorType, lanes: int, count: int) -> Array:
    """The factor of sums, or the fields of a mean's multiplier."""
    if kind is Reduction.SUM:
        return np.full(lanes, before.scale / after.scale)
    multiplier = mean_multiplier(before, after, count)
    fields = multiplier.mantissa, max(-multiplier.shift, 0), max(multiplier.shift, 0)
    return np.repeat(np.array(fields, np.int32), lanes)
