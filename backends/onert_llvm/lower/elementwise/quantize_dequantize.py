"""Between float32 and integers of 8 or 16 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Slot
from onert_llvm.kernels.elementwise.quantize_dequantize import DequantizeIntegers, QuantizeF32
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES

from .float_elementwise import matrix


def why_not(op: Quantize | Dequantize | Cast, types: CallTypes) -> str | None:
    """Why this backend does not convert the elements; None if it does."""
    x, out = types.input(0), types.output
    if 0 in out.shape:
        return "a tensor has no elements"
    stored = out if isinstance(op, Quantize) else x
    scaled = stored.quantization is not None and stored.quantization.per_tensor
    ends = (x.dtype, out.dtype) if isinstance(op, Quantize) else (out.dtype, x.dtype)
    if ends[0] is DType.FLOAT32 and ends[1] in (*BYTES, DType.INT16) and (scaled or isinstance(op, Cast)):
        return None
    return "this conversion has no native form"


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Element by element; a cast is quantised with a scale of 1."""
    (at,) = operations
    operation = lowering.operation(at)
    source, target = operation.used[0], operation.outputs[0]
    rows, width = matrix(lowering.shape(target), flat=True)
    stored = lowering.type(target) if isinstance(operation.op, Quantize) else lowering.type(source)
    plain = isinstance(operation.op, Cast)
    zero = 0 if plain else stored.zero_point
    slots: dict[str, Slot] = {
        "x": lowering.operand(source),
        "out": lowering.operand(target),
        "width": width,
        "scale": 1.0 if plain else float(np.float32(stored.scale)),
        "zero_point": zero,
    }
    algorithm: Algorithm
    short = stored.dtype is DType.INT16
    if isinstance(operation.op, Quantize):
        low, high = stored.dtype.limits
        algorithm = QuantizeF32(short)
        slots |= {"low": float(low - zero), "high": float(high - zero)}
    else:
        algorithm = DequantizeIntegers(stored.dtype is not DType.UINT8, short)
    lowering.emit(at, algorithm, slots, rows, (source,), (target,), rows * width)
