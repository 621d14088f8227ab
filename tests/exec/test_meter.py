"""Limits while a model runs: the work of one run, and the memory of an execution."""

from __future__ import annotations

import pytest

from onert.exec.meter import Meter
from onert.ir import RuleError


def test_work_is_limited_for_each_run() -> None:
    meter = Meter(None, 10)
    for _ in range(2):
        meter.begin()
        meter.spend(4)
        meter.spend(6)
        with pytest.raises(RuleError, match=r"its limit of 10 additions \(max_work\)"):
            meter.spend(1)
    unbound = Meter(None, None)
    unbound.spend(1 << 80)
    unbound.hold(1 << 80)
    assert unbound.spent == 1 << 80


def test_memory_is_limited_together_with_temporary_memory() -> None:
    meter = Meter(100, None)
    meter.hold(60)
    meter.hold(30, beside=10)
    with pytest.raises(RuleError, match=r"need 101 bytes, more than 100 \(max_memory\)"):
        meter.hold(1, beside=10)
    meter.hold(-50)
    meter.hold(60)
    with pytest.raises(RuleError, match="need 101 bytes"):
        meter.hold(1)
