"""Several axes with lengths known only at run time are native, in process and in bundles, with equal results."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, Quantization, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Fill, FirstEntries, Range, Where
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import BroadcastArgs, BroadcastTo, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast, Quantize
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor

from .counted_rows import Write, check_native, evaluated, number, package_of, row_of, rows_given


def _least(b: Builder, n: int, most: int) -> int:
    return b.add(Binary(BinaryKind.MINIMUM), n, number(b, most))


def _pairs(b: Builder, rows: int) -> int:
    """The differences of all pairs of first elements, f32[n, n]."""
    column = b.add(Gather(1), rows, number(b, 0))
    sides = (b.add(ExpandDims(), column, number(b, axis)) for axis in (0, 1))
    return b.add(Binary(BinaryKind.SUB), *sides)


def _attention(b: Builder, x: int, n: int, rows: int) -> list[int]:
    shares = b.add(Softmax(), b.add(BatchMatMul(False, True), rows, rows))
    return [shares, b.add(BatchMatMul(), shares, rows)]


def _compared(b: Builder, x: int, n: int, rows: int) -> list[int]:
    pairs = _pairs(b, rows)
    above = b.add(Comparison(ComparisonKind.GREATER), pairs, b.constant(np.float32(0.1)))
    places = b.add(Range(), number(b, 0), n, number(b, 1))
    return [above, b.add(Where(), above), b.add(ShapeOf(), pairs), b.add(Gather(0), pairs, places)]


def _reduced(b: Builder, x: int, n: int, rows: int) -> list[int]:
    pairs = _pairs(b, rows)
    shifted = b.add(Binary(BinaryKind.ADD), pairs, b.constant(np.float32(3)))
    twice = b.add(Concat(0), pairs, b.add(Transpose(), pairs, row_of(b, 1, 0)))
    return [
        b.add(Reduce(Reduction.SUM), shifted, row_of(b, 0, 1)),
        b.add(Reduce(Reduction.MEAN), shifted, row_of(b, 0, 1)),
        b.add(Reduce(Reduction.SUM, keep_dims=True), shifted, row_of(b, 1)),
        b.add(Reduce(Reduction.MEAN), shifted, row_of(b, 0)),
        b.add(Reduce(Reduction.SUM), twice, row_of(b, 0)),
        b.add(Reduce(Reduction.MAX), b.add(Concat(1), shifted, b.add(Gather(1), rows, row_of(b, 1))), row_of(b, 1)),
    ]


def _sliced(b: Builder, x: int, n: int, rows: int) -> list[int]:
    m = _least(b, n, 3)
    steps = row_of(b, 1, 1)
    column = b.add(Pack(0), number(b, 0), m)
    return [
        b.add(StridedSlice(), x, b.add(Pack(0), number(b, 1), m), b.add(Pack(0), n, number(b, 4)), steps),
        b.add(Slice(), x, b.add(Pack(0), m, number(b, 0)), b.add(Pack(0), number(b, 2), m)),
        b.add(Slice(), x, b.add(Pack(0), m, m), row_of(b, -1, -1)),
        b.add(StridedSlice(), rows, row_of(b, 0, 1), b.add(Pack(0), number(b, 9), n), steps),
        b.add(StridedSlice(shrink_axis_mask=3), x, b.add(Pack(0), _least(b, n, 5), m), row_of(b, 0, 0), steps),
        b.add(StridedSlice(shrink_axis_mask=2, begin_mask=1), x, column, b.add(Pack(0), n, m), steps),
    ]


def _created(b: Builder, x: int, n: int, rows: int) -> list[int]:
    m, none = _least(b, n, 3), number(b, 0)
    filled = b.add(Fill(), b.add(Pack(0), n, m), b.constant(np.float32(2)))
    wide = b.add(Reshape(), b.add(Pack(0), none, n, none, m), row_of(b, 2, 2))
    over = b.add(
        Reshape(),
        b.add(Pack(0), none, n, number(b, 1), b.add(Binary(BinaryKind.SUB), number(b, 3), m)),
        row_of(b, 2, 2),
    )
    grid = [
        b.add(ExpandDims(), b.add(Cast(DType.FLOAT32), b.add(Range(), none, end, number(b, 1))), number(b, axis))
        for axis, end in ((1, n), (0, m))
    ]
    return [
        filled,
        b.add(Tile(), x, b.add(Pack(0), n, m)),
        b.add(Tile(), rows, b.add(Pack(0), number(b, 1), m)),
        b.add(BroadcastTo(), b.add(Gather(1), rows, none), b.add(Pack(0), m, n)),
        b.add(Pad(), x, wide),
        b.add(Pad(), filled, over, b.constant(np.float32(5))),
        b.add(Binary(BinaryKind.ADD), *grid),
    ]


def _shaped(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Expansion as in PyTorch: -1 keeps a dimension."""
    requested = b.add(Pack(0), number(b, -1), n, number(b, 4))
    kept = b.add(Comparison(ComparisonKind.EQUAL), requested, number(b, -1))
    target = b.add(Select(), kept, number(b, 1), requested)
    column = b.add(ExpandDims(), b.add(Gather(1), rows, number(b, 0)), number(b, 1))
    both = b.add(BroadcastArgs(), b.add(ShapeOf(), column), b.add(Pack(0), number(b, 3), number(b, 1), n))
    return [
        b.add(Reshape(), _pairs(b, rows), row_of(b, -1)),
        b.add(Reshape(), b.add(Transpose(), rows, row_of(b, 1, 0)), row_of(b, -1, 2)),
        b.add(BroadcastTo(), rows, b.add(BroadcastArgs(), b.add(ShapeOf(), rows), target)),
        b.add(BroadcastTo(), column, both),
    ]


