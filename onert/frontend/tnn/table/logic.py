"""Comparisons and logical operations, whose results are int8; integer shifts, remainders and histograms.

Source: TNN's equal, and, bitshift and histogram layer interpreters, and cpu_where_layer_acc.cc,
cpu_bitshift_layer_acc.cc, cpu_histogram_layer_acc.cc, cpu_mod_layer_acc.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from onert.frontend.tnn.site import Site, Writer
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.fill import Fill, Where
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Bitcast, Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.segment import SegmentReduction, UnsortedSegment

from .binary import pair
from .spans import LARGEST

_RIGHT = 0


def _truth(site: Site, x: int) -> int:
    """Whether elements are not 0."""
    g = site.graph
    if g.type(x).dtype is DType.BOOL:
        return x
    return g.add(Comparison(ComparisonKind.NOT_EQUAL), x, g.constant(np.zeros((), g.type(x).dtype.numpy)))


def _to_tnn(site: Site, x: int) -> Sequence[int]:
    """Booleans as TNN stores them."""
    return [site.graph.add(Cast(DType.INT8), x)]


def _compared(kind: ComparisonKind, site: Site) -> Sequence[int]:
    x, y = pair(site)
    return _to_tnn(site, site.graph.add(Comparison(kind), x, y))


def _connected(kind: BinaryKind, site: Site) -> Sequence[int]:
    x, y = (_truth(site, operand) for operand in pair(site))
    return _to_tnn(site, site.graph.add(Binary(kind), x, y))


def _places(site: Site) -> Sequence[int]:
    """The indices of nonzero elements, [dimensions, count], int32."""
    g = site.graph
    found = g.add(Transpose(), g.add(Where(), site.x), g.integers((1, 0)))
    return [g.add(Cast(DType.INT32), found)]


def _remainder(site: Site) -> Sequence[int]:
    """The remainder with the sign of the first operand, as in C."""
    x, y = pair(site)
    return [site.graph.add(Binary(BinaryKind.REMAINDER), x, y)]


def _shifted(site: Site) -> Sequence[int]:
    """A right or left shift of unsigned integers."""
    g = site.graph
    dtype = g.type(site.x).dtype
    if dtype not in (DType.INT32, DType.UINT32):
        raise ModelError(f"its input is {dtype.text}, expected i32 or u32")
    kind = BinaryKind.SHIFT_RIGHT if site.integer("direction", _RIGHT) == _RIGHT else BinaryKind.SHIFT_LEFT
    bits = site.integer("bits", 0, 0, 31)
    x = site.x if dtype is DType.UINT32 else g.add(Bitcast(DType.UINT32), site.x)
    x = g.add(Binary(kind), x, g.constant(np.array(bits, np.uint32)))
    return [x if dtype is DType.UINT32 else g.add(Bitcast(DType.INT32), x)]


def _histogram(site: Site) -> Sequence[int]:
    """How often each integer from 0 to `depth` - 1 occurs, int32."""
    g = site.graph
    depth = site.integer("depth", 0, 1, LARGEST)
    if g.type(site.x).dtype is not DType.INT32:
        raise ModelError(f"its input is {g.type(site.x)}, expected i32")
    count = g.integers((math.prod(site.shape),))
    ones = g.add(Fill(), count, g.constant(np.array(1, np.int32)))
    places = g.add(Reshape(), site.x, count)
    return [g.add(UnsortedSegment(SegmentReduction.SUM), ones, places, g.constant(np.array(depth, np.int32)))]


LAYERS: dict[str, Writer] = {
    "And": partial(_connected, BinaryKind.LOGICAL_AND),
    "BitShift": _shifted,
    "Equal": partial(_compared, ComparisonKind.EQUAL),
    "Greater": partial(_compared, ComparisonKind.GREATER),
    "Histogram": _histogram,
    "Less": partial(_compared, ComparisonKind.LESS),
    "Mod": _remainder,
    "NonZero": _places,
    "Not": lambda site: _to_tnn(site, site.graph.add(Unary(UnaryKind.LOGICAL_NOT), _truth(site, site.x))),
    "Or": partial(_connected, BinaryKind.LOGICAL_OR),
    "Where": lambda site: [site.graph.add(Select(), _truth(site, site.input(2)), site.input(0), site.input(1))],
}
