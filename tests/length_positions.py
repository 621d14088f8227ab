"""Models with dynamic dimensions whose operations read positions along them, for tests of lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onert.ir import DType, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.columns import FromColumns
from onert.ir.ops.data_movement.element_indices import ScatterSlices
from onert.ir.ops.data_movement.fill import Fill, Range, TopK
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import BroadcastTo, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation

_RANDOM = np.random.default_rng(6)


def _whole(*elements: int) -> Any:
    return np.array(elements, np.int32)


def _angles(b: Builder, x: int, count: int = 4) -> int:
    """Each row's position times some frequencies, as TensorFlow writes `position[:, None] * frequencies`."""
    size = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), b.constant(_whole(0)))
    rows = b.add(Range(), b.constant(np.int32(0)), b.add(Reshape(()), size), b.constant(np.int32(1)))
    zeros, ones = (b.constant(_whole(n, n)) for n in (0, 1))
    column = b.add(StridedSlice(1, 1, new_axis_mask=2), b.add(Cast(DType.FLOAT32), rows), zeros, zeros, ones)
    whole = b.add(StridedSlice(begin_mask=3, end_mask=3), column, zeros, zeros, ones)
    return b.add(Binary(BinaryKind.MUL), whole, b.constant(np.float32(0.31) ** np.float32([range(count)])))


def positions() -> Subgraphs:
    """Rows with encodings of their positions: sines and cosines side by side, alternating, and repeated."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 8)), "x")
    angles = _angles(b, x)
    waves = [b.add(Unary(kind), angles) for kind in (UnaryKind.SIN, UnaryKind.COS)]
    alternating = b.add(Reshape((-1, 8)), b.add(Pack(-1), *waves))
    repeated = b.add(Tile(), waves[0], b.constant(_whole(1, 2)))
    middle = b.add(
        StridedSlice(1, 1), b.add(Concat(1), *waves), *(b.constant(_whole(*n)) for n in ((0, 2), (0, 6), (1, 1)))
    )
    sums = [b.add(Binary(BinaryKind.ADD), x, each) for each in (alternating, repeated)]
    return b.model([*sums, b.add(Concat(1), middle, x)])


def last() -> Subgraphs:
    """The last row, picked at a computed index, as a sequence classifier does."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
    count = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), b.constant(_whole(0)))
    index = b.add(Binary(BinaryKind.SUB), count, b.constant(_whole(1)))
    row = b.add(StridedSlice(shrink_axis_mask=1), x, index, count, b.constant(_whole(1)))
    return b.model([row, b.add(Unary(UnaryKind.EXP), x)])


def volumes() -> Subgraphs:
    """A three-dimensional convolution."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 2, 5, 4, 3)), "x")
    filters, bias = (_RANDOM.normal(0, 0.3, shape).astype(np.float32) for shape in ((3, 3, 3, 3, 8), (8,)))
    return b.model([b.add(Conv3D(Padding.SAME, 1, 1, 1), x, b.constant(filters), b.constant(bias))])


def rooted() -> Subgraphs:
    """Scores divided by the root of their number, which every length rounds differently."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
    count = b.add(Cast(DType.FLOAT32), b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), b.constant(_whole(0))))
    root = b.add(Binary(BinaryKind.POW), count, b.constant(np.float32(0.5)))
    return b.model([b.add(Binary(BinaryKind.DIV), x, root)])


def descending() -> Subgraphs:
    """Encodings of positions counted from the last row, as relative attention uses them."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
    count = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), b.constant(_whole(0)))
    places = b.add(Range(), b.add(Reshape(()), count), b.constant(np.int32(0)), b.constant(np.int32(-1)))
    column = b.add(Reshape((-1, 1)), b.add(Cast(DType.FLOAT32), places))
    angles = b.add(Binary(BinaryKind.MUL), column, b.constant(np.float32([[1, 0.31, 0.1, 0.031]])))
    waves = b.add(Reverse(), b.add(Unary(UnaryKind.COS), angles), b.constant(_whole(1)))
    return b.model([b.add(Binary(BinaryKind.ADD), x, waves), b.add(Binary(BinaryKind.SUB), x, angles)])


def mixed(layers: int, width: int = 2048) -> Callable[[], Subgraphs]:
    """Encodings of positions that this many layers of constants mix."""

    def made() -> Subgraphs:
        b = Builder()
        x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
        waves = b.add(Unary(UnaryKind.SIN), _angles(b, x, width))
        for outputs in (*(width,) * layers, 4):
            weights = b.constant(_RANDOM.normal(0, 0.02, (outputs, width)).astype(np.float32))
            waves = b.add(FullyConnected(), waves, weights)
        return b.model([b.add(Binary(BinaryKind.ADD), x, waves)])

    return made


def resampled() -> Subgraphs:
    """Learned encodings of positions, resampled to the picture's size, as vision transformers do."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 4, 5, 3)), "x")
    learned = b.constant(_RANDOM.normal(0, 1, (1, 4, 4, 3)).astype(np.float32))
    size = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT64), x), b.constant(_whole(1, 2)))
    how = Interpolate(Interpolation.CUBIC, (1, 2), Coordinates.HALF_PIXEL)
    return b.model([b.add(Binary(BinaryKind.ADD), x, b.add(how, learned, size))])


