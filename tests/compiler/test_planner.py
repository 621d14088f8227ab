"""Claims about memory planners, liveness, and what may share memory."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onert.compiler.liveness import Lifetimes
from onert.compiler.planner import PLANNERS, Claims
from onert.compiler.planner.claims import lowest_gap

Tensor = tuple[int, int, int]
"""First moment, last moment, bytes."""

TENSORS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12), st.sampled_from([0, 1, 16, 60, 64, 100, 1000])).map(
        lambda t: (t[0], t[0] + t[1], t[2])
    ),
    max_size=40,
)


def planned(tensors: list[Tensor], planner: str, alignment: int = 16) -> tuple[list[int], int]:
    first, last, sizes = (np.array([t[k] for t in tensors], np.int64) for k in range(3))
    alive = Lifetimes(first, last)
    return PLANNERS[planner](Claims(sizes, alignment, alive.overlaps)).tolist(), alive.peak(sizes)


@settings(max_examples=200, deadline=None)
@given(TENSORS, st.sampled_from(sorted(PLANNERS)), st.sampled_from([1, 16, 64]))
def test_tensors_alive_at_a_time_never_overlap(tensors: list[Tensor], planner: str, alignment: int) -> None:
    offsets, bound = planned(tensors, planner, alignment)
    ends = [o + t[2] for o, t in zip(offsets, tensors, strict=True)]
    assert all(o >= 0 and o % alignment == 0 for o in offsets)
    for i, (a_first, a_last, a_size) in enumerate(tensors):
        for j, (b_first, b_last, b_size) in enumerate(tensors[:i]):
            together = a_first <= b_last and b_first <= a_last
            apart = ends[i] <= offsets[j] or ends[j] <= offsets[i]
            assert not (together and a_size and b_size) or apart
    assert max(ends, default=0) >= bound


@settings(max_examples=100, deadline=None)
@given(TENSORS)
def test_the_lower_bound_is_the_largest_sum_alive_at_one_moment(tensors: list[Tensor]) -> None:
    _, bound = planned(tensors, "Bump")
    assert bound == max((sum(s for f, e, s in tensors if f <= t <= e) for t in range(50)), default=0)


def test_bump_puts_one_behind_the_other() -> None:
    assert planned([(0, 0, 10), (1, 1, 10), (2, 2, 10)], "Bump")[0] == [0, 16, 32]


def test_first_fit_takes_the_first_gap_in_the_order_of_the_run() -> None:
    assert planned([(0, 1, 16), (0, 9, 16), (2, 9, 32), (3, 9, 16)], "FirstFit")[0] == [0, 16, 32, 0]


def test_wic_places_the_largest_first_and_meets_the_bound_where_first_fit_does_not() -> None:
    tensors = [(0, 1, 16), (1, 9, 16), (2, 9, 32)]
    assert planned(tensors, "FirstFit") == ([0, 16, 32], 48)
    assert planned(tensors, "WIC") == ([0, 32, 0], 48)


@pytest.mark.parametrize(
    ("ranges", "size", "expected"),
    [
        ([], 8, 0),
        ([(0, 16), (32, 48)], 16, 16),
        ([(0, 16), (32, 48)], 17, 48),
        ([(16, 32)], 16, 0),
        ([(0, 64), (16, 32)], 8, 64),
        ([(32, 48), (0, 16)], 8, 16),
    ],
)
def test_the_lowest_gap_lies_before_between_or_behind(ranges: list[tuple[int, int]], size: int, expected: int) -> None:
    starts, ends = (np.array([r[k] for r in ranges], np.int64) for k in range(2))
    assert lowest_gap(starts, ends, size) == expected


@pytest.mark.parametrize("planner", sorted(PLANNERS))
def test_thousands_of_tensors_are_planned_in_seconds(planner: str) -> None:
    rng = np.random.default_rng(0)
    tensors = [(i, i + int(rng.integers(1, 60)), int(rng.integers(1, 1 << 20))) for i in range(4000)]
    start = time.perf_counter()
    planned(tensors, planner)
    assert time.perf_counter() - start < 5
