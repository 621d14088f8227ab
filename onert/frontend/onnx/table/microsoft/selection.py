"""Crop and resize, n-gram repetition, unique elements, matrix inverses.

Source: onnxruntime's crop_and_resize.cc, ngram_repeat_block.h, unique.cc and inverse.cc, and docs/ContribOperators.md.
"""

from __future__ import annotations

import math

from onert.frontend.onnx.building import ints
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.element_indices import Combination, ScatterElements
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.determinant import Inverse
from onert.ir.ops.vision_audio.interpolate import Interpolation
from onert.ir.ops.vision_audio.sampling import GridSample, Outside


def _regions(node: Node) -> int:
    """Crop regions [top, left, bottom, right], in fractions of the image, to one size with aligned corners."""
    d = node.draft
    x, regions, batches = (operand(node, at) for at in range(3))
    mode, size = node.text("mode", "bilinear"), node.value(3)
    if mode not in ("bilinear", "nearest") or size is None or size.size != 2:
        raise ModelError(f"mode is {mode!r}, expected bilinear or nearest, with a crop_size of 2 known numbers")
    lines = []
    for axis, count in enumerate(int(n) for n in size.reshape(-1)):
        if not 1 <= count <= _LARGEST:
            raise ModelError(f"crop_size has {count}, expected 1 to {_LARGEST}")
        last = x.size(2 + axis).cast(DType.FLOAT32).scalar() - 1
        first, end = (regions.take([at], 1) * last for at in (axis, 2 + axis))
        steps = Expression(d, d.constant([[n / max(count - 1, 1) for n in range(count)]], DType.FLOAT32))
        place = first + (end - first) * steps if count > 1 else (first + end) * 0.5
        inside = (place >= 0) & (place <= last)
        if mode == "nearest":
            place = (place + 0.5).unary(UnaryKind.FLOOR)
        lines.append((place * 2 / last.at_least(1) - 1, inside))
    (down, rows), (across, columns) = lines
    wide = [across.unsqueeze(1) + down.unsqueeze(2) * 0, down.unsqueeze(2) + across.unsqueeze(1) * 0]
    grid = wide[0].unsqueeze(3).concat([wide[1].unsqueeze(3)], 3)
    op = GridSample(Interpolation.LINEAR if mode == "bilinear" else Interpolation.NEAREST, Outside.BORDER, corners=True)
    found = x.of(d.add(op, x.take(batches, 0).operand, grid.operand))
    seen = (rows.unsqueeze(2) & columns.unsqueeze(1)).unsqueeze(1)
    return seen.select(found, node.number("extrapolation_value")).operand


_LARGEST = 1 << 16


def _ban_repeated_ngrams(node: Node) -> int:
    """Word scores, minus infinity for words that would complete an n-gram that already occurs."""
    d, count = node.draft, node.integer("ngram_size")
    words, scores = (operand(node, at) for at in range(2))
    if count < 1:
        raise ModelError(f"ngram_size is {count}, expected at least 1")
    if not scores.dtype.is_float:
        raise ModelError(f"scores are {scores.type}, expected floats")
    length = words.known_size(1, "the words")
    starts = length - count + 1
    if starts < 1:
        return scores.operand
    batch = words.known_size(0, "the words")

    def part(first: int, size: int) -> Expression:
        return words.of(d.add(Slice(), words.operand, ints(d, (0, first)), ints(d, (batch, size))))

    follows = part(count - 1, starts)
    most = Expression(d, d.constant(math.inf, scores.dtype))
    updates = follows.cast(scores.dtype) * 0 - most
    for at in range(count - 1):
        alike = part(at, starts).equals(part(starts + at, 1))
        updates = alike.select(updates, most)
    op = ScatterElements(1, Combination.MIN)
    return d.add(op, scores.operand, follows.cast(DType.INT64).operand, updates.operand)


def _unique(node: Node) -> tuple[int, ...]:
    """Unique elements in order of occurrence, the index of each element among them, and their counts."""
    y, _, which, counts = node.draft.add_many(UniqueSlices(None, sorted=False), node.input(0))
    return y, which, counts


MICROSOFT: dict[str, Importer] = {
    "CropAndResize": _regions,
    "Inverse": lambda node: node.draft.add(Inverse(), node.input(0)),
    "NGramRepeatBlock": _ban_repeated_ngrams,
    "Unique": _unique,
}
