"""Models with dynamic dimensions, for tests of lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import evolve
from length_counts import COUNTS
from length_integers import averaged, bytes_, resized
from length_pictures import ANTIALIASED, PICTURES
from length_positions import POSITIONS

from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.sequences import SequenceInsert, SequenceJoin, SequenceOf
from onert.ir.ops.data_movement.diagonal import MatrixBandPart
from onert.ir.ops.data_movement.fill import Fill, Range, Unique, Where
from onert.ir.ops.data_movement.gather import Gather, GatherNd, ScatterNd
from onert.ir.ops.data_movement.joining import Concat, Pack, Unpack
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import Pad, Slice, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind, ZerosLike
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.rnn import RNN
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.segment import SegmentReduction, UnsortedSegment
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding

LENGTHS = (2, 7, 1, 5, 0, 12, 40, 9, 33)
RANDOM = np.random.default_rng(5)


def weights(*shape: int) -> Any:
    return RANDOM.normal(0, 0.3, shape).astype(np.float32)


def pooled() -> Subgraphs:
    """Windows that extend beyond an image, and padding."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
    y = b.add(Conv2D(Padding.SAME, 1, 1, 1, 1), x, b.constant(weights(20, 3, 3, 3)), b.constant(weights(20)))
    mean = b.add(Pool2D(Pooling.AVERAGE, 3, 3, Padding.SAME, 2, 2), y)
    return b.model([b.add(Pad(), mean, b.constant([[0, 0], [1, 0], [2, 1], [0, 0]], dtype=DType.INT32))])


def _broadcast() -> Subgraphs:
    """Two lengths that broadcast against each other; either may be 1."""
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, (2, 4)), name) for name in "xy")
    both = b.add(Binary(BinaryKind.ADD), x, y)
    return b.model([b.add(FullyConnected(), both, b.constant(weights(3, 4)))])


def _attention() -> Subgraphs:
    """Self-attention of rows."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 2, 8)), "x")
    scores = b.add(Softmax(1.0), b.add(BatchMatMul(adjoint_y=True), x, x))
    seen = b.add(BatchMatMul(), scores, x)
    turned = b.add(Transpose(), b.add(Concat(2), seen, x), b.constant([0, 2, 1], dtype=DType.INT32))
    return b.model([turned])


def _enlarged(height: int, width: int, coordinates: Coordinates) -> Callable[[], Subgraphs]:
    """An image enlarged by these factors, each element taken from the nearest pixel."""

    def made() -> Subgraphs:
        b = Builder()
        x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
        scales = (float(height), float(width))
        op = Interpolate(Interpolation.NEAREST, (1, 2), coordinates, Rounding.FLOOR, scales)
        return b.model([b.add(op, x)])

    return made


def interpolated(how: Interpolation, scale: float, axes: tuple[int, int]) -> Callable[[], Subgraphs]:
    """An image scaled by a factor, whose interpolation weights differ from pixel to pixel."""

    def made() -> Subgraphs:
        b = Builder()
        x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
        return b.model([b.add(Interpolate(how, axes, scales=(scale, scale)), x)])

    return made


def _initial(b: Builder, x: int, axis: int, value: float) -> int:
    """A state of three units for each of a batch that is an axis of `x`, all of this value."""
    ends = (b.constant([n], dtype=DType.INT32) for n in (axis, 1))
    batch = b.add(Slice(), b.add(ShapeOf(DType.INT32), x), *ends)
    return b.add(Fill(), b.add(Concat(0), batch, b.constant([3], dtype=DType.INT32)), b.constant(np.float32(value)))


def _recurrent() -> Subgraphs:
    """A recurrent step whose initial state has as many rows as the input."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
    state = _initial(b, x, 0, 0.5)
    own = b.add(FullyConnected(), x, b.constant(weights(3, 4)))
    fed = b.add(FullyConnected(), state, b.constant(weights(3, 3)))
    return b.model([b.add(Binary(BinaryKind.ADD), own, fed)])


