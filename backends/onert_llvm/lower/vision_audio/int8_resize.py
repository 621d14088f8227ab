"""Bilinear resizing of byte images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert_llvm.command.command import Slot
from onert_llvm.kernels.vision_audio.resize import BilinearInt8, BilinearUint8, resize_room
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES


def why_not(op: ResizeBilinear, types: CallTypes) -> str | None:
    """Why this backend does not resize the image; None if it does."""
    if types.input(0).dtype not in BYTES or types.input(1).value is None or 0 in types.input(0).shape:
        return "only byte images with an output size that is known before the run are native"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Resize row by row of the output."""
    at, operation, op = lowering.single(operations, ResizeBilinear)
    source, target = operation.used[0], operation.outputs[0]
    signed = lowering.type(source).dtype is DType.INT8
    (images, h, w, c), (_, out_h, out_w, _) = lowering.shape(source), lowering.shape(target)
    slots: dict[str, Slot] = {
        "columns": lowering.constant(_records(op, out_w, w, c, signed)),
        "out_h": out_h,
        "out_w": out_w,
        "channels": c,
    }
    tiles, flops = images * out_h, 8 * images * out_h * out_w * c
    ends = {"x": source}, {"out": target}
    if not signed:
        slots |= {"lines": lowering.constant(_records(op, out_h, h, w * c, signed)), "image": h * w * c}
        lowering.run(at, BilinearUint8(), tiles, *ends, slots, flops)
        return
    size = resize_room(out_w * c, lowering.isa.f32)
    (rooms,) = lowering.scratch(size * lowering.callers)
    slots |= {"lines": lowering.constant(_records(op, out_h, h, 1, signed)), "in_h": h, "line": w * c}
    slots |= {"rooms": rooms.pointer, "room": size}
    lowering.run(at, BilinearInt8(), tiles, *ends, slots, flops, (rooms,))


def _records(op: ResizeBilinear, count: int, inputs: int, step: int, signed: bool) -> Array:
    """For each output along an axis: its two inputs, `step` apart, and the weight of the second."""
    if signed:
        low, high, weight = op.steps(count, inputs)
    else:
        low, high, real = op.positions(count, inputs)
        weight = real.astype(np.float32).view(np.int32)
    return np.stack([low * step, high * step, weight.astype(np.int64)], 1).astype(np.int64)
