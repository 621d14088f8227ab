"""Sums, differences and products of 8-bit tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.fixed_point import quantize_multiplier
from onert.ir.ops.binary import Binary, BinaryKind
from onert_llvm.abi import Algorithm
from onert_llvm.kernels.elementwise import Reach
from onert_llvm.kernels.elementwise_int8 import AddInt8, MultiplyInt8

from .builder import Lowering
from .command import Slot
from .elementwise import matrix
from .expressions import spread

_KINDS = (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)
_LEFT = 20
"""Bits by which TFLite lifts the sides of a sum before it scales them (kernels/add.cc)."""


def why_not(op: Binary, types: CallTypes) -> str | None:
    """Why this backend does not run the integer operation; None where it does."""
    x, y, output = types.input(0), types.input(1), types.output
    if op.kind not in _KINDS:
        return "it has no native integer form"
    if x.dtype not in (DType.INT8, DType.UINT8) or y.dtype is not x.dtype or output.dtype is not x.dtype:
        return "only 8-bit operands are native"
    if any(t.quantization is None for t in (x, y, output)) or op.activation.value.function is not None:
        return "its quantisation or activation has no integer form"
    if 0 in output.shape or x.shape != output.shape or spread(y.shape, output.shape) not in (Reach.FULL, Reach.ROW):
        return "its operands broadcast in a way that has no native form"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """The operation as one loop over rows."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Binary)
    types = lowering.subgraph.types(operation)
    x, y, out = types.input(0), types.input(1), types.output
    how = spread(y.shape, out.shape)
    result = operation.outputs[0]
    rows, width = matrix(lowering.shape(result), flat=how is Reach.FULL)
    low, high = op.activation.bounds(out)
    slots: dict[str, Slot] = {
        "x": lowering.operand(operation.used[0]),
        "y": lowering.operand(operation.used[-1]),
        "y_step": width if how is Reach.FULL else 0,
        "x_zero": x.zero_point,
        "y_zero": y.zero_point,
        "out": lowering.operand(result),
        "width": width,
        "zero_point": out.zero_point,
        "low": low,
        "high": high,
    }
    signed = x.dtype is DType.INT8
    algorithm: Algorithm
    if op.kind is BinaryKind.MUL:
        algorithm = MultiplyInt8(signed)
        slots |= _multiplier("out", float(np.float32(x.scale) * np.float32(y.scale) / np.float32(out.scale)))
    else:
        algorithm = AddInt8(signed, op.kind is BinaryKind.SUB)
        twice = 2.0 * max(x.scale, y.scale)
        slots |= _multiplier("x", x.scale / twice) | _multiplier("y", y.scale / twice)
        slots |= _multiplier("out", twice / ((1 << _LEFT) * out.scale))
    lowering.emit(at, algorithm, slots, rows, operation.used, (result,), rows * width)


def _multiplier(side: str, real: float) -> dict[str, Slot]:
    """The slots of a fixed-point multiplier."""
    found = quantize_multiplier(real)
    return {
        f"{side}_mantissa": found.mantissa,
        f"{side}_right": max(-found.shift, 0),
        f"{side}_left": max(found.shift, 0),
    }
