"""Bilinear resizing of images of bytes and of 16-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert.ir.symbolic.functions import of_lengths
from onert_llvm.command.command import Slot
from onert_llvm.irbuilder import I8, I16
from onert_llvm.kernels.vision_audio.pixels import Pixels
from onert_llvm.kernels.vision_audio.resize import BilinearIntegers, BilinearUint8, resize_room
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import QUANTIZED

from .float_resize import Axis, in_few_channels, in_pixels, row_tables


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
    few = in_few_channels(lowering, c, out_w)
    if few and dtype is DType.UINT8:
        axes = Axis(op, 1, 0, h, out_h), Axis(op, 2, 1, w, out_w)
        own = {"in": lowering.operand(source), "out": lowering.operand(target), **row_tables(lowering, axes[0])}
        in_pixels(lowering, at, axes, {**own, "in_h": h, "in_w": w, "out_h": out_h, "out_w": out_w}, I8)
        return
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
    if few:
        pixels = Pixels(c)
        slots |= {"rows": images * h, "shares": lowering.computed(partial(_parts, op, pixels.span), out_w, w)}
        kernel = evolve(kernel, pixels=pixels)
    lowering.run(at, kernel, tiles, *ends, slots, flops, (rooms,))


@of_lengths
def _parts(op: ResizeBilinear, span: int, count: int, inputs: int) -> Array:
    """The weight of the second input of each output along an axis, repeated for each lane of a pixel."""
    return op.steps(count, inputs)[2].astype(np.int32).repeat(span)


@of_lengths
def _records(op: ResizeBilinear, dtype: DType, count: int, inputs: int, step: int) -> Array:
    """For each output along an axis: its two inputs, `step` apart, and the weight of the second."""
    if dtype is DType.UINT8:
        low, high, real = op.positions(count, inputs)
        weight = real.astype(np.float32).view(np.int32)
    else:
        low, high, weight = op.steps(count, inputs)
    return np.stack([low * step, high * step, weight.astype(np.int64)], 1).astype(np.int64)
