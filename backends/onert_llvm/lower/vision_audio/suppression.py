"""Non-maximum suppression of boxes, of all boxes together or class by class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.vision_audio.boxes import CountedBoxes
from onert.ir.ops.vision_audio.detection import NonMaxSuppression
from onert_llvm.command.command import Slot
from onert_llvm.kernels.vision_audio.suppression import ClassBoxes, Suppress
from onert_llvm.lower.command_builder import Lowering

_FIELDS = 5


def why_not(op: NonMaxSuppression, types: CallTypes) -> str | None:
    """Why this backend does not select the boxes; None if it does."""
    given = (t for i, t in enumerate(types.inputs) if i != 2 and t is not None)
    if any(t.dtype is not DType.FLOAT32 for t in given):
        return "only float32 is native"
    if 0 in types.input(0).shape or 0 in types.outputs[0].shape:
        return "there are no boxes"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Select boxes one after another."""
    at, operation, _ = lowering.single(operations, NonMaxSuppression)
    boxes, scores, _, iou, threshold, *sigma = operation.used
    indices, *kept, found = operation.outputs
    count = lowering.shape(boxes)[0]
    room = lowering.isa.whole(count)
    work, left = lowering.scratch(4 * _FIELDS * room, 8 * room)
    slots: dict[str, Slot] = {
        "work": work.pointer,
        "left": left.pointer,
        "room": room,
        "boxes_count": count,
        "most": lowering.shape(indices)[0],
    }
    reads, writes = {"boxes": boxes, "scores": scores, "iou": iou, "threshold": threshold}, {"indices": indices}
    if sigma:
        reads, writes = reads | {"sigma": sigma[0]}, writes | {"chosen": kept[0]}
    flops = 20 * count * lowering.shape(indices)[0]
    lowering.run(at, Suppress(bool(sigma)), 1, reads, {**writes, "count": found}, slots, flops, (work, left))


def why_not_classes(op: CountedBoxes, types: CallTypes) -> str | None:
    """Why this backend does not select the boxes; None if it does."""
    if any(t is not None and t.dtype is not DType.FLOAT32 for i, t in enumerate(types.inputs) if i != 2):
        return "only float32 is native"
    if types.input(2).dtype not in (DType.INT32, DType.INT64):
        return f"a limit of type {types.input(2).dtype.text} has no native form"
    if 0 in types.input(1).shape or op.bound == 0:
        return "there are no boxes"
    return None


def lower_classes(lowering: Lowering, operations: Sequence[int]) -> None:
    """Select boxes class by class."""
    at, operation, op = lowering.single(operations, CountedBoxes)
    names = ("boxes", "scores", "most", "iou", "least")
    reads = {name: i for name, i in zip(names, operation.inputs, strict=False) if i is not None}
    found, count = operation.outputs
    pictures, classes, own = lowering.shape(reads["scores"])
    room = lowering.isa.whole(own)
    more = room + lowering.isa.f32  # the kernel also stores what follows the last score
    work, left, tops, places = lowering.scratch(8 * _FIELDS * room, 8 * more, 8 * more, 8 * more)
    slots: dict[str, Slot] = {
        "work": work.pointer,
        "left": left.pointer,
        "tops": tops.pointer,
        "places": places.pointer,
        "room": room,
        "pictures": pictures,
        "classes": classes,
        "own": own,
        "bound": op.bound,
    }
    if "iou" not in reads:
        slots["iou"] = lowering.constant(np.zeros(1, np.float32))
    kernel = ClassBoxes(op.centred, lowering.type(reads["most"]).dtype is DType.INT64, "least" in reads)
    flops = 60 * own * op.bound
    lowering.run(at, kernel, 1, reads, {"found": found, "count": count}, slots, flops, (work, left, tops, places))
