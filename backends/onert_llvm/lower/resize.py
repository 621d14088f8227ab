"""Pictures resized between pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.resize import ResizeBilinear
from onert_llvm.kernels import resize

from .builder import Lowering
from .command import Slot


def why_not(op: ResizeBilinear, types: CallTypes) -> str | None:
    """Why this backend does not resize so; None where it does."""
    if types.output.dtype is not DType.FLOAT32:
        return "only float32 is native"
    if types.input(1).value is None or 0 in (*types.input(0).shape, *types.output.shape):
        return "the new size is not known before the run, or nothing is left"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Bilinear resizing with tables of rows and columns."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, ResizeBilinear)
    source, result = operation.used[0], operation.outputs[0]
    n, h, w, c = lowering.shape(source)
    _, height, width, _ = lowering.shape(result)
    slots: dict[str, Slot] = {
        "in": lowering.operand(source),
        "out": lowering.operand(result),
        "in_h": h,
        "in_w": w,
        "out_h": height,
        "out_w": width,
        "channels": c,
    }
    for axis, count, inputs in (("y", height, h), ("x", width, w)):
        low, high, part = op.positions(count, inputs)
        slots |= {f"{axis}_{name}": lowering.constant(a.astype(np.int32)) for name, a in (("low", low), ("high", high))}
        slots[f"{axis}_part"] = lowering.constant(part.astype(np.float32))
    lowering.emit(at, resize.ResizeBilinear(), slots, n * height, (source,), (result,), 7 * n * height * width * c)
