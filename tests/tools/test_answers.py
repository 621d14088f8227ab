"""Interpreting outputs as answers: every layout is recognised by its shape and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onert.backend import TensorInfo
from onert.frontend.metadata import Box, Calibration, ModelMetadata, TensorMetadata
from onert.ir import DType, ExecutionError, Quantization
from onert.tools.answers import (
    Answer,
    Labels,
    RunOutputs,
    Wanted,
    answer_lines,
    hint,
    in_picture,
    real_outputs,
    recognise,
    top_classes,
)
from onert.tools.answers.boxes import suppressed
from onert.tools.answers.heads import grid
from onert.tools.inputs.placing import Fit, place

Arrays = list[np.ndarray[Any, Any]]
NO_NAMES = Labels()


def info(dtype: DType, *shape: int | None, scale: float = 0.0, zero: int = 0) -> TensorInfo:
    return TensorInfo("x", dtype, shape, Quantization((scale,), (zero,)) if scale else None)


def ends(arrays: Arrays, plane: tuple[int, int] | None = None, **given: Any) -> RunOutputs:
    infos = tuple(TensorInfo(f"out{at}", DType.from_numpy(array.dtype), array.shape) for at, array in enumerate(arrays))
    expected_labels = {name: given.pop(name) for name in ("count", "score", "labels", "task") if name in given}
    return RunOutputs(infos, tuple(arrays), Wanted(**expected_labels), plane=plane, **given)


def read(arrays: Arrays, plane: tuple[int, int] | None = None, *, asked: bool = False, **given: Any) -> Answer:
    found = recognise(ends(arrays, plane, **given), asked=asked)
    assert found is not None
    return found


# ---- classes


@pytest.mark.parametrize(
    ("labels", "expected_labels"),
    [
        (("a", "b", "c"), ["c", "a"]), (("b", "c"), ["c", "background"]), ((), ["", ""]), (("a",), ["", "a"]),
    ],
)  # fmt: skip
def test_labels_are_aligned_with_the_last_classes_so_that_the_first_is_background(
    labels: tuple[str, ...], expected_labels: list[str]
) -> None:
    found = top_classes(info(DType.FLOAT32, 3), np.float32([0.3, 0.1, 0.6]), 2, Labels(labels))
    assert [(one.index, one.label) for one in found] == [(2, expected_labels[0]), (0, expected_labels[1])]


def test_scores_are_dequantised_and_ties_are_ordered_by_class() -> None:
    quantized = info(DType.UINT8, 4, scale=0.25, zero=8)
    (real,) = real_outputs([quantized], [np.uint8([8, 12, 12, 10])])
    found = top_classes(quantized, real, 3, NO_NAMES)
    assert [(one.index, one.score) for one in found] == [(1, 1.0), (2, 1.0), (3, 0.5)]


def test_each_vector_of_class_scores_is_listed_under_its_output_s_name() -> None:
    outputs = [np.float32([[0.1, 0.9]]), np.zeros((1, 4, 4), np.float32), np.float32([0.2, 0.5, 0.3])]
    found = read(outputs, asked=True, count=1)
    assert [(one.output, one.index) for one in found.found] == [("out0", 1), ("out2", 1)]
    assert answer_lines(found)[:2] == ["output 'out0':", "  1. 0.9000     1"]
    named = read(outputs, asked=True, count=1, labels=Labels(("a", "b", "c"), "labels.txt"))
    assert [one.output for one in named.found] == ["out2"]


UNASKED: dict[str, tuple[Arrays, ModelMetadata, bool]] = {
    "probabilities": ([np.float32([0.1, 0.9])], ModelMetadata(), True),
    "logits": ([np.float32([3, -9])], ModelMetadata(), False),
    "logits with labels": ([np.float32([3, -9])], ModelMetadata(labels=("a", "b")), True),
    "logits with labels of others": ([np.float32([3, -9])], ModelMetadata(labels=("a", "b", "c")), False),
    "coordinates": ([np.float32([0.5, 0.6, 0.7])], ModelMetadata(), False),
    "one number": ([np.float32([1])], ModelMetadata(), False),
}


@pytest.mark.parametrize(("arrays", "said", "is_read"), UNASKED.values(), ids=UNASKED.keys())
def test_a_vector_is_read_as_classes_unasked_only_if_it_is_unmistakable(
    arrays: Arrays, said: ModelMetadata, is_read: bool
) -> None:
    found = ends(arrays, metadata=said)
    assert (recognise(found, asked=False) is not None) == is_read
    assert bool(hint(found)) == (arrays[0].size > 1)


def test_scores_are_calibrated_by_the_metadata() -> None:
    rows = ((1.0, 2.0, 0.5, None), None, (1.0, 1.0, 0.0, 0.5))
    said = TensorMetadata(calibration=Calibration("identity", 0.01, rows))
    found = read([np.float32([0.5, 0.4, 0.1])], asked=True, metadata=ModelMetadata(outputs=(said,)))
    assert [one.index for one in found.found] == [0, 1, 2]
    assert found.found[0].score == pytest.approx(1 / (1 + np.exp(-1.5)))
    assert [one.score for one in found.found[1:]] == [0.01, 0.01]
    inverse = TensorMetadata(calibration=Calibration("inverse_logistic", 0.0, ((1.0, 1.0, 0.0, None),) * 2))
    same = read([np.float32([0.25, 0.75])], asked=True, metadata=ModelMetadata(outputs=(inverse,)))
    assert [one.score for one in same.found] == pytest.approx([0.75, 0.25])
    logs = TensorMetadata(calibration=Calibration("log", 0.0, ((1.0, 1.0, 0.0, None),) * 2), threshold=0.2)
    halves = read([np.float32([0.1, 1.0])], asked=True, metadata=ModelMetadata(outputs=(logs,)))
    assert [one.score for one in halves.found] == pytest.approx([0.5])


# ---- detectors with built-in non-maximum suppression


BOXES = np.float32([[0.1, 0.2, 0.5, 0.4], [0.0, 0.5, 1.0, 1.0], [0, 0, 0, 0]])
"""Top, left, bottom, right; the last row is not a detection."""
CLASSES, SCORES = np.float32([1, 0, 0]), np.float32([0.4, 0.9, 0.0])
WANTED = [(0, 0.9, (0.0, 0.5, 1.0, 1.0)), (1, 0.4, (0.1, 0.2, 0.5, 0.4))]
PLANE = (64, 128)


def _left_first(scale: tuple[int, int] = (1, 1)) -> np.ndarray[Any, Any]:
    height, width = scale
    return np.float32(BOXES[:, [1, 0, 3, 2]] * [width, height, width, height])


def _rows(*columns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.float32(np.column_stack(columns))[None]


LISTS: dict[str, Arrays] = {
    "TFLite's": [BOXES[None], CLASSES[None], SCORES[None], np.float32([3])],
    "scores before classes": [SCORES[None], BOXES[None], np.float32([2]), CLASSES[None]],
    "corners in pixels": [_left_first(PLANE), np.int64(CLASSES), SCORES],
    "rows": [_rows(_left_first(PLANE), SCORES, CLASSES)],
    "rows in parts": [_rows(_left_first(), SCORES, CLASSES)],
    "rows with the class first": [_rows(_left_first(), CLASSES, SCORES)],
    "rows of a batch": [_rows(np.zeros(3), _left_first(PLANE), CLASSES, SCORES)[0]],
    "rows with class and score before": [_rows(CLASSES, SCORES, _left_first(PLANE))],
}


@pytest.mark.parametrize("arrays", LISTS.values(), ids=LISTS.keys())
def test_lists_of_detections_are_read_in_every_layout(arrays: Arrays) -> None:
    found = read(arrays, PLANE)
    assert found.task == "detection"
    assert [one.index for one in found.found] == [index for index, _, _ in WANTED]
    for one, (_, score, box) in zip(found.found, WANTED, strict=True):
        assert one.score == pytest.approx(score)
        assert one.box == pytest.approx(box)


def test_detections_respect_labels_counts_and_score_thresholds() -> None:
    arrays = LISTS["TFLite's"]
    named = read(arrays, labels=Labels(("cat", "dog"), "labels.txt"))
    assert answer_lines(named)[0] == "  1. 0.9000     0  cat  box 0.000 0.500 1.000 1.000"
    assert len(read(arrays, count=1).found) == 1
    assert len(read(arrays, score=0.5).found) == 1
    assert len(read(arrays, count=3).found) == 3
    said = ModelMetadata(
        outputs=(TensorMetadata(), TensorMetadata(value_labels=("a", "b")), TensorMetadata(threshold=0.5))
    )
    assert [one.label for one in read(arrays, metadata=said).found] == ["a"]
    none = read([*arrays[:3], np.float32([0])])
    assert (none.found, answer_lines(none)) == ((), ["  nothing was detected"])
    with pytest.raises(ExecutionError, match=r"labels.txt has 1 labels, but the model detected class 1"):
        read(arrays, labels=Labels(("cat",), "labels.txt"))


BOX_KINDS = {
    "center": (Box("center", (0, 1, 2, 3), pixels=True), [[96, 32, 64, 64]]),
    "corner and size": (Box("upper_left", (0, 1, 2, 3)), [[0.5, 0.0, 0.5, 1.0]]),
    "corners, rows first": (Box("boundaries", (1, 0, 3, 2)), [[0.0, 0.5, 1.0, 1.0]]),
}


@pytest.mark.parametrize(("kind", "box"), BOX_KINDS.values(), ids=BOX_KINDS.keys())
def test_boxes_are_decoded_as_the_metadata_says(kind: Box, box: list[list[float]]) -> None:
    arrays = [np.float32([box]), np.float32([[0]]), np.float32([[0.9]]), np.float32([1])]
    found = read(arrays, PLANE, metadata=ModelMetadata(outputs=(TensorMetadata(box=kind),)))
    assert found.found[0].box == pytest.approx((0.0, 0.5, 1.0, 1.0))


# ---- detection heads: one prediction per cell and anchor


def _head(
    layout: Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]], np.ndarray[Any, Any]],
    anchors: int = 1,
    plane: tuple[int, int] = (96, 128),
    spread: float = 2.0,
) -> np.ndarray[Any, Any]:
    """Predictions with three confident ones: two overlapping ones of class 2, and one of class 0."""
    centers, strides = grid(plane, (8, 16, 32), anchors)
    rng = np.random.default_rng(0)
    boxes = np.column_stack([centers + rng.uniform(-spread, spread, centers.shape), np.full((len(centers), 2), 12.0)])
    scores = rng.uniform(0, 0.1, (len(centers), 3))
    for at, box, index, score in (
        (40, (60, 24, 40, 20), 2, 0.9),
        (41, (62, 24, 40, 20), 2, 0.8),
        (7, (60, 6, 10, 10), 0, 0.7),
    ):
        boxes[at], scores[at, index] = box, score
    found: np.ndarray[Any, Any] = layout(boxes, scores, np.column_stack([centers, strides]))
    return found.astype(np.float32)


def _objectness(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    best = scores.max(1, keepdims=True)
    return np.column_stack([np.sqrt(best), scores / np.sqrt(best)])


def _logits(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.log(scores / (1 - scores))
    return found


def _undecoded(boxes: np.ndarray[Any, Any], places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    stride = places[:, 2:]
    return np.column_stack([(boxes[:, :2] - places[:, :2]) / stride + 0.5, np.log(boxes[:, 2:] / stride)])


_SIZE = np.array([128, 96, 128, 96])
HEADS: dict[str, tuple[np.ndarray[Any, Any], str]] = {
    "v8": (
        _head(lambda b, s, p: np.column_stack([b, s]).T[None]),
        "1 per cell: boxes (centre, width and height in pixels",
    ),
    "v8 of parts": (_head(lambda b, s, p: np.column_stack([b / _SIZE, s]).T[None]), "in parts of the picture"),
    "v8 with logits": (_head(lambda b, s, p: np.column_stack([b, _logits(s)]).T[None]), "classes through a sigmoid"),
    "v5": (_head(lambda b, s, p: np.column_stack([b, _objectness(s)])[None], 3), "3 per cell"),
    "v5 of parts": (_head(lambda b, s, p: np.column_stack([b / _SIZE, _objectness(s)])[None], 3), "objectness"),
    "v6": (_head(lambda b, s, p: np.column_stack([b, _objectness(s)])[None]), "1 per cell"),
    "X": (_head(lambda b, s, p: np.column_stack([_undecoded(b, p), _objectness(s)])[None]), "offsets from cells"),
    "X with boxes far from their places": (
        _head(lambda b, s, p: np.column_stack([_undecoded(b, p), _objectness(s)])[None], spread=20.0),
        "offsets from cells",
    ),
}


@pytest.mark.parametrize("labels", [(), ("a", "b", "c")], ids=["unnamed", "named"])
@pytest.mark.parametrize(("array", "says"), HEADS.values(), ids=HEADS.keys())
def test_every_yolo_layout_is_recognised_and_described(
    array: np.ndarray[Any, Any], says: str, labels: tuple[str, ...]
) -> None:
    found = read([array], (96, 128), metadata=ModelMetadata(labels=labels))
    assert found.task == "detection"
    assert says in found.said
    assert [(one.index, one.label) for one in found.found] == [(i, labels[i] if labels else "") for i in (2, 0)]
    assert [one.score for one in found.found] == pytest.approx([0.9, 0.7], abs=1e-4)
    assert found.found[0].box == pytest.approx((14 / 96, 40 / 128, 34 / 96, 80 / 128), abs=1e-4)


def test_a_pose_head_has_keypoints() -> None:
    def layout(b: Any, s: Any, p: Any) -> Any:
        points = np.dstack([np.tile(b[:, :1], 17), np.tile(b[:, 1:2], 17), np.full((len(b), 17), 0.75)])
        return np.column_stack([b, s[:, 2:], points.reshape(len(b), -1)]).T[None]

    found = read([_head(layout)], (96, 128))
    assert found.task == "keypoints"
    assert "17 points" in found.said
    assert found.found[0].points[16] == pytest.approx((24 / 96, 60 / 128, 0.75))


def test_a_mask_head_gives_the_mask_of_each_detection() -> None:
    coefficients = np.zeros(32)
    coefficients[3] = 1.0
    prototypes = np.full((1, 32, 24, 32), -1.0, np.float32)
    prototypes[0, 3, :, 10:15] = 1.0
    array = _head(lambda b, s, p: np.column_stack([b, s, np.tile(coefficients, (len(b), 1))]).T[None])
    found = read([array, prototypes], (96, 128))
    assert found.task == "segmentation"
    mask = found.found[0].mask
    assert mask is not None
    rows, columns = np.nonzero(mask)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (3, 7, 10, 14)
    assert read([array, prototypes], (96, 128), task="detection").found[0].mask is None


def test_separate_box_and_score_outputs_are_read_in_every_box_format() -> None:
    rng = np.random.default_rng(1)
    middles = np.column_stack([rng.uniform(0.3, 0.7, (20, 2)), np.full((20, 2), 0.2)])
    scores = np.full((20, 3), -6.0)
    scores[5, 1] = 6.0
    corner = np.column_stack([middles[:, :2] - 0.1, middles[:, :2] + 0.1])
    for boxes in (middles, corner, corner * [128, 96, 128, 96]):
        found = read([np.float32(boxes)[None], np.float32(scores)[None]], (96, 128))
        assert "classes through a sigmoid" in found.said
        (one,) = found.found
        assert (one.index, one.score) == (1, pytest.approx(0.9975, abs=1e-4))
        assert one.box == pytest.approx(corner[5][[1, 0, 3, 2]].tolist(), abs=1e-6)


def test_of_overlapping_boxes_the_most_confident_of_each_class_is_kept() -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 0, 1, 0.5], [0, 0, 1, 1.0]])
    assert suppressed(boxes, np.array([0.5, 0.9, 0.4, 0.8]), np.array([0, 0, 0, 1])) == [1, 3]


# ---- keypoints, segmentation, images


def test_bodies_have_seventeen_keypoints() -> None:
    points = np.tile(np.float32([0.25, 0.5, 0.9]), (1, 1, 17, 1))
    found = read([points])
    assert found.task == "keypoints"
    assert found.found[0].points[0] == pytest.approx((0.25, 0.5, 0.9))
    assert answer_lines(found)[1] == "               nose  0.250 0.500  score 0.900"
    several = np.float32([[[*([0.25, 0.5, 0.9] * 17), 0.1, 0.2, 0.8, 0.9, score] for score in (0.1, 0.8)]])
    (one,) = read([several]).found
    assert one.box == pytest.approx((0.1, 0.2, 0.8, 0.9))
    assert answer_lines(Answer("keypoints", "")) == ["  no body was found"]


AREAS: dict[str, tuple[np.ndarray[Any, Any], str]] = {
    "channels last": (
        np.eye(4, dtype=np.float32)[np.repeat(np.arange(16) % 4 // 2, 16).reshape(1, 16, 16)],
        "channels last",
    ),
    "channels first": (
        np.moveaxis(np.eye(4, dtype=np.float32)[np.repeat(np.arange(16) % 4 // 2, 16).reshape(1, 16, 16)], -1, 1),
        "channels first",
    ),
    "numbers of classes": (np.repeat(np.arange(16) % 4 // 2, 16).reshape(1, 16, 16), "class indices"),
    "a mask": (
        np.float32(np.repeat(np.arange(16) % 4 // 2, 16).reshape(1, 16, 16, 1)),
        "a mask, of values of at least 0.5",
    ),
    "a mask of logits": (
        np.float32(np.repeat(np.arange(16) % 4 // 2, 16).reshape(1, 1, 16, 16)) * 12 - 6,
        "a mask through a sigmoid",
    ),
}


@pytest.mark.parametrize(("array", "says"), AREAS.values(), ids=AREAS.keys())
def test_the_pixels_of_each_segmented_class_are_counted(array: np.ndarray[Any, Any], says: str) -> None:
    found = read([array], (32, 32))
    assert found.task == "segmentation"
    assert says in found.said
    assert {one.index: one.pixels for one in found.found} | {0: 128} == {0: 128, 1: 128}


@pytest.mark.parametrize(("low", "high", "says"), [(0, 1, "0 to 1"), (-1, 1, "-1 to 1"), (0, 255, "0 to 255")])
def test_an_image_output_is_recognised_with_its_range(low: float, high: float, says: str) -> None:
    array = np.full((1, 16, 16, 3), low, np.float32)
    array[:, :, 8:] = high
    found = read([array], (32, 32))
    assert (found.task, says in found.said) == ("image", True)
    assert found.picture is not None
    assert found.picture[0, [0, 15], 0].tolist() == [0, 255]
    assert read([array], (32, 32), task="segmentation").task == "segmentation"


def test_the_error_for_an_unsuitable_task_lists_the_outputs() -> None:
    arrays = [np.zeros((1, 7), np.int32)]
    assert recognise(ends(arrays), asked=False) is None
    for task in ("detection", "segmentation", "keypoints", "image"):
        with pytest.raises(
            ExecutionError, match=rf"no output is suitable for --task {task}; the outputs are 'out0' int32"
        ):
            read(arrays, PLANE, task=task)
    with pytest.raises(ExecutionError, match="no output is a vector of class scores"):
        read(arrays, task="classes")


FITS = {
    Fit.STRETCH: ((0.25, 0.5), (0.25, 0.5)),
    Fit.LETTERBOX: ((0.375, 0.5), (0.25, 0.5)),
    Fit.CROP: ((0.5, 0.0), (0.5, 0.25)),
}


@pytest.mark.parametrize(("fit", "points"), FITS.items(), ids=lambda v: v.value if isinstance(v, Fit) else "")
def test_positions_in_the_input_are_mapped_back_to_the_picture(fit: Fit, points: Any) -> None:
    placement = place((100, 200), (64, 64), fit)
    assert placement.in_picture(*points[0]) == pytest.approx(points[1])


def test_padding_is_excluded_from_the_answer() -> None:
    placement = place((100, 200), (64, 64), Fit.LETTERBOX)
    classes = np.zeros((1, 64, 64, 1), np.float32)
    classes[:, :20] = 1  # 16 rows of padding and four of the picture
    found = in_picture(read([classes], (64, 64)), placement)
    assert found.classes is not None
    assert found.classes.shape == (32, 64)
    assert (found.found[0].pixels, found.found[0].score) == (4 * 64, 0.125)
