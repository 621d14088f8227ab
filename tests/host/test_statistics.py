"""Latency statistics of a host."""

from __future__ import annotations

import numpy as np
import pytest

from onert.host.statistics import Latencies


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_percentiles_are_within_about_one_percent_of_the_exact_ones(chunk: int) -> None:
    rng = np.random.default_rng(0)
    times = rng.lognormal(-7, 1.5, 20_000)
    found = Latencies()
    for start in range(0, len(times), chunk):
        found.add_all(times[start : start + chunk].tolist())
    for percent in (1, 10, 50, 90, 99, 99.9):
        exact = np.percentile(times, percent, method="inverted_cdf")
        assert exact * 0.999 <= found.percentile(percent) <= exact * 1.012
    assert found.percentile(100) == found.longest == times.max()
    assert found.mean == pytest.approx(times.mean())
    assert found.count == len(times)


@pytest.mark.parametrize("time", [0.0, 1e-12, 1e-7, 1.0, 1e9])
def test_times_of_any_length_are_counted(time: float) -> None:
    found, several = Latencies(), Latencies()
    found.add(time)
    several.add_all([time] * 20)
    assert found.percentile(50) == found.longest == time == several.percentile(50)
    assert (found.count, several.count) == (1, 20)


def test_percentile_and_mean_of_no_times_are_zero() -> None:
    assert Latencies().percentile(99) == Latencies().mean == 0.0
