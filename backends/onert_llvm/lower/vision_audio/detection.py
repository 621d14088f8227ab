"""Detections from the heads of a network."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.vision_audio.detection import DetectionPostProcess
from onert.ir.quant import dequantize
from onert_llvm.command.command import Slot
from onert_llvm.kernels.vision_audio.detection import BestClass, Detect, Elements
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import BYTES

_WORK = 7
"""The number of 32-bit words of scratch memory per anchor."""


def why_not(op: DetectionPostProcess, types: CallTypes) -> str | None:
    """Why this backend does not run the detection; None if it does."""
    encodings, scores, anchors = (types.input(i) for i in range(3))
    if op.regular_nms or min(op.max_classes_per_detection, op.num_classes) > 1:
        return "several classes of an anchor have no native form"
    if any(not _plain(t) for t in (encodings, scores)) or anchors.value is None:
        return "its operands are not float32 or bytes of one scale, or the anchors not constant"
    if 0 in scores.shape or not math.isfinite(op.score_threshold):
        return "there are no anchors, or no threshold"
    return None


def _plain(type_: TensorType) -> bool:
    scaled = type_.quantization is not None and type_.quantization.per_tensor
    return type_.dtype is DType.FLOAT32 or (type_.dtype in BYTES and scaled)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Find the best class of each anchor, then select boxes."""
    at, operation, op = lowering.single(operations, DetectionPostProcess)
    encodings, scores, anchors = operation.used
    _, count, classes = lowering.shape(scores)
    room = lowering.isa.whole(count)
    best, label, work = lowering.scratch(4 * count, 4 * count, 4 * _WORK * room)
    own: dict[str, Slot] = {
        "width": classes,
        "first": classes - op.num_classes,
        "count": op.num_classes,
        "best": best.pointer,
        "label": label.pointer,
    }
    kind = _elements(lowering.type(scores))
    own |= _stored(lowering, "scores", scores)
    lowering.run(at, BestClass(kind), count, {"scores": scores}, {}, own, count * classes, (best, label))
    names = ("out_boxes", "out_labels", "out_scores", "out_count")
    slots: dict[str, Slot] = {
        **_stored(lowering, "encodings", encodings),
        "anchors": lowering.constant(_reals(lowering.type(anchors))),
        "best": best.pointer,
        "label": label.pointer,
        "work": work.pointer,
        "anchor_count": count,
        "room": room,
        "width": lowering.shape(encodings)[2],
        "threshold": float(np.float32(op.score_threshold)),
        "iou": float(np.float32(op.iou_threshold)),
        "slots": op.max_detections * op.max_classes_per_detection,
        "most": op.max_detections,
    }
    for side in "yxhw":
        slots[f"{side}_scale"] = float(np.float32(getattr(op, f"{side}_scale")))
    seen = (evolve(best, write=False), evolve(label, write=False), work)
    algorithm = Detect(_elements(lowering.type(encodings)))
    writes = dict(zip(names, operation.outputs, strict=True))
    lowering.run(at, algorithm, 1, {"encodings": encodings}, writes, slots, 40 * count, seen)


def _elements(type_: TensorType) -> Elements:
    return Elements(type_.dtype in BYTES, type_.dtype is DType.INT8)


def _stored(lowering: Lowering, name: str, operand: int) -> dict[str, Slot]:
    """The slots of a tensor's quantisation, if it has one."""
    type_ = lowering.type(operand)
    if type_.dtype not in BYTES:
        return {}
    return {f"{name}_scale": float(np.float32(type_.scale)), f"{name}_zero": type_.zero_point}


def _reals(type_: TensorType) -> Array:
    assert type_.value is not None
    real = type_.value if type_.quantization is None else dequantize(type_.value, type_.quantization)
    return np.ascontiguousarray(real, np.float32)
