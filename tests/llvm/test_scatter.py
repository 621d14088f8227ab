"""Scatter, dynamic slices, cumulative sums and top-k match their definitions natively."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.ir import DType, ExecutionError, Op
from onert.ir.ops.data_movement.dense import SparseToDense
from onert.ir.ops.data_movement.element_indices import Combination, ScatterSlices
from onert.ir.ops.data_movement.fill import TopK
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, ScatterNd
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.reduction.segment import SegmentReduction, SegmentSum, UnsortedSegment
from onert.ir.ops.stablehlo.shapes_and_elements import HloDynamicSlice, HloDynamicUpdateSlice
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, whole_range
from .natively import check, natively, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TYPES = pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.uint64], ids=lambda d: d.__name__
)


def _draw(dtype: Any, *shape: int, seed: int = 0) -> Array:
    if np.dtype(dtype).kind == "f":
        return np.random.default_rng(seed).normal(size=shape).astype(dtype)
    if dtype is np.bool_:
        return np.random.default_rng(seed).integers(0, 2, shape).astype(np.bool_)
    return whole_range(dtype, shape, seed)


def _indices(limits: tuple[int, ...], count: int, dtype: Any = np.int32) -> Array:
    rng = np.random.default_rng(1)
    return np.stack([rng.integers(0, n, count) for n in limits], axis=-1).astype(dtype)


SHAPES = [((5,), 1), ((5, 37), 1), ((3, 4, 2), 2), ((3, 4, 2100), 1), ((3, 4, 5), 3), ((6, 7), 2)]


@ISAS
@TYPES
@pytest.mark.parametrize("wide", [np.int32, np.int64], ids=lambda d: d.__name__)
def test_scatter_nd_adds_updates_with_equal_indices(isa: Isa, dtype: Any, wide: Any) -> None:
    shape, depth = SHAPES[wide is np.int64]
    index = _indices(shape[:depth], 9, wide)
    updates = _draw(dtype, 9, *shape[depth:])
    check(*single(ScatterNd(), index, updates, np.array(shape, np.int32), constant=(2,)), isa, threads=2)


@ISAS
@pytest.mark.parametrize(("shape", "depth"), SHAPES[2:])
def test_scatter_nd_accepts_indices_of_any_depth(isa: Isa, shape: tuple[int, ...], depth: int) -> None:
    updates = _draw(np.float32, 9, *shape[depth:])
    check(*single(ScatterNd(), _indices(shape[:depth], 9), updates, np.array(shape), constant=(2,)), isa, threads=2)


@ISAS
@pytest.mark.parametrize("combination", Combination, ids=lambda c: c.value)
def test_scattered_slices_are_combined_with_the_operand(isa: Isa, combination: Combination) -> None:
    for dtype in (np.float32, np.int8, np.uint64):
        for shape, depth in SHAPES[:3]:
            x, updates = _draw(dtype, *shape), _draw(dtype, 9, *shape[depth:], seed=1)
            with np.errstate(over="ignore"):
                check(*single(ScatterSlices(combination), x, _indices(shape[:depth], 9), updates), isa, threads=2)


@ISAS
@pytest.mark.parametrize("combination", [Combination.MAX, Combination.MIN], ids=lambda c: c.name.lower())
def test_extremes_of_scattered_slices_are_nan_if_an_element_is(isa: Isa, combination: Combination) -> None:
    x, updates = _draw(np.float32, 5, 37), _draw(np.float32, 9, 37, seed=1)
    x[1, 3:20:4] = updates[2, ::5] = np.nan
    check(*single(ScatterSlices(combination), x, _indices((5,), 9), updates), isa)


@ISAS
def test_scatter_nd_combines_booleans(isa: Isa) -> None:
    index = _indices((5,), 9)
    updates = _draw(np.bool_, 9, 37)
    check(*single(ScatterNd(), index, updates, np.array((5, 37), np.int32), constant=(2,)), isa)


@ISAS
@pytest.mark.parametrize("bad", [-1, 4, 1 << 30, -(1 << 31)])
def test_scatter_with_an_index_out_of_range_raises(isa: Isa, bad: int) -> None:
    index = np.array([[0, 1], [2, bad], [1, 1]], np.int32)
    with pytest.raises(ExecutionError, match=f"index {bad} is outside of dimension 0 of 3 and dimension 1 of 4"):
        natively(*single(ScatterNd(), index, _draw(np.float32, 3, 7), np.array([3, 4, 7]), constant=(2,)), isa)
    sparse = (np.array([3, 4]), np.float32([1, 2, 3]), np.float32(0.5))
    with pytest.raises(ExecutionError, match=f"index {bad} is outside"):
        natively(*single(SparseToDense(), index, *sparse, constant=(1,)), isa)


@ISAS
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64], ids=lambda d: d.__name__)
def test_sparse_to_dense_keeps_the_last_of_equal_indices(isa: Isa, dtype: Any) -> None:
    default = np.array(7, dtype)
    for shape in ((5,), (3, 4), (2, 3, 4)):
        index, where = _indices(shape, 9), np.array(shape, np.int32)
        values = np.arange(9).astype(dtype)
        check(*single(SparseToDense(), index, where, values, default, constant=(1,)), isa)
        check(*single(SparseToDense(), index, where, values[3], default, constant=(1,)), isa)
    check(*single(SparseToDense(), _indices((5,), 9)[:, 0], np.array([5]), np.arange(9).astype(dtype), default,
                  constant=(1,)), isa)  # fmt: skip


@ISAS
@TYPES
@pytest.mark.parametrize("kind", SegmentReduction)
def test_segment_reductions_match_their_definition(isa: Isa, dtype: Any, kind: SegmentReduction) -> None:
    ids = np.array([4, 0, -1, 2, 2, 0, -7, 4], np.int32)
    for rest in ((), (3,), (5, 70)):
        data = _draw(dtype, 8, *rest)
        with np.errstate(over="ignore"):
            check(*single(UnsortedSegment(kind), data, ids, np.array(6, np.int32), constant=(2,)), isa)
    ascending = np.array([0, 0, 1, 1, 1, 2, 3, 3], np.int32)
    check(*single(SegmentSum(), _draw(dtype, 8, 5), ascending, constant=(1,)), isa)


@ISAS
def test_segment_max_and_min_skip_nan(isa: Isa) -> None:
    data = np.array([np.nan, 1, -np.inf, np.nan, np.inf, -0.0, 0.0, 2], np.float32).repeat(19).reshape(8, 19)
    ids = np.array([0, 0, 1, 2, 3, 4, 4, 0], np.int64)
    for kind in (SegmentReduction.MAX, SegmentReduction.MIN):
        check(*single(UnsortedSegment(kind), data, ids, np.array(6, np.int32), constant=(2,)), isa)


@ISAS
def test_a_segment_id_out_of_range_raises(isa: Isa) -> None:
    ids = np.array([0, 6, -1], np.int32)
    op, count = UnsortedSegment(SegmentReduction.SUM), np.array(6, np.int32)
    with pytest.raises(ExecutionError, match="segment 6 is named, there are 6"):
        natively(*single(op, _draw(np.float32, 3, 2), ids, count, constant=(2,)), isa)


PARTS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    ((3, 5, 4), (1, 5, 4), (2, 0, 0)),
    ((3, 5, 4), (2, 3, 4), (9, -4, 1)),
    ((3, 5, 40), (2, 3, 37), (1, 1, 2)),
    ((300,), (70,), (-(1 << 31),)),
    ((2, 3, 4, 5), (2, 3, 4, 5), (5, 5, 5, 5)),
    ((1, 8, 2, 16), (1, 1, 2, 16), (0, 5, 0, 0)),
]


@ISAS
@pytest.mark.parametrize(
    ("dtype", "wide"), [(np.float32, np.int32), (np.int8, np.int64), (np.complex128, np.int32)], ids=str
)
@pytest.mark.parametrize(("whole", "part", "start"), PARTS)
def test_dynamic_slices_clamp_their_start_indices(
    isa: Isa, dtype: Any, wide: Any, whole: tuple[int, ...], part: tuple[int, ...], start: tuple[int, ...]
) -> None:
    x = np.arange(np.prod(whole)).reshape(whole).astype(dtype)
    update = -np.ones(part).astype(dtype)
    begins = np.array(start, wide)
    check(*single(DynamicUpdateSlice(), x, update, begins), isa, threads=2)
    check(*single(HloDynamicUpdateSlice(), x, update, *begins), isa)
    check(*single(HloDynamicSlice(part), x, *begins), isa, threads=2)


@ISAS
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("op", [CumSum(), CumSum(exclusive=True), CumSum(reverse=True), CumSum(True, True)], ids=str)
def test_cumulative_sums_match_their_definition(isa: Isa, dtype: Any, op: Op) -> None:
    for shape, axis in (((5, 70), 0), ((5, 70), -1), ((3, 4, 37), 1), ((9,), 0), ((1, 1), 0)):
        x = _draw(dtype, *shape)
        check(*single(op, x, np.array(axis, np.int32), constant=(1,)), isa, tolerance=0.0, threads=2)


@ISAS
@TYPES
def test_top_k_is_sorted_and_stable(isa: Isa, dtype: Any) -> None:
    x = _draw(dtype, 3, 131)
    x[1] = np.sort(x[1])
    x[2] = x[2, :5].repeat(27)[:131]
    for k in (1, 2, 3, 7, 64, 131):
        check(*single(TopK(), x, np.array(k, np.int32), constant=(1,)), isa, tolerance=0.0, threads=2)
    check(*single(TopK(DType.INT64), x[0], np.array(5, np.int32), constant=(1,)), isa, tolerance=0.0)


@ISAS
def test_top_k_treats_nan_as_greatest_and_zeros_as_equal(isa: Isa) -> None:
    x = np.array([0.0, np.nan, -0.0, np.inf, -np.inf, np.nan, 0.0, 1], np.float32)
    for k in range(1, 9):
        check(*single(TopK(), np.stack([x, x[::-1]]), np.array(k, np.int32), constant=(1,)), isa)
