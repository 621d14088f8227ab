"""Data movement: shapes, slices, concatenation, padding.

Source: TNN's layer_interpreter/*.cc, dims_vector_utils.cc, stride_slice_layer.cc and cpu_pad_layer_acc.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.site import Site
from onert.frontend.tnn.structure import MOST
from onert.ir import ModelError
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, SplitV
from onert.ir.ops.data_movement.layout import DepthToSpace, SpaceToDepth
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import Mirror, MirrorPad, Pad, StridedSlice

from .spans import LARGEST

_CONSTANT, _REFLECT, _EDGE = 0, 1, 2


def _reshape(site: Site) -> Sequence[int]:
    """Reshape; sizes start at `axis`, 0 keeps a size, and -1 is inferred from the others."""
    g = site.graph
    given = site.shape
    axis = site.integer("axis", None, 0, len(given))
    last = site.integer("number of axes", None, -1)
    shape = site.integer_list("lengths")
    out = [*given[:axis], *(1,) * len(shape)]
    unknown = None
    for at, length in zip(range(axis, len(shape) if last == -1 else last), shape, strict=False):
        if length == -1 and unknown is None:
            unknown = at
        elif length == 0 and at < len(given):
            out[at] = given[at]
        elif length > 0:
            out[at] = length
        else:
            raise ModelError(f"size {at} of the new shape {list(shape)} is {length}, expected -1 once, 0 or more")
    if unknown is not None:
        out[unknown] = math.prod(given) // math.prod(out)
    if math.prod(out) != math.prod(given):
        raise ModelError(f"the shape {list(given)} cannot become {out}")
    if site.integer("order", 0, 0, 1) == 0:
        return [g.add(Reshape(tuple(out)), site.x)]
    return [_reshape_nhwc(site, given, tuple(out))]


def _reshape_nhwc(site: Site, given: tuple[int, ...], out: tuple[int, ...]) -> int:
    """Reshape in channels-last element order."""
    if max(len(given), len(out)) > 4:
        raise ModelError(f"the shapes {list(given)} and {list(out)} have more than 4 dimensions")
    g = site.graph
    wide = (*given, *(1,) * (4 - len(given)))
    n, c, h, w = (*out, *(1,) * (4 - len(out)))
    x = g.nhwc(g.add(Reshape(wide), site.x))
    return g.add(Reshape(out), g.nchw(g.add(Reshape((n, h, w, c)), x)))


def _flatten(site: Site) -> Sequence[int]:
    shape = site.shape
    axis = site.integer("axis", 1, 0, len(shape))
    return [site.graph.add(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), site.x)]


def _permute(site: Site) -> Sequence[int]:
    """Transpose; unnamed axes follow in their order."""
    rank = len(site.shape)
    order = site.integer_list("axes")
    if len(set(order)) < len(order) or any(not 0 <= axis < rank for axis in order):
        raise ModelError(f"the order is {list(order)}, expected different axes of {rank} dimensions")
    return [site.graph.transpose(site.x, (*order, *(axis for axis in range(rank) if axis not in order)))]


def _swapped(site: Site) -> Sequence[int]:
    """Swap two axes."""
    rank = len(site.shape)
    order = list(range(rank))
    a, b = site.axis("axis", rank), site.axis("axis", rank)
    order[a], order[b] = order[b], order[a]
    return [site.graph.transpose(site.x, order)]


def _flatten_axes(site: Site) -> Sequence[int]:
    """Merge the axes from one to another."""
    shape = site.shape
    first, last = site.axis("first axis", len(shape)), site.axis("last axis", len(shape))
    if first > last:
        raise ModelError(f"the axes are {first} to {last}, expected an ascending range")
    flat = (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])
    return [site.graph.add(Reshape(flat), site.x)]


def _rolled(site: Site) -> Sequence[int]:
    """Roll elements along axes; those shifted out at one end come in at the other."""
    g, x = site.graph, site.x
    shape = g.shape(x)
    shifts = site.integer_list("shifts")
    for shift, axis in zip(shifts, [site.axis("axis", len(shape)) for _ in shifts], strict=True):
        back = -shift % max(1, shape[axis])
        if back:
            front, rest = g.add_many(SplitV(2), x, g.integers((back, shape[axis] - back)), g.integers([axis]))
            x = g.add(Concat(axis), rest, front)
    return [x]


def _reorganized(site: Site) -> Sequence[int]:
    """Space to depth or back; positions in a square are the outer part of the channel index."""
    g, shape = site.graph, site.shape
    size, back = site.integer("size", None, 1, LARGEST), site.flag("back")
    site.integer("third number", 0)
    within = site.integer("mode", 0, 0, 1)
    if within and not back:
        raise ModelError(f"the mode is {within}, expected 0 for space to depth")
    n, c, h, w = g.shape(site.x, 4)
    if (back and c % (size * size)) or (not back and (h % size or w % size)):
        raise ModelError(f"the shape {list(shape)} is not divisible into squares of {size}")
    if not back:
        return [g.nchw(g.move(SpaceToDepth(size), g.nhwc(site.x)))]
    if not within:
        return [g.nchw(g.move(DepthToSpace(size), g.nhwc(site.x)))]
    return [_in_squares(site, (n, c, h, w), size)]


def _squeeze(site: Site) -> Sequence[int]:
    shape = site.shape
    count = site.integer("number of axes", 0, 0, site.remaining)
    axes = {site.axis("axis", len(shape)) for _ in range(count)}
    if any(shape[axis] != 1 for axis in axes):
        raise ModelError(f"axes {sorted(axes)} of {list(shape)} are not all of size 1")
    return [site.graph.add(Reshape(tuple(d for axis, d in enumerate(shape) if axis not in axes)), site.x)]


def _unsqueeze(site: Site) -> Sequence[int]:
    shape = site.shape
    count = site.integer("number of axes", 0, 0, min(site.remaining, 8))
    rank = len(shape) + count
    axes = {site.axis("axis", rank) for _ in range(count)}
    rest = iter(shape)
    if len(axes) < count:
        raise ModelError("an axis is repeated")
    return [site.graph.add(Reshape(tuple(1 if axis in axes else next(rest) for axis in range(rank))), site.x)]


def _concat(site: Site) -> Sequence[int]:
    axis = site.axis("axis", len(site.shape))
    return [site.graph.add(Concat(axis), *site.inputs)]


def _split(site: Site) -> Sequence[int]:
    """Split into parts of the given sizes, or into equal ones if there are none."""
    shape = site.shape
    axis = site.axis("axis", len(shape))
    sizes = site.integer_list("parts")
    count = len(site.layer.outputs)
    if not site.flag("lengths count", 1) or not sizes:
        if shape[axis] % count:
            raise ModelError(f"axis {axis} of {list(shape)} is not divisible into {count} parts")
        sizes = (shape[axis] // count,) * count
    return _parts(site, axis, sizes)


def _split_evenly(site: Site) -> Sequence[int]:
    """Split into parts of the given sizes, or of one size, where the last part may be smaller."""
    shape = site.shape
    axis = site.axis("axis", len(shape))
    sizes = site.integer_list("parts")
    given, size = site.flag("lengths are given", 0), site.integer("length", 0, 0, MOST)
    if not (given and sizes):
        if size < 1:
            raise ModelError(f"parts have the size {size}, expected at least 1")
        sizes = tuple(min(size, shape[axis] - at) for at in range(0, shape[axis], size)[: len(site.layer.outputs) + 1])
    return _parts(site, axis, sizes)


def _parts(site: Site, axis: int, sizes: Sequence[int]) -> Sequence[int]:
    if len(sizes) != len(site.layer.outputs):
        raise ModelError(f"there are {len(sizes)} parts for {len(site.layer.outputs)} outputs")
    g = site.graph
    return g.add_many(SplitV(len(sizes)), site.x, g.integers(sizes), g.integers([axis]))


def _strided_slice(site: Site) -> Sequence[int]:
    """A strided slice where an end of 0 means the end of the axis."""
    shape = site.shape
    begins, ends, strides = (site.integer_list(what) for what in ("begins", "ends", "strides"))
    return [_sliced(site, tuple(range(len(shape))), begins, tuple(e or MOST for e in ends), strides)]


def _strided_slice_v2(site: Site) -> Sequence[int]:
    begins, ends, axes, strides = (site.integer_list(what) for what in ("begins", "ends", "axes", "strides"))
    return [_sliced(site, axes, begins, ends, strides or (1,) * len(axes))]


def _sliced(
    site: Site, axes: tuple[int, ...], begins: tuple[int, ...], ends: tuple[int, ...], strides: tuple[int, ...]
) -> int:
    g = site.graph
    shape = site.shape
    if not len(axes) == len(begins) == len(ends) == len(strides):
        raise ModelError(f"there are {len(begins)} begins, {len(ends)} ends and {len(strides)} strides")
    low, high, step = [0] * len(shape), list(shape), [1] * len(shape)
    for axis, begin, end, stride in zip(axes, begins, ends, strides, strict=True):
        if not -len(shape) <= axis < len(shape) or stride < 1:
            raise ModelError(f"axis {axis} with stride {stride} is invalid for {list(shape)}")
        length = shape[axis]
        first, last = (at + length if at < 0 else at for at in (begin, min(end, length)))
        if not 0 <= first < last:
            raise ModelError(f"the slice from {begin} to {end} of axis {axis} of {list(shape)} is empty")
        low[axis], high[axis], step[axis] = first, last, stride
    return g.add(StridedSlice(), site.x, g.integers(low), g.integers(high), g.integers(step))


def _pad(site: Site) -> Sequence[int]:
    """Pad. The parameters are two ignored numbers, then the margins at top, bottom, left, right and of the channels."""
    g = site.graph
    shape = site.shape
    if len(shape) not in (3, 4):
        raise ModelError(f"its input has the shape {list(shape)}, expected 3 or 4 dimensions")
    site.integer("first number", 0)
    site.integer("second number", 0)
    top, bottom, left, right, front, back = (
        site.integer(f"margin {what}", 0, 0, LARGEST)
        for what in ("at the top", "at the bottom", "on the left", "on the right", "in front", "behind")
    )
    kind, value = site.integer("type", _CONSTANT, _CONSTANT, _EDGE), site.number("value", 0.0)
    margins = [(0, 0)] * (len(shape) - 3) + [(front, back), (top, bottom), (left, right)]
    sizes = g.constant(np.array(margins, np.int32))
    if kind == _REFLECT:
        return [g.add(MirrorPad(Mirror.REFLECT), site.x, sizes)]
    if kind == _EDGE:
        return [_edged(site, margins)]
    return [g.add(Pad(), site.x, sizes, g.constant(np.asarray(value, g.type(site.x).dtype.numpy)))]


def _edged(site: Site, margins: list[tuple[int, int]]) -> int:
    """Pad by repeating the outermost elements."""
    g = site.graph
    x = site.x
    for axis, (before, after) in enumerate(margins):
        if before or after:
            length = g.shape(x)[axis]
            at = np.clip(np.arange(-before, length + after), 0, length - 1).astype(np.int32)
            x = g.add(Gather(axis), x, g.constant(at))
    return x


def _gather(site: Site) -> Sequence[int]:
    """Gather along an axis; data or indices may be weights."""
    g = site.graph
    axis = site.integer("axis", 0)
    flags = site.flag("data in weights", 0), site.flag("indices in weights", 1)
    blobs = iter(site.inputs)
    operands = []
    for name, apart in zip(("data", "indices"), flags, strict=True):
        if not apart:
            operand = next(blobs, None)
            if operand is None:
                raise ModelError(f"it has no {name}")
            operands.append(operand)
            continue
        found = None if g.weights.generated else g.weights.buffer(site.layer, WeightRequest(name, ()))
        if found is None:
            raise ModelError(f"it has no {name}")
        array = found.array() if name == "indices" else found.real()
        operands.append(g.constant(array.reshape(found.shape) if found.shape else array))
    rank = len(g.shape(operands[0]))
    if not -rank <= axis < rank:
        raise ModelError(f"the axis is {axis}, expected one of {rank} dimensions")
    return [g.add(Gather(axis % rank), *operands)]


def _shuffle_channel(site: Site) -> Sequence[int]:
    """Transpose channels [groups, members] to [members, groups]."""
    g = site.graph
    shape = site.shape
    groups = site.integer("groups", None, 1)
    if len(shape) < 2 or shape[1] % groups:
        raise ModelError(f"the channels of {list(shape)} are not divisible into {groups} groups")
    x = g.add(Reshape((shape[0], groups, shape[1] // groups, *shape[2:])), site.x)
    return [g.add(Reshape(shape), g.transpose(x, (0, 2, 1, *range(3, len(shape) + 1))))]


def _pixel_shuffle(site: Site) -> Sequence[int]:
    """Depth to space with channels [out, factor, factor]."""
    shape = site.shape
    factor = site.integer("factor", None, 1, LARGEST)
    if len(shape) != 4 or shape[1] % (factor * factor):
        raise ModelError(f"the channels of {list(shape)} are not divisible into squares of {factor}")
    n, c, h, w = shape
    return [_in_squares(site, (n, c, h, w), factor)]


def _in_squares(site: Site, shape: tuple[int, int, int, int], factor: int) -> int:
    g, (n, c, h, w) = site.graph, shape
    outputs = c // (factor * factor)
    x = g.transpose(g.add(Reshape((n, outputs, factor, factor, h, w)), site.x), (0, 1, 4, 2, 5, 3))
    return g.add(Reshape((n, outputs, h * factor, w * factor)), x)


LAYERS = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "FlattenTorch": _flatten_axes,
    "Permute": _permute,
    "PermuteV2": _swapped,
    "Roll": _rolled,
    "Reorg": _reorganized,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "SplitV": _split,
    "SplitTorch": _split_evenly,
    "StridedSlice": _strided_slice,
    "StridedSliceV2": _strided_slice_v2,
    "Pad": _pad,
    "Gather": _gather,
    "ShuffleChannel": _shuffle_channel,
    "PixelShuffle": _pixel_shuffle,
}
