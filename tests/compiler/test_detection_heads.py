"""Detection heads, as exporters write them, run natively from end to end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.element_indices import ScatterElements
from onert.ir.ops.data_movement.fill import Fill, FirstEntries, TopK, Where
from onert.ir.ops.data_movement.gather import Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.boxes import BoxesPerClass
from onert.ir.ops.vision_audio.detection import NonMaxSuppression
from onert.ir.ops.vision_audio.sampling import RoiAlign

from .counted_rows import evaluated

Array = np.ndarray[Any, Any]
BOXES, CLASSES = 24, 3


def _row(b: Builder, *values: int) -> int:
    return b.constant(np.int32(values))


def _one(b: Builder, value: int) -> int:
    return b.constant(np.int32(value))


def _real(b: Builder, value: float) -> int:
    return b.constant(np.float32(value))


def _inputs(b: Builder) -> tuple[int, int]:
    """Boxes as two corners, f32[24, 4], and class logits, f32[24, 3]."""
    boxes = b.input(TensorType(DType.FLOAT32, (BOXES, 4)), "boxes")
    return boxes, b.input(TensorType(DType.FLOAT32, (BOXES, CLASSES)), "logits")


def _length(b: Builder, x: int) -> int:
    return b.add(Gather(0), b.add(ShapeOf(), x), _one(b, 0))


def _suppressed(b: Builder, boxes: int, scores: int, most: int) -> int:
    """Indices of the boxes [n, 4] that survive suppression by scores [n], best first, as exporters to ONNX write it."""
    together = b.add(ExpandDims(), boxes, _one(b, 0))
    rows = b.add(ExpandDims(), b.add(ExpandDims(), scores, _one(b, 0)), _one(b, 0))
    found = b.add(BoxesPerClass(), together, rows, b.constant(np.int64(most)), _real(b, 0.4), _real(b, 0.0))
    return b.add(Squeeze((1,)), b.add(Slice(), found, _row(b, 0, 2), _row(b, -1, 1)))


def _two_stages(b: Builder) -> list[int]:
    """torchvision: class scores above a threshold, without small boxes, classes moved apart, the best seven."""
    boxes, logits = _inputs(b)
    shares = b.add(Softmax(), logits)
    found = b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), shares, _real(b, 0.3)))
    number, label = (b.add(Squeeze((1,)), b.add(Gather(1), found, b.constant(np.int64([at])))) for at in (0, 1))
    scores, chosen = b.add(GatherNd(), shares, found), b.add(Gather(0), boxes, number)
    low, high = (b.add(Slice(), chosen, _row(b, 0, at), _row(b, -1, 2)) for at in (0, 2))
    sides = b.add(Binary(BinaryKind.SUB), high, low)
    large = b.add(Comparison(ComparisonKind.GREATER), b.add(Reduce(Reduction.MIN), sides, _row(b, 1)), _real(b, 0.3))
    stay = b.add(Reshape(), b.add(Where(), large), _row(b, -1))
    chosen, scores, label = (b.add(Gather(0), x, stay) for x in (chosen, scores, label))
    widest = b.add(Binary(BinaryKind.ADD), b.add(Reduce(Reduction.MAX), chosen, _row(b, 0, 1)), _real(b, 1))
    apart = b.add(Binary(BinaryKind.MUL), b.add(Cast(DType.FLOAT32), label), widest)
    moved = b.add(Binary(BinaryKind.ADD), chosen, b.add(ExpandDims(), apart, _one(b, 1)))
    keep = b.add(StridedSlice(begin_mask=1), _suppressed(b, moved, scores, BOXES), _row(b, 0), _row(b, 7), _row(b, 1))
    return [b.add(Gather(0), x, keep) for x in (chosen, scores, label)]


def _one_stage(b: Builder) -> list[int]:
    """YOLO: the best class of each box, those above a threshold, suppressed together, one row for each detection."""
    boxes, logits = _inputs(b)
    scores = b.add(Unary(UnaryKind.LOGISTIC), logits)
    best = b.add(Reduce(Reduction.MAX), scores, _row(b, 1))
    above = b.add(
        Reshape(), b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), best, _real(b, 0.5))), _row(b, -1)
    )
    label = b.add(Gather(0), b.add(ArgReduce(Extreme.MAX), scores, _row(b, 1)), above)
    chosen, score = b.add(Gather(0), boxes, above), b.add(Gather(0), best, above)
    keep = _suppressed(b, chosen, score, 9)
    columns = [
        b.add(ExpandDims(), b.add(Gather(0), x, keep), _one(b, 1)) for x in (score, b.add(Cast(DType.FLOAT32), label))
    ]
    image = b.add(Fill(), b.add(Pack(0), _length(b, keep), _one(b, 1)), _real(b, 0))
    rows = b.add(Concat(1), image, b.add(Gather(0), chosen, keep), *columns)
    return [rows, _length(b, rows)]


def _padded(b: Builder) -> list[int]:
    """TensorFlow's detectors: each class suppressed on its own, all joined, the best six, padded with zeros."""
    boxes, logits = _inputs(b)
    scores = b.add(Unary(UnaryKind.LOGISTIC), logits)
    chosen, values, labels = [], [], []
    for number in range(CLASSES):
        own = b.add(Gather(1), scores, _one(b, number))
        limits = _one(b, 5), _real(b, 0.4), _real(b, 0.5)
        indices, valid = b.add_many(NonMaxSuppression(), boxes, own, *limits)
        survivors = b.add(StridedSlice(), indices, _row(b, 0), b.add(Reshape(), valid, _row(b, 1)), _row(b, 1))
        chosen.append(b.add(Gather(0), boxes, survivors))
        values.append(b.add(Gather(0), own, survivors))
        shape = b.add(ShapeOf(), survivors)
        labels.append(b.add(BroadcastTo(), _real(b, number), shape))
    box, value, label = (b.add(Concat(0), *each) for each in (chosen, values, labels))
    most = b.add(Binary(BinaryKind.MINIMUM), _length(b, value), _one(b, 6))
    value, order = b.add_many(TopK(), value, most)
    missing = b.add(Binary(BinaryKind.SUB), _one(b, 6), _length(b, order))
    zero = _one(b, 0)
    rows = b.add(Reshape(), b.add(Pack(0), zero, missing, zero, zero), _row(b, 2, 2))
    row = b.add(Reshape(), b.add(Pack(0), zero, missing), _row(b, 1, 2))
    box, label = b.add(Gather(0), box, order), b.add(Gather(0), label, order)
    return [b.add(Pad(), box, rows), b.add(Pad(), value, row), b.add(Pad(), label, row), most]