def unrolled() -> Subgraphs:
    """A GRU, then an RNN, both from a state of zeros for each of a batch."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 1, 4)), "x")
    gru, rnn = (weights(9, 4), weights(9), weights(9, 3), weights(9)), (weights(3, 3), weights(3, 3), weights(3))
    y = b.add(GRU(return_sequences=True), x, *map(b.constant, gru), _initial(b, x, 1, 0))
    return b.model([b.add_many(RNN(time_major=True), y, *map(b.constant, rnn), _initial(b, x, 1, 0))[0]])


def _steps() -> Subgraphs:
    """A GRU over steps, and the last of its outputs beside the first."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 1, 4)), "x")
    given = (weights(9, 4), weights(9), weights(9, 3), weights(9), np.zeros((1, 3), np.float32))
    outputs = b.add(GRU(return_sequences=True), x, *map(b.constant, given))
    count = b.add(Slice(), b.add(ShapeOf(DType.INT32), x), *(b.constant([n], dtype=DType.INT32) for n in (0, 1)))
    last = b.add(Binary(BinaryKind.SUB), count, b.constant([1], dtype=DType.INT32))
    places = b.add(Concat(0), last, b.constant([0], dtype=DType.INT32))
    return b.model([b.add(Gather(0, 0), outputs, places)])


def _heads() -> Subgraphs:
    """Batched matrix products, one of them with an operand shared by several batches."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 3, 5, 4)), "x")
    own = b.add(BatchMatMul(), x, b.constant(weights(3, 4, 6)))
    return b.model([b.add(BatchMatMul(adjoint_y=True), own, own)])


def branches() -> Subgraphs:
    """Two layers that do not depend on each other."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
    both = [b.add(FullyConnected(), x, b.constant(weights(5, 4))) for _ in range(2)]
    return b.model([b.add(Concat(0), b.add(Softmax(1.0), both[0]), both[1])])


def _products() -> Subgraphs:
    """Matrix products, one for each batch item."""
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, shape), n) for n, shape in (("x", (2, 5, 8)), ("y", (2, 8, 7))))
    return b.model([b.add(BatchMatMul(), x, y)])


def _grid() -> Subgraphs:
    """Pixel centres counted in floats, concatenated with the pixels, as detectors place their boxes."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 3)), "x")
    at, one = b.constant(0, dtype=DType.INT32), b.constant(np.float32(1))
    rows = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT64), x), at)
    count = b.add(Cast(DType.FLOAT32), rows)
    places = b.add(Range(), b.constant(np.float32(0)), count, one)
    middles = b.add(Binary(BinaryKind.ADD), places, b.constant(np.float32(0.5)))
    column = b.add(Reshape((-1, 1)), middles)
    return b.model([b.add(Binary(BinaryKind.MUL), b.add(Concat(1), x, column), b.constant(weights(4)))])


def _widened() -> Subgraphs:
    """A transposed convolution to a size computed from the image's."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
    sizes = b.add(ShapeOf(DType.INT32), x)
    twice = b.add(Binary(BinaryKind.MUL), sizes, b.constant([1, 2, 2, 0], dtype=DType.INT32))
    shape = b.add(Binary(BinaryKind.ADD), twice, b.constant([0, 0, 0, 4], dtype=DType.INT32))
    return b.model([b.add(TransposeConv2D(Padding.VALID, 2, 2), shape, b.constant(weights(4, 2, 2, 3)), x)])


def _asked() -> Subgraphs:
    """A value computed from the sizes that cannot be known before the run for all lengths."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 3)), "x")
    count = b.add(Cast(DType.FLOAT32), b.add(ShapeOf(DType.INT32), x))
    roots = b.add(Binary(BinaryKind.DIV), count, b.constant(np.float32(7)))
    scale = b.add(Gather(0, 0), roots, b.constant(0, dtype=DType.INT32))
    return b.model([b.add(Binary(BinaryKind.MUL), x, scale)])


def _parted() -> Subgraphs:
    """Attention heads, split by computed sizes and merged again."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 2, 8)), "x")
    sizes = b.add(ShapeOf(DType.INT64), x)
    end = b.constant([2, 4], dtype=DType.INT64)
    begin = b.add(Slice(), sizes, b.constant([0], dtype=DType.INT32), b.constant([2], dtype=DType.INT32))
    cut = b.add(Reshape(), x, b.add(Concat(0), begin, end))
    turned = b.add(Transpose(), cut, b.constant([0, 2, 1, 3], dtype=DType.INT32))
    rows = b.add(Reshape((-1, 4)), turned)
    some = b.add(FullyConnected(), rows, b.constant(weights(4, 4)))
    back = b.add(Transpose(), b.add(Reshape((1, 2, -1, 4)), some), b.constant([0, 2, 1, 3], dtype=DType.INT32))
    flat = b.add(Concat(0), begin, b.constant([-1], dtype=DType.INT64))
    return b.model([b.add(Binary(BinaryKind.ADD), b.add(Reshape(), back, flat), x)])