def _assigned(b: Builder, x: int, waves: int, columns: Any) -> int:
    """Waves assigned to every second column of zeros, with an index for each element, as TorchScript exports it."""
    count = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT64), x), b.constant(np.int64([0])))
    shape, wide = (b.add(Concat(0), count, b.constant(np.int64([width]))) for width in (8, 4))
    zeros = b.add(Fill(), shape, b.constant(np.float32(0)))
    ends = (b.constant(np.int64(0)), b.add(Reshape(()), count), b.constant(np.int64(1)))
    rows = b.add(BroadcastTo(), b.add(Reshape((-1, 1)), b.add(Range(), *ends)), wide)
    both = [b.add(ExpandDims(), each, b.constant(np.int32(-1))) for each in (rows, b.add(BroadcastTo(), columns, wide))]
    indices = b.add(Concat(2), *both)
    negative = b.add(Comparison(ComparisonKind.LESS), indices, b.constant(np.int64(0)))
    indices = b.add(Select(), negative, b.add(Binary(BinaryKind.ADD), indices, shape), indices)
    return b.add(ScatterSlices(), zeros, indices, waves)


def assigned() -> Subgraphs:
    """Sines and cosines assigned to alternate columns, row by row and column by column; outer products by Einsum."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 8)), "x")
    sines = b.add(Unary(UnaryKind.SIN), _angles(b, x))
    by_row = _assigned(b, x, sines, b.constant(np.int64([0, 2, 4, 6])))
    count = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT64), x), b.constant(np.int64([0])))
    start, end = b.add(Binary(BinaryKind.SUB), count, b.constant(np.int64([1]))), b.constant(np.int64(-1))
    ends = (b.add(Cast(DType.FLOAT32), b.add(Reshape(()), start)), b.add(Cast(DType.FLOAT32), end))
    places = b.add(Range(), *ends, b.constant(np.float32(-1)))
    angles = b.add(Einsum("i,j->ji"), places, b.constant(np.float32([0.3, 0.7, 1.1, 0.2])))
    zeros = b.add(Fill(), b.add(Concat(0), b.constant(np.int64([8])), count), b.constant(np.float32(0)))
    columns = b.constant(np.int64([[1], [3], [5], [7]]))
    by_column = b.add(ScatterSlices(), zeros, columns, b.add(Unary(UnaryKind.COS), angles))
    turned = b.add(Transpose(), by_column, b.constant(_whole(1, 0)))
    return b.model([b.add(Binary(BinaryKind.ADD), b.add(Binary(BinaryKind.ADD), x, by_row), turned)])


def weighted() -> Subgraphs:
    """Layers with factors and summands that lengths determine, before and after them."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 8)), "x")
    count = b.add(Cast(DType.FLOAT32), b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), b.constant(_whole(0))))
    root = b.add(Unary(UnaryKind.RSQRT), count)
    row = b.add(Binary(BinaryKind.MUL), b.constant(_RANDOM.normal(0, 1, (1, 8)).astype(np.float32)), root)
    weights = b.constant(_RANDOM.normal(0, 1, (8, 8)).astype(np.float32))
    before = b.add(FullyConnected(), b.add(Binary(BinaryKind.ADD), x, row), weights)
    after = b.add(Binary(BinaryKind.DIV), b.add(FullyConnected(), x, weights), count)
    return b.model([before, b.add(Binary(BinaryKind.ADD), after, row)])


def assembled() -> Subgraphs:
    """Overlapping blocks summed into a picture."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 2, 3, 2)), "x")
    sizes = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT64), x), b.constant(_whole(1, 2)))
    channels = b.add(Transpose(), b.add(Reshape((1, -1, 2)), x), b.constant(_whole(0, 2, 1)))
    columns = b.add(Tile(), channels, b.constant(_whole(1, 9, 1)))
    block = b.constant(np.int64([3, 3]))
    return b.model([b.add(FromColumns(pads=(1, 1, 1, 1)), columns, sizes, block)])


def covaried() -> Subgraphs:
    """Sums of products of channels over all pixels."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 2, 3, 8)), "x")
    rows = b.add(Reshape((1, -1, 8)), x)
    return b.model([b.add(BatchMatMul(adjoint_x=True), rows, rows)])


def ranked() -> Subgraphs:
    """All rows in the order of their elements, as `argsort` is exported."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (3, 2)), "x")
    count = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), b.constant(_whole(1)))
    return b.model(b.add_many(TopK(), x, b.add(Reshape(()), count)))


_Models = list[tuple[str, Callable[[], Subgraphs], Callable[[int], list[tuple[int, ...]]]]]

MIXED_USES: _Models = [
    ("weighted", weighted, lambda n: [(max(n, 1), 8)]),
    ("assembled", assembled, lambda n: [(1, max(n, 1), n + 2, 2)]),
    ("covaried", covaried, lambda n: [(1, 20 + n, 2 * n + 60, 8)]),
]
"""Models whose lengths determine constants beside layers, places, or how sums are divided."""

POSITIONS: _Models = [
    ("positions", positions, lambda n: [(max(n, 1), 8)]),
    ("rooted", rooted, lambda n: [(max(n, 1), 4)]),
    ("mixed", mixed(0, 32), lambda n: [(max(n, 1), 4)]),
    ("descending", descending, lambda n: [(max(n, 1), 4)]),
    ("resampled", resampled, lambda n: [(1, max(n, 1), n + 2, 3)]),
    ("last", last, lambda n: [(max(n, 1), 4)]),
    ("volumes", volumes, lambda n: [(1, max(n, 1), 5, 4, 3)]),
    ("assigned", assigned, lambda n: [(max(n, 1), 8)]),
    *MIXED_USES,
    ("ranked", ranked, lambda n: [(3, n + 30)]),
]
