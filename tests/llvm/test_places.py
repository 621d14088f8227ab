"""Max pooling with indices, its inverse, and non-max suppression run natively and match their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import DType, Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.reduction.unpool import MaxPoolWithArgmax2D, MaxPoolWithIndices, MaxUnpool2D
from onert.ir.ops.vision_audio.detection import NonMaxSuppression
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import check, evaluated, natively, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SHAPES = [(1, 4, 6, 3), (2, 5, 7, 19)]
WINDOWS = [
    (2, 2, Padding.VALID, 2, 2),
    (3, 2, Padding.SAME, 2, 1),
    (5, 9, Padding.SAME, 3, 4),
    (2, 2, Padding.VALID, 3, 4),
]
"""The last one has strides longer than its windows, so that unpooling starts outside the image."""


def _pictures(shape: tuple[int, ...], seed: int = 0) -> Array:
    x = np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)
    x.reshape(-1)[::17] = np.nan
    x.reshape(-1)[5:25] = -np.inf
    return x


@ISAS
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_max_pools_return_indices(isa: Isa, shape: tuple[int, ...], window: tuple[int, int, Padding, int, int]) -> None:
    x = _pictures(shape)
    ops: list[Op] = [MaxPoolWithArgmax2D(*window), MaxPoolWithArgmax2D(*window, Activation.RELU6)]
    ops += [MaxPoolWithIndices(*window, index=i, batched=b) for i in (DType.INT32, DType.INT64) for b in (False, True)]
    for op in ops:
        check(*single(op, x), isa, threads=2)


@ISAS
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_max_unpool_matches_its_definition(
    isa: Isa, shape: tuple[int, ...], window: tuple[int, int, Padding, int, int]
) -> None:
    places = np.random.default_rng(1).uniform(-3, window[0] * window[1] + 2, shape).astype(np.float32)
    places.reshape(-1)[:6] = np.array([np.nan, np.inf, -np.inf, 1e30, -0.5, 3e9], np.float32)
    check(*single(MaxUnpool2D(*window), _pictures(shape), places), isa, threads=2)


def _boxes(count: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(count)
    low = rng.uniform(0, 1, (count, 2))
    high = low + rng.uniform(-0.2, 0.5, (count, 2))
    return np.hstack([low, high]).astype(np.float32), rng.uniform(-1, 1, count).astype(np.float32)


@ISAS
@pytest.mark.parametrize("count", [1, 5, 16, 131])
@pytest.mark.parametrize("most", [1, 7, 150])
@pytest.mark.parametrize("threshold", [0.2, -np.inf])
def test_non_max_suppression_drops_overlapping_boxes(isa: Isa, count: int, most: int, threshold: float) -> None:
    boxes, scores = _boxes(count)
    scores[::3] = scores[0]
    numbers = (np.array(most, np.int32), np.float32(0.4), np.float32(threshold))
    given = [np.asarray(a) for a in (boxes, scores, *numbers)]
    check(*single(NonMaxSuppression(), *given, constant=(2,)), isa)


@ISAS
@pytest.mark.parametrize("sigma", [0.5, 0.0])
@pytest.mark.parametrize("iou", [0.4, 1.0])
def test_soft_non_max_suppression_lowers_the_scores_of_overlapping_boxes(isa: Isa, sigma: float, iou: float) -> None:
    boxes, scores = _boxes(131)
    numbers = (np.array(40, np.int32), np.float32(iou), np.float32(0.05), np.float32(sigma))
    given = [np.asarray(a) for a in (boxes, np.abs(scores), *numbers)]
    check(*single(NonMaxSuppression(), *given, constant=(2,)), isa)


@ISAS
def test_non_max_suppression_handles_non_finite_boxes_and_scores(isa: Isa) -> None:
    boxes, scores = _boxes(40)
    boxes[3, 1], boxes[7, 2], boxes[9] = np.nan, np.inf, 0
    scores[[5, 6]] = np.nan, np.inf
    for sigma in ((), (np.float32(0.5),)):
        given = [
            np.asarray(a) for a in (boxes, scores, np.array(20, np.int32), np.float32(0.4), np.float32(-2), *sigma)
        ]
        with np.errstate(all="ignore"):
            expected = evaluated(*single(NonMaxSuppression(), *given, constant=(2,)))
        found = natively(*single(NonMaxSuppression(), *given, constant=(2,)), isa)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[-1], expected[-1])
