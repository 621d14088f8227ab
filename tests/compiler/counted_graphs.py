"""Random models whose tensor lengths are known only at run time, reproducible by seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onert.ir import Array, DType, Op, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.control_flow.control import Call, If, While
from onert.ir.ops.data_movement.element_indices import Combination, ScatterSlices
from onert.ir.ops.data_movement.fill import Fill, Range, TopK, Unique, Where
from onert.ir.ops.data_movement.gather import Gather, OneHot, ScatterNd
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.random_numbers import Distribution, Random
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.boxes import BoxesPerClass
from onert.ir.ops.vision_audio.interpolate import Interpolate, Interpolation
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor
from onert.ir.ops.vision_audio.sampling import RoiAlign

from .counted_draft import COLUMNS, Draft

ROWS = 7
_TYPE = TensorType(DType.FLOAT32, (None, COLUMNS))
_ONE = TensorType(DType.INT32, ())


Draw = Callable[[Draft], int]
"""Adds operations and returns a tensor f32[n, 4]."""


def _filtered(d: Draft) -> int:
    x = d.any()
    return d.b.add(Gather(0), x, d.places(x))


def _joined(d: Draft) -> int:
    parts = [d.any() for _ in range(d.whole(2, 4))]
    if d.rng.random() < 0.4:
        parts.insert(d.whole(0, 3), d.b.constant(d.rng.uniform(-1, 1, (d.whole(1, 3), COLUMNS)).astype(np.float32)))
    return d.b.add(Concat(0), *parts)


def _function(d: Draft) -> int:
    kind = (UnaryKind.TANH, UnaryKind.ABS, UnaryKind.SIN, UnaryKind.NEG)[d.whole(0, 4)]
    x = d.any()
    return d.b.add(Binary(BinaryKind.ADD), d.b.add(Unary(kind), x), x)


def _with_constant(d: Draft) -> int:
    x, others = d.any(), d.b.constant(d.rng.uniform(-1, 1, COLUMNS).astype(np.float32))
    kind = (BinaryKind.MUL, BinaryKind.SUB, BinaryKind.MAXIMUM)[d.whole(0, 3)]
    return d.b.add(Binary(kind), x, others)


def _chosen(d: Draft) -> int:
    x = d.any()
    above = d.b.add(Comparison(ComparisonKind.GREATER), x, d.real(0))
    return d.b.add(Select(), above, x, d.b.constant(d.rng.uniform(-1, 1, (1, COLUMNS)).astype(np.float32)))


def _layer(d: Draft) -> int:
    weight = d.rng.normal(size=(COLUMNS, COLUMNS), scale=0.5).astype(np.float32)
    return d.b.add(FullyConnected(), d.any(), d.b.constant(weight), d.b.constant(weight[0]))


def _shares(d: Draft) -> int:
    """Softmax over columns or over rows."""
    x, order = d.any(), d.row(1, 0)
    if d.rng.random() < 0.5:
        return d.b.add(Softmax(), x)
    return d.b.add(Transpose(), d.b.add(Softmax(), d.b.add(Transpose(), x, order)), order)


def _running(d: Draft) -> int:
    op = CumSum(exclusive=bool(d.whole(0, 2)), reverse=bool(d.whole(0, 2)))
    return d.b.add(Unary(UnaryKind.TANH), d.b.add(op, d.any(), d.one(d.whole(0, 2))))


def _turned(d: Draft) -> int:
    return d.b.add(Reverse(), d.any(), d.row(*((0,), (1,), (0, 1))[d.whole(0, 3)]))


def _cut(d: Draft) -> int:
    """A slice up to or from a bound that is constant or computed."""
    n = d.b.add(Reshape(), d.number(), d.row(1)) if d.rng.random() < 0.6 else d.row(d.whole(-4, 6))
    first, last = (d.row(0), n) if d.rng.random() < 0.5 else (n, d.row(0))
    op = StridedSlice(end_mask=0 if last is n else 1)
    return d.b.add(op, d.any(), first, last, d.row(1))


def _best(d: Draft) -> int:
    """The rows with the largest first elements: up to a few of them, or exactly one or two."""
    x = d.any()
    n = d.b.add(Gather(0), d.b.add(ShapeOf(), x), d.one(0))
    values = d.b.add(Gather(1), x, d.one(0))
    k = d.least(n, d.whole(1, 6)) if d.rng.random() < 0.8 else d.one(d.whole(1, 3))
    return d.b.add(Gather(0), x, d.b.add_many(TopK(), values, k)[1])


def _padded(d: Draft) -> int:
    """Rows padded to more rows than in any earlier pad, or by a computed number of rows."""
    x, zero = d.any(), d.one(0)
    n = d.b.add(Gather(0), d.b.add(ShapeOf(), x), d.one(0))
    behind = d.b.add(Binary(BinaryKind.SUB), d.one(20 + len(d.rows)), n) if d.rng.random() < 0.5 else d.number()
    margins = d.b.add(Reshape(), d.b.add(Pack(0), d.one(d.whole(0, 2)), behind, zero, zero), d.row(2, 2))
    return d.b.add(Pad(), x, margins, *([d.real(0.5)] if d.rng.random() < 0.5 else []))


def _reshaped(d: Draft) -> int:
    flat = d.b.add(Reshape(), d.any(), d.row(-1))
    return d.b.add(Reshape(), d.b.add(Unary(UnaryKind.SIN), flat), d.row(-1, COLUMNS))


def _numbered(d: Draft) -> int:
    numbers = d.b.add(Cast(DType.FLOAT32), d.b.add(Range(), d.one(0), d.number(), d.one(1)))
    column = d.b.add(ExpandDims(), d.b.add(Unary(UnaryKind.SIN), numbers), d.one(1))
    return d.b.add(Binary(BinaryKind.ADD), column, d.b.constant(d.rng.uniform(-1, 1, (1, COLUMNS)).astype(np.float32)))


def _filled(d: Draft) -> int:
    shape = d.b.add(Pack(0), d.number(), d.one(COLUMNS))
    kind = d.whole(0, 3)
    if kind == 0:
        return d.b.add(Fill(), shape, d.real(0.25))
    row = d.b.constant(d.rng.uniform(-1, 1, COLUMNS).astype(np.float32))
    if kind == 1:
        return d.b.add(BroadcastTo(), row, shape)
    tall = d.b.constant(d.rng.uniform(-1, 1, (2, COLUMNS)).astype(np.float32))
    return d.b.add(Tile(), tall, d.b.add(Pack(0), d.number(), d.one(1)))


def _parts(d: Draft) -> int:
    n = d.least(d.number(), ROWS)
    fixed = d.b.constant(d.rng.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32))
    sizes = d.b.add(Pack(0), n, d.b.add(Binary(BinaryKind.SUB), d.one(ROWS), n))
    return d.b.add_many(SplitV(2), fixed, sizes, d.one(0))[d.whole(0, 2)]


def _halves(d: Draft) -> int:
    left, right = d.b.add_many(Split(2), d.one(1), d.any())
    return d.b.add(Concat(1), right, left)


def _marked(d: Draft) -> int:
    return d.b.add(OneHot(), d.places(d.any()), d.one(COLUMNS), d.real(1), d.real(-0.5))


def _different(d: Draft) -> int:
    """Rows of a table, looked up by the signs of a column, the distinct signs, or their positions."""
    column = d.b.add(Gather(1), d.any(), d.one(d.whole(0, COLUMNS)))
    signs = d.b.add(Cast(DType.INT32), d.b.add(Comparison(ComparisonKind.GREATER), column, d.real(0)))
    table = d.b.constant(d.rng.uniform(-1, 1, (2, COLUMNS)).astype(np.float32))
    return d.b.add(Gather(0), table, d.b.add_many(Unique(), signs)[d.whole(0, 2)] if d.whole(0, 2) else signs)


def _put(d: Draft) -> int:
    """Rows added to zeros, or written into a table, at indices given by a sign."""
    x = d.any()
    column = d.b.add(Comparison(ComparisonKind.GREATER), d.b.add(Gather(1), x, d.one(1)), d.real(0))
    places = d.b.add(ExpandDims(), d.b.add(Cast(DType.INT32), column), d.one(1))
    if d.rng.random() < 0.5:
        return d.b.add(ScatterNd(), places, x, d.row(3, COLUMNS))
    fixed = d.b.constant(d.rng.uniform(-1, 1, (3, COLUMNS)).astype(np.float32))
    return d.b.add(ScatterSlices(), fixed, places, x)


def _reduced(d: Draft) -> int:
    kind = (Reduction.SUM, Reduction.MAX, Reduction.MIN, Reduction.MEAN)[d.whole(0, 4)]
    one = d.b.constant(d.rng.uniform(-1, 1, (1, COLUMNS)).astype(np.float32))
    there = d.b.add(Concat(0), d.any(), one)
    return d.b.add(Reduce(kind, keep_dims=True), there, d.row(0))


def _first_best(d: Draft) -> int:
    one = d.b.constant(d.rng.uniform(-1, 1, (1, COLUMNS)).astype(np.float32))
    there = d.b.add(Concat(0), d.any(), one)
    return d.b.add(Gather(0), there, d.b.add(ArgReduce(Extreme.MAX, DType.INT32), there, d.row(0)))


def _boxes(d: Draft) -> int:
    x = d.any()
    ends = d.b.add(Binary(BinaryKind.ADD), x, d.b.constant(np.float32([0, 0, 0.7, 0.7])))
    scores = d.b.add(ExpandDims(), d.b.add(ExpandDims(), d.b.add(Gather(1), x, d.one(0)), d.one(0)), d.one(0))
    limits = d.b.constant(np.int64(d.whole(1, 5))), d.real(0.3), d.real(-0.5)
    found = d.b.add(BoxesPerClass(), d.b.add(ExpandDims(), ends, d.one(0)), scores, *limits)
    box = d.b.add(Reshape(), d.b.add(Slice(), found, d.row(0, 2), d.row(-1, 1)), d.row(-1))
    return d.b.add(Gather(0), x, box)


def _aligned(d: Draft) -> int:
    """Regions of two images, one for each row."""
    x = d.any()
    first = d.b.add(Comparison(ComparisonKind.GREATER), d.b.add(Gather(1), x, d.one(0)), d.real(0))
    op = RoiAlign(2, 1, d.whole(0, 3), half_pixel=bool(d.whole(0, 2)))
    pictures = d.b.constant(d.rng.standard_normal((2, 2, 4, 5)).astype(np.float32))
    found = d.b.add(op, pictures, x, d.b.add(Cast(DType.INT32), first))
    return d.b.add(Reshape(), found, d.row(-1, COLUMNS))


def _attended(d: Draft) -> int:
    """Attention of every row of one tensor to all rows of another."""
    x, y = d.any(), d.any()
    shares = d.b.add(Softmax(), d.b.add(BatchMatMul(adjoint_y=True), x, y))
    return d.b.add(BatchMatMul(), shares, y)


def _paired(d: Draft) -> int:
    """Differences of all pairs of rows: the rows of large ones, the minima, or the first few."""
    x = d.any()
    column = d.b.add(Gather(1), x, d.one(d.whole(0, COLUMNS)))
    sides = [d.b.add(ExpandDims(), column, d.one(axis)) for axis in (0, 1)]
    pairs = d.b.add(Binary(BinaryKind.SUB), *sides)
    kind = d.whole(0, 3)
    if kind == 0:
        fits = d.b.add(Comparison(ComparisonKind.GREATER), pairs, d.real(0.8))
        places = d.b.add(Gather(1), d.b.add(Where(), fits), d.one(d.whole(0, 2)))
        return d.b.add(Gather(0), x, places)
    if kind == 1:
        least = d.b.add(Reduce(Reduction.MIN, keep_dims=True), d.b.add(Concat(1), pairs, sides[1]), d.row(1))
        return d.b.add(Binary(BinaryKind.MAXIMUM), x, least)
    flat = d.b.add(ExpandDims(), d.b.add(Reshape(), pairs, d.row(-1)), d.one(1))
    first = d.b.add(StridedSlice(), flat, d.row(0, 0), d.row(9, 1), d.row(1, 1))
    return d.b.add(Binary(BinaryKind.ADD), first, d.b.constant(d.rng.uniform(-1, 1, (1, COLUMNS)).astype(np.float32)))


def _cropped(d: Draft) -> int:
    """A part with computed numbers of rows and columns, padded to all columns and by a computed number of rows."""
    n, m = d.least(d.number(), ROWS), d.least(d.number(), COLUMNS)
    fixed = d.b.constant(d.rng.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32))
    if d.whole(0, 2):
        part = d.b.add(Slice(), fixed, d.row(0, 0), d.b.add(Pack(0), n, m))
    else:
        part = d.b.add(StridedSlice(begin_mask=1), fixed, d.row(0, 0), d.b.add(Pack(0), n, m), d.row(1, 1))
    rest = d.b.add(Binary(BinaryKind.SUB), d.one(COLUMNS), m)
    margins = d.b.add(Reshape(), d.b.add(Pack(0), d.one(0), d.number(), d.one(0), rest), d.row(2, 2))
    return d.b.add(Reshape(), d.b.add(Pad(), part, margins), d.row(-1, COLUMNS))


def _resized(d: Draft) -> int:
    """An image with one more row than a tensor has, resized to a computed size."""
    one = d.b.constant(d.rng.uniform(-1, 1, (1, COLUMNS)).astype(np.float32))
    there = d.b.add(Reshape(), d.b.add(Concat(0), d.any(), one), d.row(1, -1, COLUMNS, 1))
    size = d.b.add(Pack(0), d.b.add(Binary(BinaryKind.ADD), d.least(d.number(), 9), d.one(1)), d.one(COLUMNS))
    kind = (ResizeBilinear, ResizeNearestNeighbor)[d.whole(0, 2)]
    corners, half = ((False, False), (True, False), (False, True))[d.whole(0, 3)]
    op: Op = kind(corners, half)
    if d.whole(0, 2):
        spread, inside = (bool(d.whole(0, 2)) for _ in range(2))
        op = Interpolate(tuple(Interpolation)[d.whole(0, 3)], (1, 2), antialias=spread, exclude_outside=inside)
    return d.b.add(Reshape(), d.b.add(op, there, size), d.row(-1, COLUMNS))


def _random(d: Draft) -> int:
    """Random numbers of a computed shape; two operations may share a generator."""
    op = Random(tuple(Distribution)[d.whole(0, 2)], 3, 4, d.whole(0, 3))
    n, m = d.number(), d.least(d.number(), COLUMNS)
    if d.whole(0, 2):
        return d.b.add(op, d.b.add(Pack(0), n, d.one(COLUMNS)))
    drawn = d.b.add(op, d.b.add(Pack(0), d.one(ROWS), m))
    rest = d.b.add(Binary(BinaryKind.SUB), d.one(COLUMNS), m)
    margins = d.b.add(Reshape(), d.b.add(Pack(0), d.one(0), d.one(0), d.one(0), rest), d.row(2, 2))
    return d.b.add(Reshape(), d.b.add(Pad(), drawn, margins), d.row(-1, COLUMNS))


def _put_into(d: Draft) -> int:
    """Rows added to as many rows, or scattered into more zeros."""
    x = d.any()
    n = d.b.add(Gather(0), d.b.add(ShapeOf(), x), d.one(0))
    places = d.b.add(ExpandDims(), d.b.add(Range(), d.one(0), n, d.one(1)), d.one(1))
    row = d.b.add(Unary(UnaryKind.SIN), x)
    if d.whole(0, 2):
        return d.b.add(ScatterSlices(Combination.ADD), x, places, row)
    return d.b.add(
        ScatterNd(), places, row, d.b.add(Pack(0), d.b.add(Binary(BinaryKind.ADD), n, d.one(2)), d.one(COLUMNS))
    )


def _largest(d: Draft) -> int:
    """The elements of each row in descending order."""
    return d.b.add_many(TopK(), d.any(), d.one(COLUMNS))[0]


def _graph(d: Draft, types: list[TensorType], write: Callable[[Draft, list[int]], list[int]]) -> int:
    """Add another subgraph and return its index."""
    b = Builder()
    inner = Draft(b, d.rng, d.inner)
    inputs = [b.input(t) for t in types]
    inner.rows.extend(x for x, t in zip(inputs, types, strict=True) if t is _TYPE)
    d.inner.append(b.subgraph(write(inner, inputs)))
    return len(d.inner)


def _steps(d: Draft, count: int) -> int:
    for _ in range(count):
        d.rows.append(PLAIN[d.whole(0, len(PLAIN))](d))
    return d.rows[-1]


def _branched(d: Draft) -> int:
    x, other = d.any(), d.any()
    condition = d.b.add(Comparison(ComparisonKind.GREATER), d.number(), d.one(d.whole(0, 6)))
    sides = [_graph(d, [_TYPE, _TYPE], lambda inner, _: [_steps(inner, inner.whole(0, 3) or 1)]) for _ in range(2)]
    return d.b.add(If(sides[0], sides[1], (_TYPE,)), condition, x, other)


def _called(d: Draft) -> int:
    index = _graph(d, [_TYPE], lambda inner, _: [_steps(inner, 2)])
    return d.b.add(Call(index, (_TYPE,)), d.any())


def _looped(d: Draft) -> int:
    """A loop with a constant number of rounds, or one for each row of a tensor, that appends a row to the state or
    multiplies the state by a row."""
    grows, known = d.rng.random() < 0.5, d.rng.random() < 0.5
    source, state = d.any(), d.any()
    rounds = d.one(d.whole(0, 5)) if known else d.b.add(Gather(0), d.b.add(ShapeOf(), source), d.one(0))
    types = [_ONE, _ONE, _TYPE, _TYPE]

    def body(inner: Draft, inputs: list[int]) -> list[int]:
        i, limit, fixed, now = inputs
        following = inner.b.add(Binary(BinaryKind.ADD), i, inner.one(1))
        if not known:
            row = inner.b.add(ExpandDims(), inner.b.add(Gather(0), fixed, i), inner.one(0))
        else:
            row = inner.b.add(Reduce(Reduction.SUM, keep_dims=True), now, inner.row(0))
        row = inner.b.add(Unary(UnaryKind.SIN), row)
        changed = inner.b.add(Concat(0), now, row) if grows else inner.b.add(Binary(BinaryKind.MUL), now, row)
        return [following, limit, fixed, changed]

    condition = _graph(d, types, lambda c, g: [c.b.add(Comparison(ComparisonKind.LESS), g[0], g[1])])
    index = _graph(d, types, body)
    return d.b.add_many(While(condition, index, tuple(types)), d.one(0), rounds, source, state)[3]


def _looped_pairs(d: Draft) -> int:
    """Differences of pairs of rows that grow or shrink along both axes in each round; their sums."""
    x, grows = d.any(), d.whole(0, 2)
    column = d.b.add(Gather(1), x, d.one(0))
    pairs = d.b.add(Binary(BinaryKind.SUB), *(d.b.add(ExpandDims(), column, d.one(axis)) for axis in (0, 1)))
    types = [_ONE, TensorType(DType.FLOAT32, (None, None))]

    def body(inner: Draft, inputs: list[int]) -> list[int]:
        b, (i, now) = inner.b, inputs
        if grows:
            changed = b.add(Pad(), now, b.constant(np.int32([[0, 1], [1, 0]])))
        else:
            changed = b.add(StridedSlice(end_mask=3), now, inner.row(1, 0), inner.row(0, 0), inner.row(1, 1))
        return [b.add(Binary(BinaryKind.ADD), i, inner.one(1)), b.add(Unary(UnaryKind.COS), changed)]

    condition = _graph(d, types, lambda c, g: [c.b.add(Comparison(ComparisonKind.LESS), g[0], c.one(2))])
    index = _graph(d, types, body)
    state = d.b.add_many(While(condition, index, tuple(types)), d.one(0), pairs)[1]
    sums = d.b.add(Reduce(Reduction.SUM, keep_dims=True), state, d.row(1))
    return d.b.add(Binary(BinaryKind.ADD), sums, d.b.constant(d.rng.uniform(-1, 1, (1, COLUMNS)).astype(np.float32)))


PLAIN: tuple[Draw, ...] = (
    *(_filtered, _filtered, _joined, _function, _with_constant, _chosen, _layer, _shares, _running, _turned),
    *(_best, _padded, _reshaped, _numbered, _filled, _parts, _halves, _marked, _different, _put, _reduced),
    *(_cut, _cut, _first_best, _boxes, _aligned, _attended, _paired, _paired, _cropped),
    *(_resized, _put_into, _largest, _random),
)
DRAWS: tuple[Draw, ...] = (*PLAIN, _branched, _called, _looped, _looped, _looped_pairs)


def random_counted(seed: int, draws: int) -> Package:
    """A model of input f32[7, 4]. Its outputs are the absolute values of the last two tensors and the last's sums."""
    b = Builder()
    d = Draft(b, np.random.default_rng(seed), [])
    d.rows.append(b.input(TensorType(DType.FLOAT32, (ROWS, COLUMNS)), "x"))
    d.rows.append(_filtered(d))
    d.rows.remove(d.rows[0])
    for _ in range(draws):
        d.rows.append(DRAWS[d.whole(0, len(DRAWS))](d))
    last = d.rows[-2:]
    outputs = [b.add(Unary(UnaryKind.ABS), x) for x in last]
    outputs.append(b.add(Reduce(Reduction.SUM), last[-1], d.row(0)))
    return Package((Subgraphs((b.subgraph(outputs), *d.inner)),), f"counted {seed}")


def inputs(seed: int, at: int) -> Array:
    """Elements of an input: of both signs, all negative (nothing is selected), or all positive (everything is)."""
    x = np.random.default_rng((seed, at)).uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32)
    return x if at % 3 == 0 else np.abs(x) * (-1 if at % 3 == 1 else 1)
