"""Memory plans of the shared models, compared with the table of `tests/bench/arena.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from bench import arena
from shared_material import needs_shared

from onert.backend import Settings, Step
from onert.compiler import routine
from onert.compiler.partition import Part
from onert.compiler.program_cache import other_shapes
from onert.compiler.settings.config_keys import EXECUTORS


class NotGenerated:
    """A kernel of which there is no code."""


@pytest.fixture(autouse=True)
def only_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are planned but get no kernels, for which most of the time would be spent; none is cached."""

    def generate(parts: Sequence[Part], _: Sequence[Settings]) -> tuple[Step, ...]:
        return tuple(Step(part.backend.name, part.sequence, NotGenerated()) for part in parts)  # type: ignore[arg-type]

    monkeypatch.setattr(routine, "generate", generate)
    monkeypatch.setattr(other_shapes, "WORTH_CACHING", float("inf"))
    monkeypatch.setenv("ONERT_CACHE_DIR", str(tmp_path))


@needs_shared
@pytest.mark.parametrize(
    ("backend", "executor"),
    [
        *(("llvm", executor) for executor in EXECUTORS),
        ("reference", EXECUTORS[0]),
        *(pytest.param("reference", executor, marks=pytest.mark.long) for executor in EXECUTORS[1:]),
    ],
)
def test_plans_meet_the_lower_bound_or_are_no_worse_than_wic(executor: str, backend: str) -> None:
    found = {path: arena.measured(path, executor, backend, ("Best",)) for path in arena.models()}
    rows = {path: row for path, row in found.items() if row is not None}
    assert len(rows) >= 29
    assert all(row.bound <= row.sizes["Best"] for row in rows.values())
    missed = [path for path, row in rows.items() if not row.met]  # a plan that meets the bound is as good as any
    assert len(missed) <= 0.05 * len(rows), missed
    for path in missed:
        wic = arena.measured(path, executor, backend, ("WIC",))
        assert wic is not None
        assert rows[path].sizes["Best"] <= wic.sizes["WIC"]
