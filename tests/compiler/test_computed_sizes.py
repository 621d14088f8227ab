"""Operations whose result sizes are computed at run time are native if the sizes are bounded, with equal results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.element_indices import GatherElements, ScatterSlices
from onert.ir.ops.data_movement.fill import Fill, FirstEntries, Range, TopK, Where
from onert.ir.ops.data_movement.gather import EmbeddingLookup, Gather, OneHot, ScatterNd
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastArgs, BroadcastTo, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.rnn import RNN
from onert.ir.ops.reduction.norm import RmsNorm
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.reduction.segment import SegmentReduction, SegmentSum, UnsortedSegment
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.boxes import BoxesPerClass
from onert.ir.ops.vision_audio.detection import NonMaxSuppression

from .counted_rows import Write, column_of, evaluated, number, package_of, row_of, rows_given


def _floats(b: Builder, *shape: int) -> int:
    return b.constant(np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32))


def _vector(b: Builder, *numbers: int) -> int:
    """Scalars as a vector."""
    return b.add(Pack(0), *numbers)


def _less(b: Builder, most: int, n: int) -> int:
    return b.add(Binary(BinaryKind.SUB), number(b, most), n)


def _flat(b: Builder, rows: int) -> int:
    return b.add(Reshape(), rows, row_of(b, -1))


def _padded(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Padding to six rows, as in detectors, and by a computed number of rows."""
    full = b.add(
        Pad(),
        rows,
        b.add(Reshape(), _vector(b, number(b, 0), _less(b, 6, n), number(b, 0), number(b, 0)), row_of(b, 2, 2)),
    )
    more = b.add(Reshape(), _vector(b, number(b, 1), n, number(b, 0), number(b, 2)), row_of(b, 2, 2))
    return [
        b.add(Reshape(), full, row_of(b, 3, 8)),
        b.add(Pad(), rows, more, b.constant(np.float32(7))),
        b.add(Pad(), x, more),
    ]


