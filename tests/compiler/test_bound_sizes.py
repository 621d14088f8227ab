"""Tensors of a length known only at run time are computed natively in memory for the largest, with equal results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.rest import Rest
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Fill, FirstEntries, Range, TopK, Unique, Where
from onert.ir.ops.data_movement.gather import Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Slice, StridedSlice, Tile
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.boxes import BoxesPerClass

from .counted_rows import evaluated

Array = np.ndarray[Any, Any]
Follow = Callable[[Builder, int, int], int]
"""Writes the part under test, given `x` f32[7, 5] and the indices of its positive elements, i64[n, 2]."""


_KINDS = (Reduction.SUM, Reduction.MEAN, Reduction.PROD, Reduction.MAX, Reduction.MIN)


def _int(b: Builder, *values: int) -> int:
    return b.constant(np.int32(values))


def _rows(b: Builder, x: int, places: int) -> int:
    """For each positive element of x, its row."""
    return b.add(Gather(0), x, b.add(Reshape(), b.add(Slice(), places, _int(b, 0, 0), _int(b, -1, 1)), _int(b, -1)))


def _back(b: Builder, x: int, places: int) -> int:
    """Elements at indices counted from the end, so that indices beyond the count are not 0."""
    from_behind = b.add(Binary(BinaryKind.SUB), b.constant(np.int64([6, 4])), places)
    return b.add(GatherNd(), x, from_behind)


def _behind(b: Builder, x: int, places: int) -> int:
    """Selected rows, then two fixed rows, then other selected rows."""
    others = b.add(Where(), b.add(Comparison(ComparisonKind.LESS), x, b.constant(np.float32(-0.5))))
    return b.add(Concat(0), _rows(b, x, places), b.add(Slice(), x, _int(b, 0, 0), _int(b, 2, -1)), _rows(b, x, others))


def _reduced(kind: Reduction, keep_dims: bool = False) -> Follow:
    """A reduction of selected rows along both axes, or along the computed axis only if dimensions are kept."""
    axes = (0,) if keep_dims else (1, 0)
    return lambda b, x, p: b.add(Reduce(kind, keep_dims), _rows(b, x, p), _int(b, *axes))


def _picked(b: Builder, x: int, places: int) -> int:
    """Selected rows gathered by computed indices: the columns, at most 4, of the positive elements in row 0."""
    small = b.add(
        Where(), b.add(Comparison(ComparisonKind.GREATER), b.add(Gather(0), x, b.constant(np.int32(0))), _zero(b))
    )
    return b.add(Gather(0), _rows(b, x, places), b.add(Reshape(), small, _int(b, -1)))


def _zero(b: Builder) -> int:
    return b.constant(np.float32(0))


def _number(b: Builder, places: int) -> int:
    """The number of indices, as a scalar."""
    return b.add(Gather(0), b.add(ShapeOf(), places), b.constant(np.int32(0)))


def _numbered(b: Builder, x: int, places: int) -> int:
    """The indices plus their positions; the count is the last entry of a shape."""
    shape = b.add(ShapeOf(DType.INT64), b.add(Transpose(), places, _int(b, 1, 0)))
    length = b.add(StridedSlice(shrink_axis_mask=1), shape, _int(b, -1), _int(b, 2), _int(b, 1))
    found = b.add(Range(), b.constant(np.int64(0)), length, b.constant(np.int64(1)))
    return b.add(Binary(BinaryKind.ADD), b.add(ExpandDims(), found, _int(b, 1)), places)


def _top(b: Builder, x: int, places: int) -> int:
    """The largest elements, at most 9."""
    k = b.add(Binary(BinaryKind.MINIMUM), _number(b, places), b.constant(np.int32(9)))
    return b.add_many(TopK(), b.add(GatherNd(), x, places), k)[0]


def _top_columns(b: Builder, x: int, places: int) -> int:
    """For each row of x, the columns of its k largest elements; k is the number of positive elements in row 0."""
    first = b.add(Comparison(ComparisonKind.GREATER), b.add(Gather(0), x, b.constant(np.int32(0))), _zero(b))
    k = b.add(Reduce(Reduction.SUM), b.add(Cast(DType.INT32), first), _int(b, 0))
    return b.add_many(TopK(DType.INT64), x, k)[1]


def _named(b: Builder, x: int, places: int) -> int:
    """Rows selected by the values of positive elements; beyond the count, the index may be out of range."""
    elements = b.add(Binary(BinaryKind.MUL), b.add(GatherNd(), x, places), b.constant(np.float32(6)))
    return b.add(Gather(0), x, b.add(Cast(DType.INT32), elements))


FOLLOWING: dict[str, Follow] = {
    "the places": lambda b, x, p: p,
    "the elements": lambda b, x, p: b.add(GatherNd(), x, p),
    "rows": _rows,
    "elements from behind": _back,
    "rows that elements name": _named,
    "axes swapped": lambda b, x, p: b.add(Transpose(), p, _int(b, 1, 0)),
    "their functions": lambda b, x, p: b.add(Unary(UnaryKind.EXP), b.add(GatherNd(), x, p)),
    "beside one another": lambda b, x, p: b.add(Concat(1), _rows(b, x, p), _rows(b, x, p)),
    "another type": lambda b, x, p: b.add(Cast(DType.FLOAT32), p),
    "a column": lambda b, x, p: b.add(
        StridedSlice(begin_mask=1, end_mask=1, shrink_axis_mask=2), p, _int(b, 0, 1), _int(b, 0, 2), _int(b, 1, 1)
    ),
    "one more axis": lambda b, x, p: b.add(ExpandDims(), p, _int(b, 0)),
    "one axis less": lambda b, x, p: b.add(Squeeze((1,)), b.add(Gather(1), p, b.constant(np.int64([1])))),
    "their shape": lambda b, x, p: b.add(ShapeOf(), _rows(b, x, p)),
    "their shape in front": lambda b, x, p: b.add(ShapeOf(DType.INT64), b.add(Transpose(), p, _int(b, 1, 0))),
    "sums of rows": lambda b, x, p: b.add(Reduce(Reduction.SUM), _rows(b, x, p), _int(b, 1)),
    "the best of rows": lambda b, x, p: b.add(ArgReduce(Extreme.MAX), _rows(b, x, p), _int(b, 1)),
    "shares of rows": lambda b, x, p: b.add(Softmax(), _rows(b, x, p)),
    "one behind the other": lambda b, x, p: b.add(Concat(0), p, p),
    "columns one behind the other": lambda b, x, p: b.add(Concat(1), *[b.add(Transpose(), p, _int(b, 1, 0))] * 3),
    "rows, others and yet others": _behind,
    "their sum": lambda b, x, p: b.add(Reduce(Reduction.SUM), b.add(GatherNd(), x, p), _int(b, 0)),
    **{f"their {kind.value} of elements": _reduced(kind) for kind in _KINDS},
    **{f"their {kind.value} by column": _reduced(kind, keep_dims=True) for kind in _KINDS},
    "rows of rows": _picked,
    "the first of them": lambda b, x, p: b.add(
        Gather(0), b.add(Concat(0), p, b.constant(np.int64([[8, 8]]))), b.constant(np.int64(0))
    ),
    "their numbers": lambda b, x, p: b.add(Range(), *(b.constant(np.int32(0)), _number(b, p), b.constant(np.int32(1)))),
    "their numbers as wide integers": _numbered,
    "as many twos": lambda b, x, p: b.add(Fill(), b.add(ShapeOf(), _rows(b, x, p)), b.constant(np.float32(2))),
    "a row for each": lambda b, x, p: b.add(
        BroadcastTo(), b.add(Gather(0), x, b.constant(np.int32(1))), b.add(ShapeOf(DType.INT64), _rows(b, x, p))
    ),
    "the largest elements": _top,
    "the largest columns": _top_columns,
    "numbers of their columns": lambda b, x, p: b.add(
        Range(),
        *(b.constant(np.int32(0)), b.add(Gather(0), b.add(ShapeOf(), p), b.constant(np.int32(1)))),
        b.constant(np.int32(1)),
    ),
    "divided by them": lambda b, x, p: b.add(
        Binary(BinaryKind.DIV), b.constant(np.int64(12)), b.add(Binary(BinaryKind.ADD), p, b.constant(np.int64(1)))
    ),
    "divided by what they select": lambda b, x, p: b.add(
        Binary(BinaryKind.DIV),
        b.constant(np.int64(12)),
        b.add(
            Cast(DType.INT64),
            b.add(
                Unary(UnaryKind.RELU),
                b.add(Binary(BinaryKind.MUL), b.add(GatherNd(), x, p), b.constant(np.float32(30))),
            ),
        ),
    ),
    "the first": lambda b, x, p: b.add(
        StridedSlice(begin_mask=3, end_mask=2), p, _int(b, 0, 0), _int(b, 3, 0), _int(b, 1, 1)
    ),
    "choices": lambda b, x, p: b.add(
        Select(), b.add(Comparison(ComparisonKind.LESS), p, b.constant(np.int64(2))), p, b.constant(np.int64([[9]]))
    ),
}
STAYING: dict[str, Follow] = {
    "a dozen times": lambda b, x, p: b.add(Tile(), p, _int(b, 12, 1)),
    "as many as one of them says": lambda b, x, p: b.add(
        Fill(),
        b.add(Reshape(), b.add(Reduce(Reduction.MAX), p, _int(b, 0, 1)), _int(b, 1)),
        b.constant(np.float32(1)),
    ),
}
"""Operations that need the count itself."""


def _model(follow: Follow) -> Package:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (7, 5)), "x")
    places = b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), x, b.constant(np.float32(0))))
    return Package((b.model([follow(b, x, places)]),), "found")


def _given(share: float) -> Array:
    x = np.random.default_rng(5).uniform(0.1, 1, (7, 5)).astype(np.float32)
    x.reshape(-1)[round(share * x.size) :] *= -1
    return x


@pytest.mark.parametrize("name", FOLLOWING)
def test_operations_that_treat_entries_uniformly_are_native(name: str) -> None:
    package = _model(FOLLOWING[name])
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries}
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    for share in (0.5, 0, 1):
        (mine,), (theirs,) = (list(each.run([_given(share)]).values()) for each in (execution, expected))
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, strict=True)


@pytest.mark.parametrize(
    "name", ["rows, others and yet others", "rows of rows", "the largest elements", "their mean by column"]
)
@pytest.mark.parametrize("executor", ["Dataflow", "Parallel"])
def test_every_executor_runs_operations_that_combine_entries(name: str, executor: str) -> None:
    package = _model(FOLLOWING[name])
    execution = onert.Execution(onert.compile(package, executor=executor, num_threads=2))
    expected = onert.Execution(onert.compile(package, backends=("reference",)))
    for share in (0.5, 0, 1):
        (mine,), (theirs,) = (list(each.run([_given(share)]).values()) for each in (execution, expected))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, strict=True)


@pytest.mark.parametrize("name", STAYING)
def test_operations_that_need_the_count_wait_for_it(name: str) -> None:
    package = _model(STAYING[name])
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) - {FirstEntries}
    given = _given(0.8)
    (mine,), (theirs,) = (
        list(onert.Execution(each).run([given]).values())
        for each in (program, onert.compile(package, backends=("reference",)))
    )
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, strict=True)


_BOUNDS = [(0, 3), (2, 5), (0, 0), (4, 2), (-3, -1), (-99, 99), (6, 1 << 40), (-(1 << 63), (1 << 63) - 1)]


@pytest.mark.parametrize(("axis", "other"), [(0, 1), (1, 1), (1, 2), (1, -1)])
@pytest.mark.parametrize("form", ["begin", "end", "both", "end of all"])
def test_slices_with_bounds_computed_at_run_time_are_native(form: str, axis: int, other: int, tmp_path: Path) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (7, 5)), "x")
    wide = form != "end"
    bounds = [b.input(TensorType(DType.INT64 if wide else DType.INT32, (1,)), name) for name in ("low", "high")]
    if form == "end":
        bounds[0] = b.constant(np.int32([0]))
    zero = b.constant(np.int64([0]) if wide else np.int32([0]))
    spread = [b.add(Concat(0), *([zero] * axis), i) for i in bounds]
    others = (1 << axis) - 1
    masks = (others | (form == "end of all") << axis, others | (form == "begin") << axis)
    step = b.constant(np.array([*([other] * axis), 1], np.int64 if wide else np.int32))
    found = b.add(Unary(UnaryKind.EXP), b.add(StridedSlice(*masks), x, *spread, step))
    package = Package((b.model([found]),), "sliced")
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) == {FirstEntries}
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    onert.bundle(package, tmp_path, cpu="native")
    loaded = onert.load_bundle(tmp_path)
    for pair in _BOUNDS if wide else _BOUNDS[:6]:
        inputs = [_given(0.5), *(np.array([i], np.int64 if wide else np.int32) for i in pair)]
        (mine,), (theirs,) = (list(each.run(inputs).values()) for each in (execution, expected))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, strict=True)
        whole, length = loaded.run(inputs).values()
        np.testing.assert_allclose(np.take(whole, np.arange(int(length)), axis), theirs, rtol=1e-5)


_GIVEN = {
    "floats": np.float32([3, -1, np.nan, 0, 3, -0.0, np.nan, np.inf, -1]),
    "doubles": np.float64([0.5]),
    "integers": np.int32([7, -2, 7, 7, 0, -2, 1 << 30]),
    "wide integers": np.int64([5, 5, 5]),
    "bytes": np.uint8([255, 0, 3, 0, 255, 1]),
}
_SLICES = [UniqueSlices(None, True), UniqueSlices(None, False), UniqueSlices(0, True)]


@pytest.mark.parametrize("name", _GIVEN)
def test_distinct_elements_are_found_natively(name: str) -> None:
    given = _GIVEN[name]
    kinds = [Unique(), Unique(DType.INT64), *(_SLICES if given.dtype.kind in "iu" else ())]
    b = Builder()
    x = b.input(TensorType(DType.from_numpy(given.dtype), given.shape), "x")
    package = Package((b.model([found for kind in kinds for found in b.add_many(kind, x)]),), "different")
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries, Copy}  # of outputs that are the same tensor
    execution, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    for array in (given, given[::-1].copy(), np.full_like(given, given[0])):
        for mine, theirs in zip(execution.run([array]).values(), expected.run([array]).values(), strict=True):
            np.testing.assert_array_equal(mine, theirs, strict=True)


def test_looking_up_rows_of_distinct_indices_is_native_in_a_bundle(tmp_path: Path) -> None:
    """As in recommenders: each distinct index is looked up once, then the rows are expanded."""
    b = Builder()
    indices = b.input(TensorType(DType.INT64, (3, 4)), "indices")
    table = b.constant(np.arange(40, dtype=np.float32).reshape(20, 2))
    different, _, inverse, _ = b.add_many(UniqueSlices(), indices)
    rows = b.add(Gather(0), b.add(Gather(0), table, different), inverse)
    package = Package((b.model([rows]),), "looked up")
    assert not evaluated(onert.compile(package, num_threads=1))
    onert.bundle(package, tmp_path, cpu="native")
    given = np.int64([[3, 19, 3, 0], [7, 7, 7, 7], [0, 1, 2, 3]])
    (found,) = onert.load_bundle(tmp_path).run([given]).values()
    np.testing.assert_array_equal(found, np.arange(40, dtype=np.float32).reshape(20, 2)[given.reshape(-1)])


def _beyond(b: Builder, x: int, places: int) -> int:
    """Row 20 of fewer selected rows."""
    return b.add(Gather(0), _rows(b, x, places), b.constant(np.int64([20])))


def _too_many(b: Builder, x: int, places: int) -> int:
    """One more element than there are."""
    k = b.add(Binary(BinaryKind.ADD), _number(b, places), b.constant(np.int32(1)))
    return b.add_many(TopK(), b.add(GatherNd(), x, places), k)[0]


@pytest.mark.parametrize(("follow", "number"), [(_beyond, 20), (_too_many, 19)])
def test_reading_more_entries_than_there_are_fails(follow: Follow, number: int, tmp_path: Path) -> None:
    package = _model(follow)
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) <= {FirstEntries}
    with pytest.raises(onert.ExecutionError, match=f"{number} is more than there are, or negative"):
        onert.Execution(program).run([_given(0.5)])
    onert.bundle(package, tmp_path, cpu="native")
    with pytest.raises(onert.ExecutionError, match="error code"):
        onert.load_bundle(tmp_path).run([_given(0.5)])


def _detector() -> Package:
    """A detector as exporters write it: boxes suppressed for each class, then gathered with their scores."""
    b = Builder()
    boxes = b.input(TensorType(DType.FLOAT32, (1, 20, 4)), "boxes")
    scores = b.input(TensorType(DType.FLOAT32, (1, 3, 20)), "scores")
    limits = b.constant(np.int64(4)), b.constant(np.float32(0.3)), b.constant(np.float32(0.25))
    found = b.add(BoxesPerClass(), boxes, scores, *limits)
    box = b.add(Squeeze((1,)), b.add(Gather(1), found, b.constant(np.int64([2]))))
    chosen = b.add(Gather(1), boxes, box)
    at = b.add(GatherNd(), scores, found)
    return Package((b.model([found, chosen, at]),), "detector")


def _boxes() -> list[Array]:
    rng = np.random.default_rng(1)
    corners = rng.uniform(0, 2, (1, 20, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0.2, 1, (1, 20, 2))], -1)
    return [boxes.astype(np.float32), rng.uniform(0, 1, (1, 3, 20)).round(1).astype(np.float32)]


def test_boxes_are_suppressed_per_class_natively() -> None:
    package = _detector()
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) == {FirstEntries}
    mine = onert.Execution(program).run(_boxes()).values()
    theirs = onert.Execution(onert.compile(package, backends=("reference",))).run(_boxes()).values()
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_a_bundle_returns_the_number_of_valid_entries_of_each_output(tmp_path: Path) -> None:
    package = _detector()
    onert.bundle(package, tmp_path, cpu="native")
    loaded = onert.load_bundle(tmp_path)
    assert [(o.name, o.shape) for o in loaded.outputs()][3:] == [(f"output_{i}_length", ()) for i in range(3)]
    theirs = list(onert.Execution(onert.compile(package, backends=("reference",))).run(_boxes()).values())
    *whole, _, _, _ = found = list(loaded.run(_boxes()).values())
    for mine, length, expected, axis in zip(whole, found[3:], theirs, (0, 1, 0), strict=True):
        assert int(length) == expected.shape[axis]
        np.testing.assert_array_equal(np.take(mine, np.arange(int(length)), axis), expected)


def test_few_large_entries_do_not_wait_for_their_count() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1 << 10, 1 << 11)), "x")
    first = b.add(Gather(1), x, b.constant(np.int32(0)))
    places = b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), first, b.constant(np.float32(0))))
    rows = b.add(Gather(0), x, b.add(Reshape(), places, b.constant(np.int32([-1]))))
    program = onert.compile(Package((b.model([rows]),), "few"), num_threads=1)
    assert evaluated(program) == {FirstEntries}


def test_large_results_wait_for_their_count() -> None:
    """Indices for a million elements, and rows for all of them, would be allocated to hold two."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1 << 12, 256)), "x")
    places = b.add(Where(), b.add(Comparison(ComparisonKind.GREATER), x, b.constant(np.float32(0))))
    row = b.add(Reshape(), b.add(Gather(1), places, b.constant(np.int64([0]))), b.constant(np.int32([-1])))
    program = onert.compile(Package((b.model([b.add(Gather(0), x, row)]),), "many"), num_threads=1)
    given = np.full((1 << 12, 256), -1, np.float32)
    given[[3, 900], [2, 5]] = 1
    (found,) = onert.Execution(program).run([given]).values()
    assert evaluated(program) == {Where, Rest}
    np.testing.assert_array_equal(found, given[[3, 900]])
