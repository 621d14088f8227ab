"""Concatenation, splitting, slicing, padding and transposition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.frontend.onnx.building import (
    axes_of,
    binary,
    cast,
    concat,
    dimension,
    ints,
    require_rank,
    reshape,
    transpose,
)
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.element_indices import ScatterElements
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, SplitV
from onert.ir.ops.data_movement.layout import DepthToSpace, ReverseSequence, SpaceToDepth
from onert.ir.ops.data_movement.slicing import Pad, StridedSlice
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.shape import normalize_axis

_INT32 = (1 << 31) - 1


def _transpose(node: Node) -> int:
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x)
    given = node.integers("perm")
    order = tuple(range(rank))[::-1] if given is None else axes_of(given, rank)
    if len(order) != rank:
        raise ModelError(f"perm is {list(order)}, expected {rank} axes")
    return transpose(d, x, order)


def _concat(node: Node) -> int:
    if node.version >= 4 and not node.has_attribute("axis"):
        raise ModelError("has no axis")
    operands, op = node.operands(), Concat(node.integer("axis", 1))
    if len(operands) == 1:
        return operands[0]
    types = [node.draft.type(x) for x in operands]
    if all(type_.ranked for type_ in types):
        op.infer(*types)
        # Detectors append features that boxes may have to boxes that have none.
        filled = [x for x, type_ in zip(operands, types, strict=True) if type_.shape[op.axis] != 0]
        operands = tuple(filled) or operands[:1]
    return node.draft.add(op, *operands) if len(operands) != 1 else operands[0]


def _split(node: Node) -> tuple[int, ...]:
    """Split into parts of the given sizes, or of equal size except for the last."""
    d, x = node.draft, node.input(0)
    rank, count = require_rank(d, x), len(node.outputs)
    axis = normalize_axis(node.integer("axis"), rank)
    sizes = node.integers("split") if node.version < 13 else None
    if node.version >= 13 and node.has(1):
        given = node.value(1)
        if given is None:
            return d.add_many(SplitV(count), x, node.input(1), d.constant(axis, DType.INT32))
        sizes = tuple(int(s) for s in given.reshape(-1))
    if sizes is None:
        total = d.type(x).shape[axis]
        if total is None:
            return _evenly(d, x, axis, count)
        each = -(-total // count)
        sizes = tuple(max(0, min(each, total - each * i)) for i in range(count))
    return split(d, x, sizes, axis)


def _evenly(d: Draft, x: int, axis: int, count: int) -> tuple[int, ...]:
    """Split a dimension that is known only at run time into equal parts."""
    size = dimension(d, x, axis)
    each = binary(d, BinaryKind.DIV, binary(d, BinaryKind.ADD, size, ints(d, [count - 1])), ints(d, [count]))
    edges = [binary(d, BinaryKind.MUL, each, ints(d, [at])) for at in range(count)]
    return tuple(sliced(d, x, (axis,), a, b, None) for a, b in zip(edges, [*edges[1:], ints(d, [_INT32])], strict=True))


def split(d: Draft, x: int, sizes: Sequence[int], axis: int) -> tuple[int, ...]:
    """Split along an axis into parts of the given sizes. Raises ModelError if they do not add up to its size."""
    require_rank(d, x, axis + 1)
    total = d.type(x).shape[axis]
    if total is not None and sum(sizes) != total:
        raise ModelError(f"sizes {list(sizes)} do not add up to dimension {axis} of {d.type(x)}")
    at = d.constant(axis, DType.INT32)
    return d.add_many(SplitV(len(sizes)), x, ints(d, sizes, DType.INT32), at) if len(sizes) > 1 else (x,)


def _slice(node: Node) -> int:
    """Start and end are clamped to the tensor, as in Python; unnamed axes are not sliced."""
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x)
    if node.version < 10:
        starts, ends = (d.constant(node.integers(n) or (), DType.INT64) for n in ("starts", "ends"))
        axes, steps = node.integers("axes"), None
    else:
        starts, ends = (reshape(d, cast(d, node.input(i), DType.INT64), (None,)) for i in (1, 2))
        steps = cast(d, node.input(4), DType.INT64) if node.has(4) else None
        if node.has(3) and node.value(3) is None:
            return _dynamic_slice(d, x, cast(d, node.input(3), DType.INT64), (starts, ends, steps))
        axes = tuple(int(a) for a in node.constant(3, "axes").reshape(-1)) if node.has(3) else None
    count = next((s for s in (d.type(i).shape[0] for i in (starts, ends)) if s is not None), None)
    if axes is None and count is None:  # the leading axes; their number is known only at run time
        ones = binary(d, BinaryKind.ADD, binary(d, BinaryKind.MUL, starts, ints(d, [0])), ints(d, [1]))
        return d.add(StridedSlice(), x, starts, ends, ones if steps is None else steps)
    if axes is None:
        axes = tuple(range(rank if count is None else count))
    return sliced(d, x, axes_of(axes, rank), starts, ends, steps)


def _dynamic_slice(d: Draft, x: int, axes: int, bounds: tuple[int, int, int | None]) -> int:
    """Slice along axes known only at run time: their bounds are scattered among 0, the end and 1 for the other axes."""
    rank = d.type(x).rank
    places = binary(d, BinaryKind.FLOOR_MOD, axes, d.constant(rank, DType.INT64))
    whole = (0, _INT32, 1)
    spread = [
        ints(d, [fill] * rank) if given is None else d.add(ScatterElements(), ints(d, [fill] * rank), places, given)
        for given, fill in zip(bounds, whole, strict=True)
    ]
    return d.add(StridedSlice(), x, *spread)


def sliced(d: Draft, x: int, axes: Sequence[int], starts: int, ends: int, steps: int | None) -> int:
    """Slice along some axes; the bounds are int64 operands."""
    if not axes:
        return x
    last = max(axes) + 1
    place = {axis: at for at, axis in enumerate(axes)}
    mask = sum(1 << axis for axis in range(last) if axis not in place)
    bounds = [_scatter_to_axes(d, part, place, last, 0) for part in (starts, ends)]
    strides = ints(d, [1] * last) if steps is None else _scatter_to_axes(d, steps, place, last, 1)
    return d.add(StridedSlice(begin_mask=mask, end_mask=mask), x, *bounds, strides)


def _scatter_to_axes(d: Draft, values: int, place: dict[int, int], count: int, fill: int) -> int:
    """Scatter the elements of an operand to their axes, with `fill` for the others."""
    known = d.value(values)
    if known is not None:
        cut = np.clip(known.reshape(-1), -_INT32, _INT32)
        if len(cut) < len(place):
            raise ModelError(f"there are {len(cut)} bounds for {len(place)} axes")
        return ints(d, [int(cut[place[a]]) if a in place else fill for a in range(count)])
    if count == len(place) and all(place[a] == a for a in range(count)):
        return values
    more = concat(d, [values, ints(d, [fill])])
    return d.add(Gather(0), more, ints(d, [place.get(a, len(place)) for a in range(count)]))


def padded(d: Draft, x: int, margins: Sequence[tuple[int, int]], value: int | None = None) -> int:
    """The operand padded with a value; a negative margin crops."""
    largest = max((abs(m) for pair in margins for m in pair), default=0)
    if largest > _INT32:
        raise ModelError(f"a margin is {largest} wide, expected at most {_INT32}")
    cut = [(max(-a, 0), max(-b, 0)) for a, b in margins]
    if any(map(any, cut)):
        rank = len(margins)
        ends = ints(d, [-b if b else _INT32 for _, b in cut])
        x = sliced(d, x, range(rank), ints(d, [a for a, _ in cut]), ends, None)
    more = [(max(a, 0), max(b, 0)) for a, b in margins]
    if not any(map(any, more)):
        return x
    pairs = d.constant(np.array(more, np.int32))
    if value is not None and (known := d.value(value)) is not None and not known.dtype.hasobject and not known.any():
        value = None
    return d.add(Pad(), x, pairs, value)


def _depth_to_space(node: Node) -> int:
    d, x, block = node.draft, node.input(0), node.integer("blocksize")
    if node.text("mode", "DCR") == "DCR":
        return transpose(d, d.add(DepthToSpace(block), transpose(d, x, (0, 2, 3, 1))), (0, 3, 1, 2))
    c = _image(d, x)[1]
    if c is None or block < 1 or c % (block * block):
        raise ModelError(f"has input {d.type(x)}, expected a multiple of {block * block} channels")
    # reorder channels from [out, block, block] to [block, block, out], as DepthToSpace expects
    out = c // (block * block)
    order = np.arange(c).reshape(out, block * block).T.reshape(-1)
    mixed = d.add(Gather(3), transpose(d, x, (0, 2, 3, 1)), ints(d, list(order), DType.INT32))
    return transpose(d, d.add(DepthToSpace(block), mixed), (0, 3, 1, 2))


def _space_to_depth(node: Node) -> int:
    d, x, block = node.draft, node.input(0), node.integer("blocksize")
    _image(d, x)
    found = d.add(SpaceToDepth(block), transpose(d, x, (0, 2, 3, 1)))
    if node.text("mode", "DCR") == "CRD":
        c = d.type(found).shape[3]
        if c is None:
            raise ModelError(f"has input {d.type(x)}, expected a known number of channels")
        order = np.arange(c).reshape(block * block, c // (block * block)).T.reshape(-1)
        found = d.add(Gather(3), found, ints(d, list(order), DType.INT32))
    return transpose(d, found, (0, 3, 1, 2))


def _image(d: Draft, x: int) -> tuple[int | None, ...]:
    if require_rank(d, x) != 4:
        raise ModelError(f"has input {d.type(x)}, expected 4 dimensions")
    return d.type(x).shape


def _reverse_sequence(node: Node) -> int:
    op = ReverseSequence(node.integer("time_axis"), node.integer("batch_axis", 1))
    return node.draft.add(op, node.input(0), node.input(1))


TABLE: dict[str, Importer] = {
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "ReverseSequence": _reverse_sequence,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Transpose": _transpose,
}