def _sliced(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Slices of rows and columns, slices from the end, and the last row."""
    cut = StridedSlice(begin_mask=1)
    ends = _vector(b, _less(b, 5, n), number(b, 3))
    last = StridedSlice(shrink_axis_mask=1, begin_mask=2, end_mask=2)
    return [
        b.add(cut, x, row_of(b, 0, 1), ends, row_of(b, 1, 1)),
        b.add(StridedSlice(end_mask=1), rows, row_of(b, -2, 1), row_of(b, 0, 3), row_of(b, 1, 2)),
        b.add(
            Slice(), x, row_of(b, 1, 1), _vector(b, b.add(Binary(BinaryKind.MINIMUM), n, number(b, 5)), number(b, 2))
        ),
        b.add(last, b.add(Concat(0), x, rows), row_of(b, -1, 0), row_of(b, 0, 0), row_of(b, 1, 1)),
    ]


def _taken(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """The two largest and the best of each column, over the selected rows and two fixed ones."""
    columns = b.add(
        Transpose(), b.add(Concat(0), rows, b.add(Slice(), x, row_of(b, 0, 0), row_of(b, 2, -1))), row_of(b, 1, 0)
    )
    best = [b.add(ArgReduce(kind), columns, row_of(b, 1)) for kind in Extreme]
    return [*b.add_many(TopK(), columns, number(b, 2)), *best]


def _shapes(b: Builder, x: int, n: int, rows: int) -> list[int]:
    flat = _flat(b, rows)
    again = b.add(Reshape(), flat, row_of(b, -1, 2))
    twice = b.add(Binary(BinaryKind.MUL), n, number(b, 2))
    return [
        flat,
        again,
        b.add(Reshape(), rows, _vector(b, twice, number(b, 2))),
        b.add(Reshape(), again, row_of(b, 1, -1, 4)),
    ]


def _filled(b: Builder, x: int, n: int, rows: int) -> list[int]:
    two = b.constant(np.float32(2))
    begin = b.add(Range(), n, number(b, 9), number(b, 1))
    return [
        b.add(Fill(), _vector(b, number(b, 3), n), two),
        b.add(Unary(UnaryKind.EXP), b.add(BroadcastTo(), two, _vector(b, n, number(b, 2)))),
        b.add(Range(), number(b, 0), n, number(b, 1)),
        b.add(Range(may_be_empty=True), number(b, 3), n, number(b, 1)),
        begin,
        b.add(BroadcastTo(), b.add(ExpandDims(), rows, number(b, 1)), _vector(b, n, number(b, 3), number(b, 4))),
        b.add(OneHot(), row_of(b, 0, 3, -1, 7), n, two, b.constant(np.float32(0))),
    ]


def _tiled(b: Builder, x: int, n: int, rows: int) -> list[int]:
    return [b.add(Tile(), x, _vector(b, n, number(b, 1))), b.add(Tile(), rows, row_of(b, 1, 2))]


def _split(b: Builder, x: int, n: int, rows: int) -> list[int]:
    sizes = _vector(b, n, _less(b, 6, n))
    left = _vector(b, n, number(b, -1))
    return [
        *b.add_many(SplitV(2), x, sizes, number(b, 0)),
        *b.add_many(SplitV(2), x, left, number(b, 0)),
        *b.add_many(Split(2), number(b, 1), rows),
        *b.add_many(Unpack(4, 1), rows),
        b.add(Pack(1), rows, rows),
    ]


def _ordered(b: Builder, x: int, n: int, rows: int) -> list[int]:
    axes = row_of(b, 0)
    return [
        b.add(Reverse(), rows, axes),
        b.add(Reverse(), rows, row_of(b, 1, 0)),
        b.add(Reverse(), rows, row_of(b, 1)),
        b.add(CumSum(), rows, axes),
        b.add(CumSum(exclusive=True, reverse=True), rows, axes),
        b.add(Softmax(), b.add(Transpose(), rows, row_of(b, 1, 0))),
        b.add(Softmax(), rows),
    ]


def _layers(b: Builder, x: int, n: int, rows: int) -> list[int]:
    columns = b.add(Transpose(), rows, row_of(b, 1, 0))
    return [
        b.add(FullyConnected(), rows, _floats(b, 3, 4), _floats(b, 3)),
        b.add(BatchMatMul(), _floats(b, 2, 4), columns),
        b.add(BatchMatMul(), b.add(ExpandDims(), rows, number(b, 1)), _floats(b, 4, 5)),
        b.add(RmsNorm(), rows, _floats(b, 4)),
        b.add(Einsum("ni,io->on"), rows, _floats(b, 4, 3)),
    ]


def _attended(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Sums over the selected rows: attention of two queries, and products of the rows with themselves."""
    shares = b.add(Softmax(), b.add(BatchMatMul(adjoint_y=True), _floats(b, 2, 4), rows))
    powers = b.add(Unary(UnaryKind.EXP), rows)  # not 0 beyond the count
    return [b.add(BatchMatMul(), shares, powers), b.add(Einsum("ni,nj->ij"), rows, powers)]


def _recurrent(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Each selected row is a sequence of two steps."""
    steps = b.add(Transpose(), b.add(Reshape(), rows, row_of(b, -1, 2, 2)), row_of(b, 1, 0, 2))
    h = b.add(Fill(), _vector(b, n, number(b, 3)), b.constant(np.float32(0)))
    gates = [_floats(b, 3, 2) for _ in range(4)] + [_floats(b, 3, 3) for _ in range(4)]
    lstm = (*gates, None, None, None, *(_floats(b, 3) for _ in range(4)), None, None)
    gru = (_floats(b, 9, 2), _floats(b, 9), _floats(b, 9, 3), None)
    return [
        *b.add_many(LSTM(time_major=True), steps, *lstm, h, h),
        *b.add_many(RNN(Activation.TANH, time_major=True), steps, gates[0], gates[4], _floats(b, 3), h),
        b.add(GRU(return_sequences=True), steps, *gru, h),
    ]


def _put(b: Builder, x: int, n: int, rows: int) -> list[int]:
    places = b.add(
        Cast(DType.INT32),
        b.add(Unary(UnaryKind.FLOOR), b.add(Binary(BinaryKind.MUL), column_of(b, rows), b.constant(np.float32(2.9)))),
    )
    rows_of = b.add(ExpandDims(), places, number(b, 1))
    return [
        b.add(UnsortedSegment(SegmentReduction.SUM), rows, places, number(b, 3)),
        b.add(ScatterNd(), rows_of, rows, row_of(b, 5, 4)),
        b.add(ScatterSlices(), _floats(b, 6, 4), rows_of, rows),
        b.add(GatherElements(), x, b.add(BroadcastTo(), rows_of, _vector(b, n, number(b, 2)))),
        b.add(EmbeddingLookup(), places, x),
        b.add(OneHot(), places, number(b, 3), b.constant(np.float32(2)), b.constant(np.float32(0))),
    ]


def _multiples(b: Builder, n: int, divisor: int) -> int:
    """The first n multiples of the quotient of n and `divisor`."""
    return b.add(
        Binary(BinaryKind.MUL),
        b.add(Range(may_be_empty=True), number(b, 0), n, number(b, 1)),
        b.add(Binary(BinaryKind.FLOOR_DIV), n, number(b, divisor)),
    )


def _segments(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Sums of selected rows, of which each begins a segment, or all are in one, and of all rows."""
    pairs = b.add(Binary(BinaryKind.ADD), row_of(b, 0, 0, 1, 1, 1, 2), b.add(Binary(BinaryKind.MUL), n, number(b, 0)))
    return [b.add(SegmentSum(), rows, _multiples(b, n, 4)), b.add(SegmentSum(), x, pairs)]


def _found_again(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """The selected rows whose second element is positive, and suppressed boxes made of the selected rows."""
    places = b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), column_of(b, rows, 1), b.constant(np.float32(0))))
    again = b.add(Gather(0), rows, b.add(Squeeze((1,)), places))
    ends = b.add(Binary(BinaryKind.ADD), b.add(Unary(UnaryKind.ABS), rows), b.constant(np.float32([0, 0, 1, 1])))
    scores = b.add(Unary(UnaryKind.ABS), column_of(b, rows, 1))
    limits = b.constant(np.float32(0.5)), b.constant(np.float32(0.2))
    kept = b.add_many(NonMaxSuppression(), ends, scores, number(b, 3), *limits)
    classes = b.add(ExpandDims(), b.add(ExpandDims(), scores, number(b, 0)), number(b, 0))
    of_classes = b.add(
        BoxesPerClass(), b.add(ExpandDims(), ends, number(b, 0)), classes, b.constant(np.int64(2)), *limits
    )
    return [again, b.add(Reduce(Reduction.SUM), again, row_of(b, 0)), *kept, of_classes]


