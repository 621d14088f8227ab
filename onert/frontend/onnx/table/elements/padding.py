"""Padding, with constant margins or those known only at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.frontend.onnx.building import axes_of, ints, like, require_rank, reshape
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.element_indices import ScatterElements
from onert.ir.ops.data_movement.fill import Range
from onert.ir.ops.data_movement.slicing import Mirror, MirrorPad, Pad, StridedSlice
from onert.ir.ops.elementwise.binary import BinaryKind

from .movement import padded

_MODES = ("constant", "reflect", "edge", "wrap")


def _pad(node: Node) -> int:
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x)
    mode = node.choice("mode", _MODES, "constant")
    if node.version < 11:
        pads = node.integers("pads") if node.version >= 2 else node.integers("paddings")
        value = like(d, x, node.number("value"))
    else:
        value = reshape(d, node.input(2), ()) if node.has(2) else like(d, x, 0)
        by_axis = node.version >= 18 and node.has(3)
        if node.value(1) is None or (by_axis and node.value(3) is None):
            return _dynamic_pad(node, Expression(d, x), value, mode)
        pads = tuple(int(p) for p in node.constant(1, "pads").reshape(-1))
    axes = tuple(range(rank))
    if node.version >= 18 and node.has(3):
        axes = axes_of(node.constant(3, "axes").reshape(-1).tolist(), rank)
    if pads is None:
        raise ModelError(f"attribute pads is absent, expected {2 * rank} numbers")
    if len(pads) != 2 * len(axes):
        raise ModelError(f"pads has {len(pads)} elements, expected {2 * len(axes)}")
    margins = [(0, 0)] * rank
    for at, axis in enumerate(axes):
        margins[axis] = (pads[at], pads[at + len(axes)])
    if mode == "constant":
        return padded(d, x, margins, value)
    return _pad_with_own(d, x, margins, mode)


def _dynamic_pad(node: Node, x: Expression, value: int, mode: str) -> int:
    """Pad by operands [before each axis, after each axis], for all axes or for the given ones."""
    d = node.draft
    pads = operand(node, 1).cast(DType.INT64)
    if node.version >= 18 and node.has(3):
        axes = operand(node, 3).cast(DType.INT64)
        count = axes.known_size(0, "axes")
        places = axes.binary(BinaryKind.FLOOR_MOD, x.rank)
        zeros = x.of(ints(d, [0] * x.rank))
        before, after = (
            x.of(d.add(ScatterElements(), zeros.operand, places.operand, pads.take(range(at, at + count), 0).operand))
            for at in (0, count)
        )
    else:
        before, after = (pads.take(range(at, at + x.rank), 0) for at in (0, x.rank))
    if mode == "constant":
        return pad_dynamic(x, before, after, value).operand
    for axis in range(x.rank):
        first, last = (side.take(axis, 0) for side in (before, after))
        places = _indices(x, axis, (-first).scalar(), last.scalar(), mode)
        x = x.take(places, axis)
    return x.operand


def pad_dynamic(x: Expression, before: Expression, after: Expression, value: int | None = None) -> Expression:
    """Pad each axis with a value by int64 margins; a negative margin crops."""
    d = x.draft
    starts, ends = ((-side).at_least(0) for side in (before, after))
    sizes = [x.size(axis) for axis in range(x.rank)]
    stops = sizes[0].concat(sizes[1:], 0) - ends
    ones = ints(d, [1] * x.rank)
    cut = d.add(StridedSlice(), x.operand, starts.operand, stops.operand, ones)
    margins = before.at_least(0).unsqueeze(1).concat([after.at_least(0).unsqueeze(1)], 1)
    return x.of(d.add(Pad(), cut, margins.operand, value))


def _cropped(node: Node) -> int:
    """Crop or zero-pad to given sizes along some axes, keeping the centre.

    The odd element is cropped or padded at the end.
    """
    d, x, wanted = node.draft, operand(node, 0), operand(node, 1)
    require_rank(d, x.operand, 1)
    given = node.integers("axes")
    axes = axes_of(given, x.rank) if given is not None else tuple(range(x.rank))
    zero = x.of(ints(d, [0]))
    before, after = [zero] * x.rank, [zero] * x.rank
    for at, axis in enumerate(axes):
        missing = wanted.cast(DType.INT64).take([at], 0) - x.size(axis)
        half = missing.at_least(0) / 2
        gone = (-missing).at_least(0) / 2  # the window's start rounds down
        before[axis] = half - gone
        after[axis] = missing - before[axis]
    return pad_dynamic(x, before[0].concat(before[1:], 0), after[0].concat(after[1:], 0)).operand


def _pad_with_own(d: Draft, x: int, margins: Sequence[tuple[int, int]], mode: str) -> int:
    """Pad with the tensor's own elements: by mirroring, or by a gather per axis."""
    shape = d.type(x).shape
    inside = all(s is None or max(m) < max(s, 1) for s, m in zip(shape, margins, strict=True))
    mirrors = mode == "reflect" or (mode == "edge" and max(map(max, margins), default=0) <= 1)
    if mirrors and inside and min(map(min, margins), default=0) >= 0:
        mirror = Mirror.REFLECT if mode == "reflect" else Mirror.SYMMETRIC  # the first mirrored element is the edge
        return d.add(MirrorPad(mirror), x, d.constant(np.array(margins, np.int32).reshape(-1, 2)))
    found = Expression(d, padded(d, x, [(min(a, 0), min(b, 0)) for a, b in margins]))
    for axis, (before, after) in enumerate((max(a, 0), max(b, 0)) for a, b in margins):
        if before or after:
            first, last = (found.of(d.constant(v, DType.INT64)) for v in (-before, after))
            found = found.take(_indices(found, axis, first, last, mode), axis)
    return found.operand


def _indices(x: Expression, axis: int, first: Expression, more: Expression, mode: str) -> Expression:
    """Indices into `x` for an axis extended from `first` to `more` past its end."""
    size = x.size(axis).scalar()
    places = x.of(x.draft.add(Range(), first.operand, (size + more).operand, x.draft.constant(1, DType.INT64)))
    last = size - 1
    if mode == "edge":
        return places.at_most(last).at_least(0)
    if mode == "wrap":
        return places.binary(BinaryKind.FLOOR_MOD, size)
    period = (last + last).at_least(1)
    within = places.binary(BinaryKind.FLOOR_MOD, period)
    return within.at_most(period - within)


TABLE: dict[str, Importer] = {"CenterCropPad": _cropped, "Pad": _pad}
