"""Native detections equal those of the reference: order, ties, thresholds, overlaps, unused slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from cases.case import Case

from onert.ir import Quantization
from onert.ir.ops.vision_audio.detection import DetectionPostProcess
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import check, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
OP = DetectionPostProcess(10, 1, 7, 0.3, 0.5, 10.0, 10.0, 5.0, 5.0)


def _anchors(count: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    centres, sizes = rng.uniform(0, 1, (count, 2)), rng.uniform(0.1, 0.4, (count, 2))
    return np.concatenate([centres, sizes], 1).astype(np.float32)


def _case(op: DetectionPostProcess, count: int, classes: int, kind: str, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    code = (rng.standard_normal((1, count, 4)) * 2).astype(np.float32)
    scores = rng.uniform(0, 1, (1, count, classes)).astype(np.float32)
    if kind == "f32":
        return Case("", op, (code, scores, _anchors(count)), constant=(2,))
    dtype: Any = np.int8 if kind == "i8" else np.uint8
    zero = -128 if kind == "i8" else 0
    stored = (np.round(scores * 200) + zero).astype(dtype)  # coarse: many scores are equal
    coded = np.clip(np.round(code / 0.05) + zero + 128, zero, zero + 255).astype(dtype)
    quantization = (Quantization((0.05,), (zero + 128,)), Quantization((0.005,), (zero,)), None)
    return Case("", op, (coded, stored, _anchors(count)), quantization=quantization, constant=(2,))


def _run(case: Case, isa: Isa) -> None:
    check(subgraph_of(case), [a for a in case.inputs[:2] if a is not None], isa)


@ISAS
@pytest.mark.parametrize("kind", ["f32", "i8", "u8"])
@pytest.mark.parametrize(("count", "classes"), [(1, 7), (15, 8), (300, 8), (301, 7)])
def test_detections_equal_those_of_the_reference(isa: Isa, kind: str, count: int, classes: int) -> None:
    for seed in range(3):
        _run(_case(OP, count, classes, kind, seed), isa)


@ISAS
@pytest.mark.parametrize(
    "op",
    [
        evolve(OP, score_threshold=2.0),
        evolve(OP, max_detections=200),
        evolve(OP, iou_threshold=1.0),
        evolve(OP, max_detections=1),
        evolve(OP, num_classes=1, max_classes_per_detection=3),
    ],
    ids=["nothing", "few", "all", "one", "room"],
)
def test_thresholds_and_the_maximum_number_of_detections_are_respected(isa: Isa, op: DetectionPostProcess) -> None:
    _run(_case(op, 90, op.num_classes + 1, "u8"), isa)


def test_regular_nms_and_several_classes_per_detection_are_not_native() -> None:
    for op in (evolve(OP, regular_nms=True), evolve(OP, max_classes_per_detection=2)):
        assert why_not(subgraph_of(_case(op, 20, 8, "f32")))