MODELS: dict[str, Write] = {
    "padded": _padded,
    "sliced": _sliced,
    "taken": _taken,
    "in other shapes": _shapes,
    "filled": _filled,
    "tiled": _tiled,
    "split": _split,
    "in another order": _ordered,
    "layers": _layers,
    "attended": _attended,
    "recurrent": _recurrent,
    "put": _put,
    "summed by segment": _segments,
    "found again": _found_again,
}


@pytest.mark.parametrize("name", MODELS)
def test_operations_sized_by_a_count_are_native(name: str, tmp_path: Path) -> None:
    package = package_of(MODELS[name])
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries, Copy}
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    onert.bundle(package, tmp_path, cpu="native")
    loaded = onert.load_bundle(tmp_path)
    for count in (3, 0, 6, 1, 5):
        given = rows_given(count)
        try:
            theirs = list(expected.run([given]).values())
        except onert.ExecutionError:
            with pytest.raises(onert.ExecutionError):
                execution.run([given])
            with pytest.raises(onert.ExecutionError):
                loaded.run([given])
            continue
        for one, other in zip(execution.run([given]).values(), theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, strict=True)
        for one, other in zip(loaded.run([given]).values(), theirs, strict=False):
            part = one[tuple(slice(size) for size in other.shape)]
            np.testing.assert_allclose(part, other, rtol=1e-5, atol=1e-6)


def _parts_that_may_not_add_up(b: Builder, x: int, n: int, rows: int) -> list[int]:
    return [*b.add_many(SplitV(2), x, _vector(b, number(b, 3), n), number(b, 0))]


def _margin_below_0(b: Builder, x: int, n: int, rows: int) -> list[int]:
    margins = b.add(Reshape(), _vector(b, number(b, 0), _less(b, 3, n), number(b, 0), number(b, 0)), row_of(b, 2, 2))
    return [b.add(Pad(), x, margins)]


