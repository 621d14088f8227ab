"""Pictures resized between pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import CallTypes, DType
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert_llvm.command.command import Slot
from onert_llvm.kernels.vision_audio import resize
from onert_llvm.lower.command_builder import Lowering

_TABLES = ("low", "high", "part")
_LARGER = 4
"""How many times as wide a picture becomes where rows are made first: below it measures as more work."""


def why_not(op: ResizeBilinear, types: CallTypes) -> str | None:
    """Why this backend does not resize so; None if it does."""
    if types.output.dtype is not DType.FLOAT32:
        return "only float32 is native"
    if types.input(1).value is None or 0 in types.input(0).shape:
        return "the new size is not known before the run, or nothing is left"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Bilinear resizing with tables of rows and columns: down, then across where that is less work."""
    at, operation, op = lowering.single(operations, ResizeBilinear)
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
    flops = 7 * n * height * width * c
    if width < _LARGER * w:
        lowering.emit(at, resize.ResizeBilinear(), slots, n * height, (source,), (result,), flops)
        return
    (room,) = lowering.scratch(n * height * w * c * 4)
    down = {name: slots[f"y_{name}"] for name in _TABLES}
    down |= {"in": slots["in"], "out": room.pointer, "inputs": h, "outputs": height, "width": w * c}
    down |= {"piece": 1, "pieces": height}
    lanes = lowering.isa.f32
    lowering.emit(at, resize.Blend(w * c >= lanes), down, n * height, (source,), (), accesses=(room,))
    across = {name: slots[f"x_{name}"] for name in _TABLES}
    across |= {"in": room.pointer, "out": slots["out"], "inputs": w, "outputs": width, "width": c}
    across |= {"piece": width, "pieces": 1}
    read = evolve(room, write=False)
    lowering.emit(at, resize.Blend(c >= lanes), across, n * height, (), (result,), flops, accesses=(read,))