def _resized(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Resized to computed sizes, from fixed sizes and from one more row than was selected."""
    more = b.add(Concat(0), rows, b.constant(np.full((1, 4), 0.5, np.float32)))
    twice = b.add(Binary(BinaryKind.MUL), n, number(b, 2))
    size = b.add(
        Pack(0), b.add(Binary(BinaryKind.ADD), n, number(b, 1)), b.add(Binary(BinaryKind.ADD), twice, number(b, 1))
    )
    found = []
    for source in (x, more):
        picture = b.add(
            Reshape(), b.add(Binary(BinaryKind.MUL), source, b.constant(np.float32(30))), row_of(b, 1, -1, 4, 1)
        )
        for corners, half in ((False, False), (True, False), (False, True)):
            found += [b.add(kind(corners, half), picture, size) for kind in (ResizeBilinear, ResizeNearestNeighbor)]
        for dtype in (DType.INT8, DType.UINT8, DType.INT16):
            stored = b.add(
                Quantize(dtype), picture, quantization=(Quantization((0.5,), (0 if dtype is DType.INT16 else 3,)),)
            )
            for op in (ResizeBilinear(), ResizeBilinear(half_pixel_centers=True), ResizeNearestNeighbor()):
                found.append(b.add(op, stored, size, quantization=(b.type(stored).quantization,)))
    return found


def _interpolated(b: Builder, x: int, n: int, rows: int) -> list[int]:
    size = b.add(
        Pack(0), b.add(Binary(BinaryKind.ADD), n, number(b, 1)), b.add(Binary(BinaryKind.MUL), n, number(b, 2))
    )
    rules = (Coordinates.HALF_PIXEL, Coordinates.PYTORCH_HALF_PIXEL, Coordinates.ALIGN_CORNERS, Coordinates.ASYMMETRIC)
    found = [b.add(Interpolate(Interpolation.LINEAR, (0, 1), rule), x, size) for rule in rules]
    found.append(b.add(Interpolate(Interpolation.LINEAR, (0, 1), Coordinates.HALF_PIXEL_SYMMETRIC), x, size))
    return found + [
        b.add(Interpolate(Interpolation.NEAREST, (0, 1), coordinates, rounding), x, size)
        for coordinates in rules
        for rounding in Rounding
    ]


def _spread(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Interpolation of four neighbours, and antialiased; of fixed rows, and of one more row than was selected."""
    size = b.add(
        Pack(0), b.add(Binary(BinaryKind.ADD), n, number(b, 1)), b.add(Binary(BinaryKind.MUL), n, number(b, 2))
    )
    more = b.add(Concat(0), rows, b.constant(np.full((1, 4), 0.5, np.float32)))
    kinds = (Interpolation.LINEAR, Interpolation.CUBIC)
    return [
        b.add(Interpolate(kind, (0, 1), rule, exclude_outside=inside, antialias=spread), source, size)
        for source in (x, more)
        for rule in (Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS)
        for kind, inside, spread in product(kinds, (False, True), (False, True))
        if kind is Interpolation.CUBIC or spread
    ]


WRITTEN: dict[str, Write] = {
    "attention": _attention,
    "pairs": _compared,
    "reductions of pairs": _reduced,
    "slices": _sliced,
    "created tensors": _created,
    "shapes": _shaped,
    "resized images": _resized,
    "interpolated tensors": _interpolated,
    "interpolation of more than two neighbours": _spread,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_several_axes_with_computed_lengths_are_native(name: str) -> None:
    check_native(WRITTEN[name], range(2, 5) if name == "slices" else range(7))


@pytest.mark.parametrize("name", ["pairs", "created tensors"])
def test_bundles_return_the_number_of_valid_entries_along_each_axis(name: str, tmp_path: Path) -> None:
    package = package_of(WRITTEN[name])
    onert.bundle(package, tmp_path, cpu="native")
    bundle, expected = onert.load_bundle(tmp_path), onert.Execution(onert.compile(package, backends=("reference",)))
    for count in (0, 3, 6):
        found = bundle.run([rows_given(count)])
        theirs = expected.run([rows_given(count)])
        for output, other in theirs.items():
            lengths = [found.get(f"{output}_length{axis}", found.get(f"{output}_length")) for axis in range(other.ndim)]
            assert all(n is None or n in other.shape for n in lengths)
            whole = found[output][tuple(slice(size) for size in other.shape)]
            np.testing.assert_allclose(whole, other, rtol=1e-5, strict=True)
        assert found[next(f"{o}_length0" for o in theirs if theirs[o].ndim == 2)] == count


def test_negative_margins_along_several_axes_are_rejected() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (6, 4)), "x")
    margins = b.input(TensorType(DType.INT32, (2,)), "margins")
    few = b.add(Binary(BinaryKind.MINIMUM), margins, row_of(b, 3, 3))
    parts = (b.add(Gather(0), few, number(b, at)) for at in (0, 1))
    first, second = parts
    wide = b.add(Reshape(), b.add(Pack(0), number(b, 0), first, number(b, 0), second), row_of(b, 2, 2))
    program = onert.compile(Package((b.model([b.add(Pad(), x, wide)]),), "margins"))
    assert evaluated(program) <= {FirstEntries, Copy}
    execution, given = onert.Execution(program), rows_given(3)
    for sizes in ((0, 3), (2, 1), (9, 0)):
        expected = np.pad(given, [(0, min(size, 3)) for size in sizes])
        np.testing.assert_array_equal(*execution.run([given, np.int32(sizes)]).values(), expected, strict=True)
    for sizes in ((-1, 2), (2, -1), (-(1 << 31), 0)):
        with pytest.raises(onert.ExecutionError):
            execution.run([given, np.int32(sizes)])


