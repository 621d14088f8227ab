"""Claims about the plans of the shared models: the table of `tests/bench/arena.py`, held to."""

from __future__ import annotations

import pytest
from bench import arena
from shared_material import needs_shared

from onert.compiler.variables import EXECUTORS


@needs_shared
@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_plans_equal_the_bound_and_are_never_worse_than_wic(executor: str, backend: str) -> None:
    found = [arena.measured(path, executor, backend, ("Best", "WIC")) for path in arena.models()]
    rows = [row for row in found if row is not None]
    assert len(rows) >= 29
    assert all(row.bound <= row.sizes["Best"] <= row.sizes["WIC"] for row in rows)
    missed = [row.model for row in rows if not row.met]
    assert len(missed) <= 0.05 * len(rows), missed