def _scaled(rounding: UnaryKind | None, *steps: tuple[BinaryKind, float]) -> Callable[[], Subgraphs]:
    """A channels-first image resized to a size that is computed in floats and rounded, by the nearest pixel; and as
    many zeros as its new width.
    """

    def made() -> Subgraphs:
        b = Builder()
        x = b.input(TensorType(DType.FLOAT32, (1, 3, 8, 6)), "x")
        sizes = b.add(ShapeOf(DType.INT64), x)
        first, last = (b.constant([at], dtype=DType.INT32) for at in (2, 3))
        floats = b.add(Cast(DType.FLOAT32), b.add(Slice(), sizes, last, b.constant([1], dtype=DType.INT32)))
        for kind, number in steps:
            floats = b.add(Binary(kind), floats, b.constant(np.float32(number)))
        whole = b.add(Cast(DType.INT64), floats if rounding is None else b.add(Unary(rounding), floats))
        height = b.add(Slice(), sizes, first, b.constant([1], dtype=DType.INT32))
        op = Interpolate(Interpolation.NEAREST, (2, 3), Coordinates.ASYMMETRIC, Rounding.FLOOR)
        resized = b.add(op, x, b.add(Concat(0), height, whole))
        return b.model([resized, b.add(Fill(), whole, b.constant(np.float32(0)))])

    return made


def _first() -> Subgraphs:
    """The first of the rows, as a classifier reads its first token, and a layer on all of them."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
    first = b.add(Gather(0, 0), x, b.constant([0], dtype=DType.INT64))
    return b.model([first, b.add(FullyConnected(), x, b.constant(weights(3, 4)))])


def _narrow() -> Subgraphs:
    """A convolution to two channels, which sums several neighbouring pixels at a time."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 8)), "x")
    filters = b.constant(weights(2, 3, 5, 8)), b.constant(weights(2))
    return b.model([b.add(Conv2D(Padding.SAME, 1, 1, 1, 1), x, *filters)])


def _reduced() -> Subgraphs:
    """Sums and products of rows, including short ones."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (70, 5)), "x")
    return b.model([b.add(Reduce(kind), x, b.constant(np.int32([-1]))) for kind in (Reduction.SUM, Reduction.PROD)])


def _rounds() -> Subgraphs:
    """A loop of as many rounds as rows; each picks one row and takes longer the more there are."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 3)), "x")
    at, zero = b.constant(0, dtype=DType.INT32), b.constant(np.int32(0))
    count = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), at)
    types = *(TensorType(DType.INT32, ()),) * 2, *(TensorType(DType.FLOAT32, (None, 3)),) * 2
    results = b.add_many(While(1, 2, types), zero, count, x, x)
    condition, body = Builder("condition"), Builder("body")
    given = [condition.input(each) for each in types]
    i, n, rows, turned = (body.input(each) for each in types)
    first, rest = (body.constant(each, dtype=DType.INT32) for each in ([0, 0], [1, 0]))
    most = body.constant([1, 3], dtype=DType.INT32), body.constant([-1, 3], dtype=DType.INT32)
    next_ = body.add(Concat(0), body.add(Slice(), turned, rest, most[1]), body.add(Slice(), turned, first, most[0]))
    after = body.add(Binary(BinaryKind.ADD), i, body.constant(np.int32(1)))
    ends = [body.add(Reshape((1,)), end) for end in (i, after)]
    picked = body.add(StridedSlice(shrink_axis_mask=1), rows, *ends, body.constant([1], dtype=DType.INT32))
    sums = body.add(Binary(BinaryKind.ADD), body.add(Unary(UnaryKind.TANH), rows), next_)
    sums = body.add(Binary(BinaryKind.SUB), sums, picked)
    less = condition.add(Comparison(ComparisonKind.LESS), *given[:2])
    graphs = b.subgraph(results[2:]), condition.subgraph([less]), body.subgraph([after, n, sums, next_])
    return Subgraphs(graphs)


