"""Softmax of 8-bit and 16-bit integers, and its logarithm of 8-bit ones, in fixed point."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.reduction.softmax import (
    RECIPROCALS,
    LogSoftmax,
    Softmax,
    distances,
    exponentials,
    exponentials_of_16_bits,
    input_scaling,
)
from onert.ir.symbolic.trace import hint
from onert_llvm.command.command import Slot
from onert_llvm.kernels.reduction.integer_softmax import LogSoftmaxInt8, SoftmaxInt8, SoftmaxInt16
from onert_llvm.kernels.reduction.tabled_softmax import (
    LEAST_POWER,
    MOST_NARROW,
    PLANES,
    NarrowSoftmax,
    TabledSoftmax,
    runs,
)
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import QUANTIZED

_REGISTER = 64
_MOST_COMPUTED = 4
"""The most table entries computed per element of a row for which a lookup table pays."""
_LEAST_NARROW = 16
"""The fewest elements for which a vector register pays."""


def why_not(op: Softmax, types: CallTypes) -> str | None:
    """Why this backend does not run the softmax; None if it does."""
    x, out = types.input(0), types.output
    wider = x.dtype is DType.INT8 and out.dtype is DType.INT16
    if x.dtype not in QUANTIZED or not (wider or out.dtype is x.dtype) or 0 in x.shape:
        return "only softmax from bytes to bytes or int16, and from int16 to int16, is native"
    return None if op.in_fixed_point(out) else "its result lacks the quantisation that fixed point requires"


def why_no_logarithm(op: LogSoftmax, types: CallTypes) -> str | None:
    """Why this backend does not run the logarithm; None if it does."""
    x, out = types.input(0), types.output
    native = 0 not in x.shape and op.in_fixed_point(x, out) and input_scaling(x.scale)[1] >= 0
    return None if native else "only logarithms of bytes in steps of 1/16, of steps of at least 2**-26, are native"


def lower_logarithm(lowering: Lowering, operations: Sequence[int]) -> None:
    """Logarithms of softmax row by row, with tables."""
    at, operation, _ = lowering.single(operations, LogSoftmax)
    (source,), (target,) = operation.used, operation.outputs
    x, shape = lowering.type(source), lowering.shape(source)
    (mantissa, shift, _), far = input_scaling(x.scale), int(np.count_nonzero(distances(x.scale) > -(1 << 30)))
    slots: dict[str, Slot] = {"width": shape[-1], "mantissa": mantissa, "shift": shift, "far": far}
    slots["shares"] = lowering.constant(exponentials(x.scale)[2].astype(np.int32))
    algorithm = LogSoftmaxInt8(x.dtype is DType.INT8)
    lowering.run(at, algorithm, math.prod(shape[:-1]), {"x": source}, {"out": target}, slots, 4 * math.prod(shape))


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Softmax row by row, with tables."""
    at, operation, op = lowering.single(operations, Softmax)
    (source,), (target,) = operation.used, operation.outputs
    x, shape = lowering.type(source), lowering.shape(source)
    if x.dtype is DType.INT16:
        exps = exponentials_of_16_bits(x.scale, op.beta)
        algorithm: SoftmaxInt8 | SoftmaxInt16 | TabledSoftmax | NarrowSoftmax = SoftmaxInt16()
        tables: dict[str, Array] = {"exps": exps.astype(np.int16), "inverses": RECIPROCALS.astype(np.int16)}
    else:
        kept, powers, shares = exponentials(op.beta * x.scale)
        powers, bits = np.where(kept, powers, 0).astype(np.int32), lowering.type(target).dtype.bits
        count = -(-int(np.count_nonzero(powers >= LEAST_POWER)) // _REGISTER)
        tabled = bits == 8 and runs(lowering.isa)
        rounded = np.array_equal(shares, (powers.astype(np.int64) + (1 << 11)) >> 12)
        if tabled and hint(shape[-1]) >= _LEAST_NARROW and shape[-1] <= MOST_NARROW and rounded:
            algorithm = NarrowSoftmax(x.dtype is DType.INT8)
            tables = {"planes": powers.view(np.uint8).reshape(-1, 4).T.copy()}
        elif tabled and count * _REGISTER <= _MOST_COMPUTED * hint(shape[-1]):
            algorithm = TabledSoftmax(count, x.dtype is DType.INT8)
            tables = {"powers": powers, "planes": np.stack([shares >> 8 * i for i in range(PLANES)]).astype(np.uint8)}
        else:
            algorithm = SoftmaxInt8(x.dtype is DType.INT8, bits)
            tables = {"powers": powers, "shares": shares.astype(np.int32)}
    slots: dict[str, Slot] = {name: lowering.constant(table) for name, table in tables.items()}
    slots["width"] = shape[-1]
    lowering.run(at, algorithm, math.prod(shape[:-1]), {"x": source}, {"out": target}, slots, 4 * math.prod(shape))