def _for_each_class(b: Builder) -> list[int]:
    """ONNX's operator for all classes at once, and one row for each detection."""
    boxes, logits = _inputs(b)
    scores = b.add(
        ExpandDims(), b.add(Transpose(), b.add(Unary(UnaryKind.LOGISTIC), logits), _row(b, 1, 0)), _one(b, 0)
    )
    together = b.add(ExpandDims(), boxes, _one(b, 0))
    found = b.add(BoxesPerClass(), together, scores, b.constant(np.int64(4)), _real(b, 0.4), _real(b, 0.6))
    picture, box = (b.add(Gather(1), found, b.constant(np.int64(at))) for at in (0, 2))
    rows = b.add(GatherNd(), together, b.add(Pack(1), picture, box))
    values = b.add(ExpandDims(), b.add(GatherNd(), scores, found), _one(b, 1))
    whole = b.add(Concat(1), b.add(Cast(DType.FLOAT32), found), rows, values)
    return [b.add(Reshape(), whole, _row(b, 1, -1, 8))]


def _regions(b: Builder) -> list[int]:
    """torchvision: each of the best boxes is a region of one of two pictures, by size, and then a row and a mask."""
    boxes, logits = _inputs(b)
    best = b.add(Unary(UnaryKind.LOGISTIC), b.add(Reduce(Reduction.MAX), logits, _row(b, 1)))
    kept = _suppressed(b, boxes, best, BOXES)
    chosen = b.add(Gather(0), boxes, b.add(StridedSlice(begin_mask=1), kept, _row(b, 0), _row(b, 7), _row(b, 1)))
    left, right = (b.add(Gather(1), chosen, _one(b, at)) for at in (0, 2))
    wide = b.add(Comparison(ComparisonKind.GREATER), b.add(Binary(BinaryKind.SUB), right, left), _real(b, 0.8))
    sizes = [_one(b, size) for size in (2, 3, 3)]
    count = _length(b, chosen)
    whole = b.add(Fill(), b.add(Pack(0), count, *sizes), _real(b, 0))
    for shape, mask in (((1, 2, 6, 6), wide), ((1, 2, 12, 3), b.add(Unary(UnaryKind.LOGICAL_NOT), wide))):
        places = b.add(Reshape(), b.add(Where(), mask), _row(b, -1))
        images = b.add(Binary(BinaryKind.MUL), places, b.constant(np.int64(0)))
        picture = b.add(Reshape(), logits, _row(b, *shape))
        found = b.add(RoiAlign(3, 3, 2), picture, b.add(Gather(0), chosen, places), images)
        wanted = b.add(Pack(0), _length(b, places), *sizes)
        ones = b.add(Comparison(ComparisonKind.EQUAL), wanted, _one(b, -1))
        wanted = b.add(Select(), ones, _row(b, 1, 1, 1, 1), wanted)
        column = b.add(Reshape(), places, _row(b, -1, 1, 1, 1))
        whole = b.add(ScatterElements(0), whole, b.add(BroadcastTo(), column, wanted), found)
    shape = b.add(ShapeOf(), whole)
    each = b.add(Reduce(Reduction.PROD, keep_dims=True), b.add(Slice(), shape, _row(b, 1), _row(b, 3)), _row(b, 0))
    flat = b.add(Reshape(), whole, b.add(Concat(0), b.add(Reshape((1,)), _length(b, whole)), each))
    weights, taps = (np.random.default_rng(1).random(size, np.float32) for size in ((6, 18), (2, 2, 2, 3)))
    # Small weights keep the sums near zero: a softmax turns the rounding of large ones into large relative errors.
    rows = b.add(FullyConnected(), flat, b.constant(weights / 64), None)
    shares = b.add(Unary(UnaryKind.LOGISTIC), whole)
    wider = b.add(Pack(0), count, *(_one(b, size) for size in (4, 6, 2)))
    mask = b.add(TransposeConv2D(stride_height=2, stride_width=2), wider, b.constant(taps), shares, None)
    return [b.add(Softmax(), b.add(Reshape(), rows, b.add(Pack(0), count, _one(b, -1)))), mask]


