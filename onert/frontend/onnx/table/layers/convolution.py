"""Convolutions, computed with the channels last in one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import gcd, prod

import numpy as np
from attrs import evolve, frozen

from onert.frontend.onnx.building import (
    binary,
    cast,
    concat,
    dimension,
    ints,
    known_shape,
    require_rank,
    reshape,
    to_channels_first,
    to_channels_last,
    transpose,
)
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.movement import padded, sliced, split
from onert.ir import DType, ModelError
from onert.ir.ops.arithmetic.window import MAX_STEP, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.dense import Dilate
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.data_movement.reshape import ExpandDims, Squeeze
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.value import Value

from .windows import Windows, explicit, windows

_LINE = DType.INT32
_MOST_PHASES, _FEW_PHASES = 1024, 4
"""The maximum number of phases of a transposed convolution, which have their own filters; and the number up to which,
for depthwise ones, summing the zeros between elements is faster than interleaving phases.
"""


def _conv(node: Node) -> int:
    d, x, weight = node.draft, node.input(0), node.input(1)
    rank = convolution_rank(d, x, weight)
    kernel, given = d.type(weight).shape[2:], node.integers("kernel_shape")
    if given is not None and len(given) == len(kernel):
        kernel = tuple(g if k is None else k for k, g in zip(kernel, given, strict=True))
    if None in kernel and node.text("auto_pad", "NOTSET").startswith("SAME"):
        raise ModelError(f"the filter is {d.type(weight)}, expected a known window because its size determines padding")
    # Explicit margins depend on no size: 1 stands for one that only the filter has.
    found = windows(node, tuple(1 if k is None else k for k in kernel), d.type(x).shape[2:])
    return convolve(d, x, weight, node.optional(2), found, node.integer("group", 1), rank)


def convolution_rank(d: Draft, x: int, weight: int) -> int:
    rank = require_rank(d, x, 3)
    if rank > 5:
        raise ModelError(f"has input {d.type(x)}, expected at most 3 spatial dimensions")
    if d.type(weight).rank != rank:
        raise ModelError(f"the filter is {d.type(weight)}, expected {rank} dimensions")
    return rank


def convolve(d: Draft, x: int, weight: int, bias: int | None, over: Windows, groups: int, rank: int) -> int:
    """The convolution of x [batch, channels, ...] by weight [filters, channels / groups, ...]."""
    channels, inner, filters = d.type(x).shape[1], d.type(weight).shape[1], d.type(weight).shape[0]
    if groups < 1 or (inner is not None and channels not in (None, inner * groups)):
        raise ModelError(f"{groups} groups of {inner} channels do not fit {d.type(x)}")
    if filters is not None and filters % groups:
        raise ModelError(f"{filters} filters do not fit {groups} groups")
    image = transpose(d, x, to_channels_last(rank))
    if rank == 5:
        return transpose(d, _convolve_3d(d, image, weight, bias, over, groups), to_channels_first(5))
    filters_last = transpose(d, weight, to_channels_last(rank))
    if rank == 3:
        image, filters_last = (d.add(ExpandDims(), i, d.constant(1, _LINE)) for i in (image, filters_last))
    image, padding = over.apply(d, image, 2)
    steps, apart = ((1, *v) if rank == 3 else v for v in (over.strides, over.dilations))
    op = Conv2D(padding, steps[0], steps[1], apart[0], apart[1])
    out = d.add(op, image, filters_last, bias)
    out = d.add(Squeeze((1,)), out) if rank == 3 else out
    return transpose(d, out, to_channels_first(rank))


def _convolve_3d(d: Draft, image: int, weight: int, bias: int | None, over: Windows, groups: int) -> int:
    """A 3-D convolution, group by group; filters are transposed to [depth, height, width, channels, filters]."""
    held, sizes = d.type(weight).value, d.type(image).shape[1:4]
    known = held is not None and bool(np.isfinite(held).all()) and None not in sizes
    if groups > 1 and known and d.type(image).dtype.is_float:
        return _convolve_planes(d, image, weight, bias, over)
    image, padding = over.apply(d, image, 3)
    (depth, height, width), (deep, high, wide) = over.strides, over.dilations
    op = Conv3D(padding, depth, height, width, deep, high, wide)
    filters, inner = d.type(weight).shape[:2]
    if groups == 1:
        return d.add(op, image, transpose(d, weight, (2, 3, 4, 1, 0)), bias)
    if filters is None or inner is None:
        raise ModelError(f"the filter is {d.type(weight)}, expected a known shape")
    images = split(d, image, [inner] * groups, 4)
    weights = split(d, weight, [filters // groups] * groups, 0)
    parts = [d.add(op, i, transpose(d, w, (2, 3, 4, 1, 0))) for i, w in zip(images, weights, strict=True)]
    out = d.add(Concat(4), *parts)
    return out if bias is None else binary(d, BinaryKind.ADD, out, bias)


def _convolve_planes(d: Draft, image: int, weight: int, bias: int | None, over: Windows) -> int:
    """A 3-D convolution as a sum of 2-D ones per plane of the window, all groups at once; needs finite constants."""
    _, depth, height, width, channels = d.type(image).shape
    (step, down, across), (apart, high, wide) = over.strides, over.dilations
    if over.kernel[1:] == over.strides[1:] == (1, 1) and not any(map(any, over.margins[1:])):
        filters, inner = d.type(weight).shape[:2]
        lines = reshape(d, image, (None, depth, (height or 0) * (width or 0), channels))
        own = reshape(d, transpose(d, weight, (0, 2, 3, 4, 1)), (filters, over.kernel[0], 1, inner))
        margins = explicit((over.margins[0], (0, 0)), 2)
        out = d.add(Conv2D(margins, step, 1, apart, 1), lines, own, bias)
        return reshape(d, out, (None, d.type(out).shape[1], height, width, filters))
    image = padded(d, image, [(0, 0), over.margins[0], (0, 0), (0, 0), (0, 0)])
    count = ((depth or 0) + sum(over.margins[0]) - over.extents[0]) // step + 1
    flat = evolve(over, kernel=over.kernel[1:], strides=over.strides[1:], dilations=over.dilations[1:])
    flat = evolve(flat, margins=over.margins[1:])
    filters, total = transpose(d, weight, (2, 0, 3, 4, 1)), None
    for number in range(over.kernel[0]):
        first = number * apart
        limits = (ints(d, [first]), ints(d, [first + (count - 1) * step + 1]))
        pictures = reshape(d, sliced(d, image, [1], *limits, ints(d, [step])), (None, height, width, channels))
        own = sliced(d, filters, [0], ints(d, [number]), ints(d, [number + 1]), None)
        own = reshape(d, own, d.type(filters).shape[1:])
        pictures, padding = flat.apply(d, pictures, 2)
        part = d.add(Conv2D(padding, down, across, high, wide), pictures, own, None if number else bias)
        total = part if total is None else binary(d, BinaryKind.ADD, part, total)
    assert total is not None
    return reshape(d, total, (None, count, *d.type(total).shape[1:]))


def _transposed(node: Node) -> int:
    """A convolution of x, with zeros between its elements, by mirrored filters.

    Output o of an axis sums `x[i] * w[k]` over `i * stride + k * dilation - before = o`.
    """
    d, x, weight = node.draft, node.input(0), node.input(1)
    rank = convolution_rank(d, x, weight)
    spatial = rank - 2
    groups = node.integer("group", 1)
    shape = d.type(weight).shape
    if None in shape:
        raise ModelError(f"the filter is {d.type(weight)}, expected a known shape")
    channels, inner, *kernel = (s or 0 for s in shape)
    if groups < 1 or channels % groups:
        raise ModelError(f"{channels} channels do not fit {groups} groups")
    strides = node.integers("strides") or (1,) * spatial
    dilations = node.integers("dilations") or (1,) * spatial
    if len(strides) != spatial or len(dilations) != spatial:
        raise ModelError(f"strides {list(strides)} and dilations {list(dilations)} do not fit {spatial} dimensions")
    if not all(1 <= step <= MAX_STEP for step in (*strides, *dilations)):
        raise ModelError(f"strides are {list(strides)}, dilations {list(dilations)}, expected at least 1")
    extents = [(k - 1) * a + 1 for k, a in zip(kernel, dilations, strict=True)]
    margins = _transposed_margins(node, d.type(x).shape[2:], extents, strides)
    inside = all(max(side) < k for side, k in zip(margins, kernel, strict=True)) and all(a >= 0 for a, _ in margins)
    uneven = rank == 5 and any(k % s for k, s in zip(kernel, strides, strict=True)) and None not in d.type(x).shape[1:]
    if groups == 1 and inside and all(a == 1 for a in dilations) and d.type(x).dtype.is_float and not uneven:
        return _scatter_convolution(d, x, weight, node.optional(2), strides, margins)
    single = groups == channels and inner == 1
    few = prod(strides) <= (_FEW_PHASES if single else 1)
    if not few and None not in d.type(x).shape[1:] and d.type(x).dtype.is_float:
        found = _phases(d.type(x).shape[2:], kernel, strides, dilations, margins)
        if found is not None and prod(len(axis.each) for axis in found) <= _MOST_PHASES:
            return _convolve_phases(d, x, _mirror_filters(d, weight, groups), node.optional(2), found, groups)
    if any(s > 1 for s in strides):
        x = d.add(Dilate(), x, ints(d, (1, 1, *strides), _LINE), d.constant(0, d.type(x).dtype))
    around = [(e - 1 - before, e - 1 - after) for e, (before, after) in zip(extents, margins, strict=True)]
    x = padded(d, x, [(0, 0), (0, 0), *around])
    over = Windows(tuple(kernel), (1,) * spatial, tuple(dilations), ((0, 0),) * spatial, Padding.VALID)
    return convolve(d, x, _mirror_filters(d, weight, groups), node.optional(2), over, groups, rank)


def _mirror_filters(d: Draft, weight: int, groups: int) -> int:
    """Filters [groups * inputs, filters, ...], mirrored and transposed to [groups * filters, inputs, ...]."""
    channels, inner, *kernel = known_shape(d, weight, "the filter")
    mirrored = d.add(Reverse(), weight, ints(d, range(2, 2 + len(kernel)), _LINE))
    each = channels // groups
    parted = reshape(d, mirrored, (groups, each, inner, *kernel))
    order = (0, 2, 1, *range(3, 3 + len(kernel)))
    return reshape(d, transpose(d, parted, order), (groups * inner, each, *kernel))


@frozen
class _Phase(Value):
    """The results of one phase along an axis: a convolution with each `step`-th mirrored tap from `first` on."""

    first: int
    step: int
    count: int
    dilation: int
    margins: tuple[int, int]


@frozen
class _Phases(Value):
    """The phases of an axis, the number of results of each, and the range of the interleaved results to keep."""

    each: tuple[_Phase, ...]
    count: int
    first: int
    size: int


def _phases(
    sizes: Sequence[int | None],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    margins: Sequence[tuple[int, int]],
) -> list[_Phases] | None:
    """The phases of each axis; None if one has no taps.

    Result y sums `x[i] * w[k]` over `i * stride + k * dilation = y + before`, so its taps are the k with
    `k * dilation % stride == (y + before) % stride`.
    """
    found = []
    for n, taps, stride, apart, (before, after) in zip(sizes, kernel, strides, dilations, margins, strict=True):
        size = ((n or 0) - 1) * stride + (taps - 1) * apart + 1 - before - after
        begin, common, each = before // stride, gcd(stride, apart), []
        count = (size - 1 + before) // stride - begin + 1
        for rest in range(stride):
            own = [k for k in range(taps) if (k * apart - rest) % stride == 0]
            if not own or size < 1:
                return None
            left, right = ((k * apart - rest) // stride for k in (own[-1], own[0]))
            around = (left - begin, begin + count - 1 - right - ((n or 0) - 1))
            each.append(_Phase(taps - 1 - own[-1], stride // common, len(own), apart // common, around))
        found.append(_Phases(tuple(each), count, before - begin * stride, size))
    return found


def _convolve_phases(d: Draft, x: int, turned: int, bias: int | None, axes: Sequence[_Phases], groups: int) -> int:
    """A transposed convolution of an image [batch, channels, ...] as a convolution per phase, with results interleaved.

    Phases that differ only in their filters become additional filters of one convolution.
    """
    spatial, found = len(axes), []
    for phases in product(*(axis.each for axis in axes)):
        ends = [p.first + (p.count - 1) * p.step + 1 for p in phases]
        firsts, steps = [p.first for p in phases], [p.step for p in phases]
        own = sliced(d, turned, range(2, 2 + spatial), ints(d, firsts), ints(d, ends), ints(d, steps))
        kernel, apart = (tuple(p.count for p in phases), tuple(p.dilation for p in phases))
        found.append((Windows(kernel, (1,) * spatial, apart, tuple(p.margins for p in phases), Padding.VALID), own))
    counts, strides = [a.count for a in axes], [len(a.each) for a in axes]
    filters, each, *_ = known_shape(d, turned, "the filter")
    inner, over = filters // groups, found[0][0]
    if all(other == over for other, _ in found):
        parts = [reshape(d, own, (groups, 1, inner, each, *over.kernel)) for _, own in found]
        joint = reshape(d, d.add(Concat(1), *parts), (filters * len(found), each, *over.kernel))
        if bias is not None:
            bias = reshape(d, d.add(Concat(1), *[reshape(d, bias, (groups, 1, inner))] * len(found)), (None,))
        joint = convolve(d, x, joint, bias, over, groups, 2 + spatial)
        joint, first, own_axes = reshape(d, joint, (None, groups, *strides, inner, *counts)), 2, (1, 2 + spatial)
    else:
        joint = d.add(Concat(1), *(convolve(d, x, own, bias, over, groups, 2 + spatial) for over, own in found))
        joint = reshape(d, joint, (None, *strides, groups, inner, *counts))
        first, own_axes = 1, (1 + spatial, 2 + spatial)
    turns = (i for axis in range(spatial) for i in (3 + spatial + axis, first + axis))
    whole = transpose(d, joint, (0, *own_axes, *turns))
    whole = reshape(d, whole, (None, filters, *(n * s for n, s in zip(counts, strides, strict=True))))
    limits = (ints(d, [a.first for a in axes]), ints(d, [a.first + a.size for a in axes]))
    return sliced(d, whole, range(2, 2 + spatial), *limits, None)


def _scatter_convolution(
    d: Draft, x: int, weight: int, bias: int | None, strides: Sequence[int], margins: Sequence[tuple[int, int]]
) -> int:
    """A transposed convolution in two or three dimensions; `margins` are cropped from the result, or added if negative.

    Filters are stored [channels, filters, ...].
    """
    rank = d.type(x).rank
    image, filters, *kernel = (transpose(d, x, to_channels_last(rank)), *d.type(weight).shape[1:])
    sizes = [
        binary(d, BinaryKind.ADD, binary(d, BinaryKind.MUL, dimension(d, x, 2 + i), ints(d, [step])), ints(d, [rest]))
        for i, (step, rest) in enumerate(
            (s, (k or 0) - s - before - after) for s, k, (before, after) in zip(strides, kernel, margins, strict=True)
        )
    ]
    if rank == 3:
        sizes, strides = [ints(d, [1]), *sizes], (1, *strides)
        image = d.add(ExpandDims(), image, d.constant(1, _LINE))
    shape = cast(d, concat(d, [dimension(d, x, 0), *sizes, ints(d, [filters or 0])]), _LINE)
    padding = explicit([(before, max(after, 0)) for before, after in margins], len(strides))
    if rank == 5:
        turned, (deep, down, across) = transpose(d, weight, (2, 3, 4, 1, 0)), strides
        space = TransposeConv3D(padding, deep, down, across)
        return transpose(d, d.add(space, shape, turned, image, bias), to_channels_first(5))
    turned = transpose(d, weight, (1, *range(2, rank), 0))
    turned = d.add(ExpandDims(), turned, d.constant(1, _LINE)) if rank == 3 else turned
    down, across = strides
    out = d.add(TransposeConv2D(padding, down, across), shape, turned, image, bias)
    return transpose(d, d.add(Squeeze((1,)), out) if rank == 3 else out, to_channels_first(rank))


def _transposed_margins(
    node: Node, sizes: Sequence[int | None], extents: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """The margins to crop before and after along each axis; negative ones add zeros."""
    count = len(extents)
    more = node.integers("output_padding") or (0,) * count
    wanted = node.integers("output_shape")
    auto = node.text("auto_pad", "NOTSET")
    pads = node.integers("pads") or (0,) * (2 * count)
    if len(pads) != 2 * count or len(more) != count or not all(abs(p) <= MAX_STEP for p in (*pads, *more)):
        raise ModelError(f"pads {list(pads)} and output_padding {list(more)} do not fit {count} dimensions")
    found = []
    for i in range(count):
        size = sizes[i]
        if wanted is None and auto in ("NOTSET", "VALID"):
            before, after = (pads[i], pads[i + count]) if auto == "NOTSET" else (0, 0)
            found.append((before, after - more[i]))
            continue
        if wanted is None:
            total = more[i] + extents[i] - strides[i]
        elif size is None:
            raise ModelError(f"has input {node.type(0)}, expected known dimensions with an output_shape")
        else:
            total = strides[i] * (size - 1) + more[i] + extents[i] - wanted[-count:][i]
        half = total // 2 if auto != "NOTSET" or total > 0 else total  # the surplus is at the end
        before, after = (half, total - half) if auto == "SAME_UPPER" else (total - half, half)
        found.append((before, after - more[i]))
    return found


TABLE: dict[str, Importer] = {"Conv": _conv, "ConvTranspose": _transposed}