REFUSED: dict[str, tuple[Write, tuple[int, ...]]] = {
    "the best of none": (lambda b, x, n, rows: [b.add(ArgReduce(Extreme.MIN), rows, row_of(b, 0))], (0,)),
    "more of the largest than there are": (
        lambda b, x, n, rows: [b.add_many(TopK(), column_of(b, rows), number(b, 3))[0]],
        (0, 1, 2),
    ),
    "a margin below 0": (_margin_below_0, (4, 5, 6)),
    "fours as threes": (
        lambda b, x, n, rows: [b.add(Reshape(), _flat(b, rows), row_of(b, -1, 3))],
        (1, 2, 4, 5),
    ),
    "three rows in a known shape": (
        lambda b, x, n, rows: [
            b.add(Reshape((2, 6)), rows),
            b.add(Reshape(), b.add(Transpose(), rows, row_of(b, 1, 0)), row_of(b, 2, 2, 3)),
        ],
        (0, 1, 2, 4, 5, 6),
    ),
    "the fifth row": (
        lambda b, x, n, rows: [
            b.add(StridedSlice(shrink_axis_mask=1), rows, row_of(b, 4), row_of(b, 5), row_of(b, 1)),
        ],
        (0, 1, 2, 3, 4),
    ),
    "three rows from the second": (
        lambda b, x, n, rows: [b.add(Slice(), rows, row_of(b, 1, 0), row_of(b, 3, 4))],
        (0, 1, 2, 3),
    ),
    "a segment without rows": (lambda b, x, n, rows: [b.add(SegmentSum(), rows, _multiples(b, n, 3))], (6,)),
    "a first segment that is not 0": (
        lambda b, x, n, rows: [b.add(SegmentSum(), x, b.add(Binary(BinaryKind.MUL), row_of(b, *[1] * 6), n))],
        (1, 2, 3, 4, 5, 6),
    ),
    "rows of which the first is not in segment 0": (
        lambda b, x, n, rows: [
            b.add(SegmentSum(), rows, b.add(Binary(BinaryKind.SUB), _multiples(b, n, 7), _less(b, 1, n)))
        ],
        (2, 3, 4, 5, 6),
    ),
    "parts that do not add up": (_parts_that_may_not_add_up, (0, 1, 2, 4, 5, 6)),
}
"""Models, and the numbers of rows for which they fail."""


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_counts_are_rejected_natively(name: str) -> None:
    write, refused = REFUSED[name]
    package = package_of(write)
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries, Copy}
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    for count in range(7):
        if count in refused:
            for each in (execution, expected):
                with pytest.raises(onert.ExecutionError):
                    each.run([rows_given(count)])
        else:
            found, theirs = (list(each.run([rows_given(count)]).values()) for each in (execution, expected))
            for one, other in zip(found, theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, strict=True)


@pytest.mark.parametrize("op", [Pad(), Tile()], ids=lambda op: op.label)
def test_sizes_beyond_all_memory_are_rejected_beside_a_counted_axis(op: Pad | Tile) -> None:
    def write(b: Builder, x: int, n: int, rows: int) -> list[int]:
        own, zero, huge = b.add(Cast(DType.INT64), n), b.constant(np.int64(0)), b.constant(np.int64(1 << 40))
        if isinstance(op, Tile):
            return [b.add(op, x, _vector(b, own, huge))]
        return [b.add(op, x, b.add(Reshape(), _vector(b, zero, own, zero, huge), row_of(b, 2, 2)))]

    with pytest.raises(onert.OnertError):
        onert.Execution(onert.compile(package_of(write), num_threads=1)).run([rows_given(2)])


def test_a_scalar_is_a_shape_of_one_dimension() -> None:
    b = Builder()
    n = b.input(TensorType(DType.INT32, ()), "n")
    sizes = b.add(BroadcastArgs(), n, row_of(b, 1))
    package = Package((b.model([b.add(BroadcastTo(), b.constant(np.float32([7])), sizes)]),), "scalar shape")
    (found,) = onert.Execution(onert.compile(package)).run([np.int32(3)]).values()
    np.testing.assert_array_equal(found, np.float32([7, 7, 7]), strict=True)