def _listed() -> Subgraphs:
    """A loop over the steps of a batch of sequences that lists each step's state, as exported recurrent cells do."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 2, 3)), "x")
    count = b.add(Gather(0, 0), b.add(ShapeOf(DType.INT32), x), b.constant(0, dtype=DType.INT32))
    state = _initial(b, x, 1, 0)
    number, rows = TensorType(DType.INT32, ()), TensorType(DType.FLOAT32, (None, 3))
    types = (number, number, TensorType(DType.FLOAT32, (None, None, 3)), rows, TensorType(DType.VARIANT, ()))
    results = b.add_many(While(1, 2, types), b.constant(np.int32(0)), count, x, state, b.add(SequenceOf()))
    condition, body = Builder("condition"), Builder("body")
    tested = [condition.input(each) for each in types]
    i, n, steps, before, items = (body.input(each) for each in types)
    fed = body.add(FullyConnected(), before, body.constant(weights(3, 3)))
    after = body.add(Unary(UnaryKind.TANH), body.add(Binary(BinaryKind.ADD), body.add(Gather(0, 0), steps, i), fed))
    following = body.add(Binary(BinaryKind.ADD), i, body.constant(np.int32(1)))
    longer = body.add(SequenceInsert(), items, after)
    less = condition.add(Comparison(ComparisonKind.LESS), *tested[:2])
    graph = b.subgraph([b.add(SequenceJoin(DType.FLOAT32, (None, 3), 0, True), results[4])])
    return Subgraphs((graph, condition.subgraph([less]), body.subgraph([following, n, steps, after, longer])))


def _bordered() -> Subgraphs:
    """A row of zeros appended, in a shape that is unpacked and packed again."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4, 3)), "x")
    rows, _, width = b.add_many(Unpack(3), b.add(ShapeOf(DType.INT32), x))
    shape = b.add(Pack(), rows, b.constant(np.int32(1)), width)
    return b.model([b.add(Concat(1), x, b.add(Fill(), shape, b.constant(np.float32(0))))])


def _merged() -> Subgraphs:
    """Axes merged by a computed product of sizes, as Keras writes attention heads."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 3, 2, 3)), "x")
    sizes, count = b.add(ShapeOf(DType.INT32), x), b.constant(np.int32(3))
    shape = b.add(UnsortedSegment(SegmentReduction.PROD), sizes, b.constant([0, 1, 2, 2], dtype=DType.INT32), count)
    return b.model([b.add(FullyConnected(keep_dims=True), b.add(Reshape(), x, shape), b.constant(weights(4, 6)))])


def _triangle() -> Subgraphs:
    """Rows weighted by a triangle of ones, as in attention masks, and by scattered sums."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 4)), "x")
    sizes = b.add(ShapeOf(DType.INT32), x)
    places, numbers = b.constant([[0, 1], [0, 1], [0, 3]], dtype=DType.INT32), b.constant(np.float32([0.1, 0.7, -0.3]))
    zeros = b.add(ZerosLike(), b.add(Fill(), sizes, b.constant(np.float32(1))))
    ones = b.add(Fill(), b.add(Gather(0, 0), sizes, b.constant([0, 0], dtype=DType.INT32)), b.constant(np.float32(1)))
    below = b.add(MatrixBandPart(), ones, b.constant(np.int32(-1)), b.constant(np.int32(0)))
    added = b.add(Binary(BinaryKind.ADD), b.add(ScatterNd(), places, numbers, sizes), zeros)
    return b.model([b.add(BatchMatMul(), below, x), b.add(Binary(BinaryKind.MUL), x, added)])