def test_shapes_that_do_not_broadcast_are_rejected_natively() -> None:
    b = Builder()
    shapes = [b.input(TensorType(DType.INT64, (size,)), f"shape{size}") for size in (3, 2)]
    program = onert.compile(Package((b.model([b.add(BroadcastArgs(), *shapes)]),), "shapes"))
    assert not evaluated(program)
    execution = onert.Execution(program)
    for one, other, expected in (
        ((2, 1, 4), (3, 1), (2, 3, 4)),
        ((0, 1, 5), (1, 5), (0, 1, 5)),
        ((1,) * 3, (0, 2), (1, 0, 2)),
    ):
        found = execution.run([np.int64(one), np.int64(other)])
        np.testing.assert_array_equal(*found.values(), np.int64(expected), strict=True)
    for one, other in (((2, 2, 4), (3, 4)), ((1, 0, 1), (2, 1)), ((1, 1, 7), (1, -1))):
        with pytest.raises(onert.ExecutionError):
            execution.run([np.int64(one), np.int64(other)])


def test_counts_that_may_be_equal_are_not_treated_as_equal() -> None:
    """A shape that depends on whether a count equals 3."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (6, 4)), "x")
    above = b.add(Comparison(ComparisonKind.GREATER), b.add(Gather(1), x, number(b, 0)), b.constant(np.float32(0)))
    n = b.add(Reduce(Reduction.SUM), b.add(Cast(DType.INT32), above), row_of(b, 0))
    three = b.add(Comparison(ComparisonKind.EQUAL), n, number(b, 3))
    size = b.add(Select(), three, number(b, 2), number(b, 5))
    filled = b.add(Fill(), b.add(Pack(0), size, n), b.constant(np.float32(1)))
    package = Package((b.model([filled]),), "equal")
    program = onert.compile(package)
    assert evaluated(program) <= {FirstEntries, Copy}
    for count in (0, 3, 6):
        (found,) = onert.Execution(program).run([rows_given(count)]).values()
        assert found.shape == (2 if count == 3 else 5, count)
