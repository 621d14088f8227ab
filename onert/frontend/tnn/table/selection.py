"""Selection, counting, repetition and other small layers.

Source: TNN's layer_interpreter/*.cc and device/cpu/acc/*.cc; where its reference device computes nothing (indices of
the largest elements), the semantics that its converters rely on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.frontend.tnn.buffers import WeightRequest
from onert.frontend.tnn.site import Site
from onert.frontend.tnn.structure import DTYPES, MOST
from onert.ir import Array, DType, ModelError
from onert.ir.ops.data_movement.element_indices import Combination, GatherElements, ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.fill import Fill, Range, TopK
from onert.ir.ops.data_movement.gather import GatherNd, OneHot
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo, Mirror, MirrorPad, Pad, Slice, Tile
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.vision_audio.sampling import GridSample

from .spans import LARGEST, elements

_CONSTANT, _REFLECT = 0, 1
_BILINEAR, _ZEROS = 2, 0
_LEAST = -MOST - 1


def _arg_reduce(site: Site) -> Sequence[int]:
    """The index of the largest or smallest element along an axis, int32; the axis is kept with size 1."""
    g = site.graph
    shape = site.shape
    kind = Extreme.MAX if site.flag("largest") else Extreme.MIN
    axis = site.axis("axis", len(shape))
    site.flag("keep dimensions", 1)
    last = site.flag("the last of equal ones", 0)
    at = g.integers([axis])
    x = g.add(Reverse(), site.x, at) if last else site.x
    found = g.add(ArgReduce(kind, DType.INT32), x, g.constant(np.array(axis, np.int32)))
    if last:
        found = g.binary(BinaryKind.SUB, g.constant(np.array(shape[axis] - 1, np.int32)), found)
    return [g.add(Reshape((*shape[:axis], 1, *shape[axis + 1 :])), found)]


def _normalize(site: Site) -> Sequence[int]:
    """Divide by the L1 norm, the L2 norm, the maximum or the minimum over the channels."""
    g = site.graph
    across, epsilon = site.flag("across space", 0), site.number("epsilon", 1e-12)
    site.flag("shared by channels", 1)
    axis, p = site.integer("axis", 1), site.integer("order", 2)
    if len(site.shape) < 2:
        raise ModelError(f"its input has the shape {list(site.shape)}, expected at least 2 dimensions")
    over = "all of space" if across else f"axis {axis}"
    if across or axis != 1 or p not in (1, 2, MOST, _LEAST):
        raise ModelError(f"it normalises {over} by order {p}, expected axis 1 and order 1, 2, {MOST} or {_LEAST}")
    at = g.integers([1])
    if p in (MOST, _LEAST):
        by = g.add(Reduce(Reduction.MAX if p == MOST else Reduction.MIN, True), site.x, at)
    else:
        size = g.add(Unary(UnaryKind.ABS if p == 1 else UnaryKind.SQUARE), site.x)
        by = g.add(Reduce(Reduction.SUM, True), size, at)
    if p == 2:
        by = g.binary(BinaryKind.MAXIMUM, g.add(Unary(UnaryKind.SQRT), by), epsilon)
    return [g.binary(BinaryKind.DIV, site.x, by)]


def _pad(site: Site) -> Sequence[int]:
    """Pad; the parameters are the margins before all axes, then after all axes."""
    g = site.graph
    rank = len(site.shape)
    count = site.integer("number of axes", 0, 0, rank)
    sides = [[site.integer("margin", None, 0, LARGEST) for _ in range(count)] for _ in range(2)]
    kind, value = site.integer("type", _CONSTANT, _CONSTANT, _REFLECT), site.number("value", 0.0)
    margins = [*zip(*sides, strict=True), *[(0, 0)] * (rank - count)]
    elements(tuple(d + a + b for d, (a, b) in zip(site.shape, margins, strict=True)))
    sizes = g.constant(np.array(margins, np.int32))
    if kind == _REFLECT:
        return [g.add(MirrorPad(Mirror.REFLECT), site.x, sizes)]
    return [g.add(Pad(), site.x, sizes, g.constant(np.asarray(value, g.type(site.x).dtype.numpy)))]


def _tile(site: Site) -> Sequence[int]:
    """Tile; the repetitions apply to the last axes."""
    g = site.graph
    shape = site.shape
    times = [site.integer("repetitions", None, 1, LARGEST) for _ in range(site.remaining)]
    rank = max(len(shape), len(times))
    wide = (*(1,) * (rank - len(shape)), *shape)
    times = [1] * (rank - len(times)) + times
    elements(tuple(d * t for d, t in zip(wide, times, strict=True)))
    return [g.add(Tile(), g.add(Reshape(wide), site.x), g.integers(times))]


def _expand(site: Site) -> Sequence[int]:
    """Broadcast to the common shape of the input and a given shape."""
    g = site.graph
    given, wanted = site.shape, site.integer_list("lengths")
    try:
        shape = np.broadcast_shapes(given, tuple(wanted))
    except ValueError as error:
        raise ModelError(f"the shape {list(given)} does not broadcast with {list(wanted)}") from error
    elements(shape)
    return [g.add(BroadcastTo(), site.x, g.integers(shape))]


def _cast(site: Site) -> Sequence[int]:
    code = site.integer("element type", 0)
    if code not in DTYPES:
        raise ModelError(f"the element type is {code}, expected one of {list(DTYPES)}")
    return [site.graph.add(Cast(DTYPES[code]), site.x)]


def _signed_mul(site: Site) -> Sequence[int]:
    """`(sign(x - alpha) + beta) / gamma`, with each channel multiplied by the first."""
    g = site.graph
    shape = site.shape
    alpha, beta, gamma = (site.number(what) for what in ("alpha", "beta", "gamma"))
    if len(shape) < 2 or gamma == 0:
        raise ModelError(f"its input has the shape {list(shape)} and gamma is {gamma}")
    sign = g.add(Unary(UnaryKind.SIGN), g.binary(BinaryKind.SUB, site.x, alpha))
    y = g.binary(BinaryKind.MUL, g.binary(BinaryKind.ADD, sign, beta), float(np.float32(1) / np.float32(gamma)))
    first = g.add(Slice(), y, g.integers([0] * len(shape)), g.integers([shape[0], 1, *shape[2:]]))
    return [g.binary(BinaryKind.MUL, y, first)]


def _top(site: Site) -> Sequence[int]:
    """The largest or smallest elements along an axis in order, and their indices as int32."""
    g = site.graph
    shape = site.shape
    axis, largest = site.axis("axis", len(shape), -1), site.flag("largest", 1)
    site.flag("sorted", 1)
    count = site.integer("number of elements", None, 0, shape[axis])
    order = [*range(len(shape))]
    order[axis], order[-1] = order[-1], order[axis]
    x = g.transpose(site.x, order)
    values, places = g.add_many(TopK(least=not largest), x, g.constant(np.array(count, np.int32)))
    return [g.transpose(found, order) for found in (values, places)][: len(site.layer.outputs)]


def _one_hot(site: Site) -> Sequence[int]:
    g = site.graph
    axis, depth = site.axis("axis", len(site.shape) + 1, -1), site.integer("depth", None, 1, LARGEST)
    off, on = (g.constant(np.array(site.number(what, default), np.float32)) for what, default in _VALUES)
    indices = g.add(Cast(DType.INT32), site.x)
    return [g.add(OneHot(axis), indices, g.constant(np.array(depth, np.int32)), on, off)]


_VALUES = (("off value", 0.0), ("on value", 1.0))


def _gather_slices(site: Site) -> Sequence[int]:
    if site.integer("batch dimensions", 0) != 0:
        raise ModelError("it has batch dimensions, which is not supported")
    return [site.graph.add(GatherNd(), site.x, site.input(1))]


def _grid_sample(site: Site) -> Sequence[int]:
    mode, outside = site.integer("mode", _BILINEAR), site.integer("padding", _ZEROS)
    if mode != _BILINEAR or outside != _ZEROS:
        raise ModelError(f"the mode is {mode} and the padding {outside}, expected bilinear (2) and zeros (0)")
    return [site.graph.add(GridSample(corners=site.flag("align corners", 0)), site.x, site.input(1))]


def _from_front(site: Site, indices: int, size: Array) -> int:
    """Convert negative indices, which count from the end."""
    g = site.graph
    zero = g.constant(np.zeros((), g.type(indices).dtype.numpy))
    below = g.add(Comparison(ComparisonKind.LESS), indices, zero)
    return g.add(Select(), below, g.binary(BinaryKind.ADD, indices, size), indices)


def _gather_elements(site: Site) -> Sequence[int]:
    shape = site.shape
    axis = site.axis("axis", len(shape), 0)
    indices = _from_front(site, site.input(1), np.array(shape[axis]))
    return [site.graph.add(GatherElements(axis), site.x, indices)]


def _scatter_elements(site: Site) -> Sequence[int]:
    """Scatter elements; the data may be a weight. Updates replace elements or are added to them."""
    data, indices, updates = _some_in_weights(site, ("data",))
    g = site.graph
    shape = g.shape(data)
    axis, adds = site.axis("axis", len(shape)), site.integer("operation", 0, 0, 1)
    op = ScatterElements(axis, Combination.ADD if adds else Combination.REPLACE)
    return [g.add(op, data, _from_front(site, indices, np.array(shape[axis])), updates)]


def _some_in_weights(site: Site, there: tuple[str, ...]) -> list[int]:
    """The operands data, indices and updates: blobs, or weights if there are fewer than three blobs."""
    g = site.graph
    blobs, found = iter(site.inputs), []
    missing = 3 - len(site.layer.inputs)
    for name in ("data", "indices", "updates"):
        part = g.weights.buffer(site.layer, WeightRequest(name, ())) if missing > 0 and name in there else None
        if part is not None and not g.weights.generated:
            missing -= 1
            found.append(g.constant(part.array().reshape(part.shape) if part.shape else part.array()))
            continue
        blob = next(blobs, None)
        if blob is None:
            raise ModelError(f"it has no {name}")
        found.append(blob)
    return found


def _constant(site: Site) -> Sequence[int]:
    """A weight with the shape in the parameters."""
    shape = site.integer_list("lengths")
    elements(shape)
    found = site.required_buffer(WeightRequest("weight", shape))
    return [site.graph.constant(found.array().reshape(shape))]


def _constant_of_shape(site: Site) -> Sequence[int]:
    g = site.graph
    value = site.required_buffer(WeightRequest("value", (1,)))
    return [g.add(Fill(), site.x, g.constant(value.array().reshape(())))]


def _range(site: Site) -> Sequence[int]:
    g = site.graph
    return [g.add(Range(), *(g.add(Reshape(()), site.input(at)) for at in range(3)))]


def _cumulated(site: Site) -> Sequence[int]:
    g = site.graph
    axis = site.axis("axis", len(site.shape))
    op = CumSum(site.flag("exclusive", 0), site.flag("reverse", 0))
    return [g.add(op, site.x, g.constant(np.array(axis, np.int32)))]


def _shape(site: Site) -> Sequence[int]:
    g = site.graph
    return [g.constant(np.array(site.shape, np.int32))]


def _size(site: Site) -> Sequence[int]:
    g = site.graph
    return [g.constant(np.array([math.prod(site.shape)], np.int32))]


LAYERS = {
    "ArgMaxOrMin": _arg_reduce,
    "Cast": _cast,
    "Const": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Cumsum": _cumulated,
    "Expand": _expand,
    "GatherElements": _gather_elements,
    "GatherND": _gather_slices,
    "GridSample": _grid_sample,
    "Normalize": _normalize,
    "OneHot": _one_hot,
    "PadV2": _pad,
    "Range": _range,
    "Repeat": _tile,
    "ScatterElements": _scatter_elements,
    "ScatterND": lambda site: [site.graph.add(ScatterSlices(), *_some_in_weights(site, ("indices", "updates")))],
    "Shape": _shape,
    "SignedMul": _signed_mul,
    "Size": _size,
    "Tile": _tile,
    "TopK": _top,
}