HEADS: dict[str, Callable[[Builder], list[int]]] = {
    "two stages": _two_stages,
    "one stage": _one_stage,
    "padded": _padded,
    "for each class": _for_each_class,
    "regions": _regions,
}


def _given(seed: int) -> list[Array]:
    """Boxes, and logits that are centred, low or high."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 3, (BOXES, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0.2, 1.5, (BOXES, 2))], 1)
    logits = rng.normal(size=(BOXES, CLASSES), scale=2) + (0, -30, 5)[seed]
    return [boxes.astype(np.float32), logits.astype(np.float32)]


@pytest.mark.parametrize("name", HEADS)
def test_a_detection_head_is_native(name: str, tmp_path: Path) -> None:
    b = Builder()
    package = Package((b.model(HEADS[name](b)),), "head")
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries, Copy}
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    onert.bundle(package, tmp_path, cpu="native")
    loaded = onert.load_bundle(tmp_path)
    for seed in range(3):
        theirs = list(expected.run(_given(seed)).values())
        for one, other in zip(execution.run(_given(seed)).values(), theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, strict=True)
        for one, other in zip(loaded.run(_given(seed)).values(), theirs, strict=False):
            np.testing.assert_allclose(one[tuple(slice(d) for d in other.shape)], other, rtol=1e-5, atol=1e-6)
