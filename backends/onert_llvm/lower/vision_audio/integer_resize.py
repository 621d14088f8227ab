"""Bilinear resizing of images of bytes and of 16-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert.ir.symbolic.functions import of_lengths
from onert_llvm.command.command import Slot
from onert_llvm.irbuilder import I8, I16
from onert_llvm.kernels.vision_audio.resize import BilinearIntegers, BilinearUint8, resize_room
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import QUANTIZED


def why_not(op: ResizeBilinear, types: CallTypes) -> str | None:
    """Why this backend does not resize the image; None if it does."""
    if types.input(0).dtype not in QUANTIZED or types.input(1).value is None or 0 in types.input(0).shape:
        return "only images of 8- and 16-bit integers with an output size that is known before the run are native"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Resize row by row of the output."""
    at, operation, op = lowering.single(operations, ResizeBilinear)
    source, target = operation.used[0], operation.outputs[0]
    dtype = lowering.type(source).dtype
    (images, h, w, c), (_, out_h, out_w, _) = lowering.shape(source), lowering.shape(target)
    records = partial(_records, op, dtype)
    slots: dict[str, Slot] = {
        "columns": lowering.computed(records, out_w, w, c),
        "out_h": out_h,
        "out_w": out_w,
        "channels": c,
    }
    tiles, flops = images * out_h, 8 * images * out_h * out_w * c
    ends = {"x": source}, {"out": target}
    if dtype is DType.UINT8:
        slots |= {"lines": lowering.computed(records, out_h, h, w * c), "image": h * w * c}
        lowering.run(at, BilinearUint8(), tiles, *ends, slots, flops)
        return
    size = resize_room(out_w * c, lowering.isa.f32)
    (rooms,) = lowering.scratch(size * lowering.callers)
    slots |= {"lines": lowering.computed(records, out_h, h, 1), "in_h": h, "line": w * c}
    slots |= {"rooms": rooms.pointer, "room": size}
    kernel = BilinearIntegers(I8 if dtype is DType.INT8 else I16)
    lowering.run(at, kernel, tiles, *ends, slots, flops, (rooms,))


@of_lengths
def _records(op: ResizeBilinear, dtype: DType, count: int, inputs: int, step: int) -> Array:
    """For each output along an axis: its two inputs, `step` apart, and the weight of the second."""
    if dtype is DType.UINT8:
        low, high, real = op.positions(count, inputs)
        weight = real.astype(np.float32).view(np.int32)
    else:
        low, high, weight = op.steps(count, inputs)
    return np.stack([low * step, high * step, weight.astype(np.int64)], 1).astype(np.int64)
