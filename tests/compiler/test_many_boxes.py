"""Suppression among many boxes: native while a run can afford that all are kept, otherwise quick in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.fill import FirstEntries
from onert.ir.ops.vision_audio.boxes import BoxesPerClass

from .counted_rows import evaluated


def _suppression(count: int, *, centred: bool = False) -> Package:
    """All boxes of one class may be kept."""
    b = Builder()
    boxes = b.input(TensorType(DType.FLOAT32, (1, count, 4)), "boxes")
    scores = b.input(TensorType(DType.FLOAT32, (1, 1, count)), "scores")
    found = b.add(BoxesPerClass(centred), boxes, scores, b.constant(np.int64(count)), b.constant(np.float32(0.5)))
    return Package((b.model([found]),), "suppression")


def _given(count: int, kind: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 20, (count, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(-4, 6, (count, 2))], 1)
    if kind == "of several classes, far from one another":
        boxes += 100 * rng.integers(0, 9, (count, 1))
    elif kind == "tall":
        boxes[:, 2] += 500
    elif kind == "some not finite":
        boxes[::7, 1], boxes[1::7, 2], boxes[2::7, 3] = np.nan, np.inf, -np.inf
    elif kind == "very small at a great distance":
        boxes = 1e6 + boxes.round() / 16
    return boxes.astype(np.float32)[None], rng.uniform(0, 1, (1, 1, count)).round(2).astype(np.float32)


def _kept_by_definition(boxes: Array, scores: Array, most: int, overlap: float) -> list[int]:
    """Each box is compared with all that were kept before."""
    sides = boxes.astype(np.float64)
    low, high = np.minimum(sides[:, :2], sides[:, 2:]), np.maximum(sides[:, :2], sides[:, 2:])
    area = np.prod(high - low, axis=1)
    kept: list[int] = []
    for at in np.argsort(-scores, kind="stable"):
        shared = np.prod(np.maximum(np.minimum(high[kept], high[at]) - np.maximum(low[kept], low[at]), 0), axis=1)
        if len(kept) < most and not (shared > overlap * (area[kept] + area[at] - shared)).any():
            kept.append(int(at))
    return kept


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # infinite sides are intended
@pytest.mark.parametrize("overlap", [-0.1, 0.0, 0.3, 1.0, np.nan])
@pytest.mark.parametrize(
    "kind",
    [
        "close together",
        "of several classes, far from one another",
        "tall",
        "some not finite",
        "very small at a great distance",
    ],
)
def test_only_boxes_that_may_share_area_are_compared_and_the_same_are_kept(kind: str, overlap: float) -> None:
    boxes, scores = _given(150, kind)
    for most in (0, 5, 150):
        found = BoxesPerClass().evaluate(boxes, scores, np.int64([most]), np.float32([overlap]))
        expected = _kept_by_definition(boxes[0], scores[0, 0], most, float(np.float32(overlap)))
        assert found[:, 2].tolist() == expected


def test_ten_thousand_boxes_are_selected_natively_though_all_may_be_kept() -> None:
    given = _given(10_000, "of several classes, far from one another")
    package = _suppression(10_000)
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) == {FirstEntries}
    (mine,) = onert.Execution(program).run(given).values()
    (theirs,) = onert.Execution(onert.compile(package, backends=("reference",))).run(given).values()
    np.testing.assert_array_equal(mine, theirs, strict=True)


def test_a_model_with_more_boxes_than_a_run_can_compare_is_compiled_all_the_same() -> None:
    program = onert.compile(_suppression(60_000), num_threads=1)
    assert evaluated(program) == {BoxesPerClass}


def test_a_run_with_a_higher_limit_compares_more_boxes_natively() -> None:
    program = onert.compile(_suppression(60_000), num_threads=1, max_work=10**12)
    assert evaluated(program) == {FirstEntries}