def found() -> Subgraphs:
    """The elements above 0, whose number only the run determines: all but the first, and the unique ones."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 2, 3)), "x")
    above = b.add(Comparison(ComparisonKind.GREATER), x, b.constant(np.float32(0)))
    elements = b.add(GatherNd(), x, b.add(Where(), above))
    ends = [b.constant([number], dtype=DType.INT32) for number in (1, 0, 1)]
    rest = b.add(StridedSlice(end_mask=1), elements, *ends)
    different = b.add_many(Unique(), b.add(Cast(DType.INT32), b.add(Reshape((-1,)), x)))
    backwards = b.add(Reverse(), elements, b.constant([0], dtype=DType.INT32))
    return b.model([rest, *different, b.add(Concat(0), backwards, elements)])


def opened(model: Subgraphs) -> Package:
    """The model with all input dimensions dynamic, so that arrays determine the shapes."""
    graph, *called = model.subgraphs
    operands = tuple(
        evolve(o, signature_shape=(None,) * len(o.type.shape)) if at in graph.inputs else o
        for at, o in enumerate(graph.operands)
    )
    return Package((Subgraphs((evolve(graph, operands=operands), *called)),), "made")


MODELS: list[tuple[str, Callable[[], Subgraphs], Callable[[int], list[tuple[int, ...]]]]] = [
    ("pooled", pooled, lambda n: [(1, 6, n, 3)]),
    ("broadcast", _broadcast, lambda n: [(n, 4), (1 if n % 3 == 0 else n, 4)]),
    ("attention", _attention, lambda n: [(1, n, 8)]),
    ("enlarged", _enlarged(2, 3, Coordinates.ASYMMETRIC), lambda n: [(1, 6, n, 3)]),
    ("enlarged centres", _enlarged(2, 2, Coordinates.HALF_PIXEL), lambda n: [(1, 6, n, 3)]),
    ("nearest by halves", interpolated(Interpolation.NEAREST, 1.5, (1, 2)), lambda n: [(1, 6, n + 1, 3)]),
    ("between pixels", interpolated(Interpolation.LINEAR, 1.7, (1, 2)), lambda n: [(1, 6, n + 1, 3)]),
    ("between four", interpolated(Interpolation.CUBIC, 0.6, (2, 3)), lambda n: [(1, 6, n + 2, 3)]),
    ("recurrent", _recurrent, lambda n: [(n, 4)]),
    ("steps", _steps, lambda n: [(max(n, 1), 1, 4)]),
    ("one step", unrolled, lambda n: [(1, max(n, 1), 4)]),
    ("narrow", _narrow, lambda n: [(1, 6, 3 * n + 5, 8)]),
    ("reduced", _reduced, lambda n: [(70, max(n, 1))]),
    ("first", _first, lambda n: [(max(n, 1), 4)]),
    ("heads", _heads, lambda n: [(n, 3, 5, 4)]),
    ("rows of heads", _heads, lambda n: [(2, 3, n, 4)]),
    *PICTURES,
    ANTIALIASED,
    *POSITIONS,
    *COUNTS,
    ("grid", _grid, lambda n: [(n, 3)]),
    ("widened", _widened, lambda n: [(1, max(n, 1), n + 1, 3)]),
    ("asked", _asked, lambda n: [(n, 3)]),
    ("parted", _parted, lambda n: [(1, max(n, 1), 8)]),
    ("halved", _scaled(UnaryKind.FLOOR, (BinaryKind.MUL, 0.5)), lambda n: [(1, 3, 8, n + 2)]),
    ("thirds", _scaled(UnaryKind.CEIL, (BinaryKind.DIV, 3)), lambda n: [(1, 3, 8, n + 2)]),
    ("tenths", _scaled(UnaryKind.TRUNC, (BinaryKind.MUL, 1.3)), lambda n: [(1, 3, 8, n + 2)]),
    (
        "two scales",
        _scaled(None, (BinaryKind.MUL, 0.6), (BinaryKind.MUL, 1.7), (BinaryKind.ADD, 0.5), (BinaryKind.MAXIMUM, 3)),
        lambda n: [(1, 3, 8, n + 2)],
    ),
    ("bordered", _bordered, lambda n: [(n, 4, 3)]),
    ("merged", _merged, lambda n: [(n, 3, 2, 3)]),
    ("triangle", _triangle, lambda n: [(max(n, 1), 4)]),
    ("bytes", bytes_, lambda n: [(1, max(n, 1), 8)]),
    ("averaged bytes", averaged(DType.INT8), lambda n: [(2, max(n, 1), 8)]),
    ("averaged words", averaged(DType.INT16), lambda n: [(2, max(n, 1), 8)]),
    ("resized bytes", resized(DType.INT8, half_pixel_centers=True), lambda n: [(1, max(n, 1), n + 2, 3)]),
    ("resized words", resized(DType.INT16), lambda n: [(1, max(n, 1), n + 2, 3)]),
    ("rounds", _rounds, lambda n: [(max(n, 1), 3)]),
    ("listed", _listed, lambda n: [(3, max(n, 1), 3)]),
    ("products", _products, lambda n: [(n, 5, 8), (1 if n % 3 == 0 else n, 8, 7)]),
]
