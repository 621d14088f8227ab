"""Real models with dynamic dimensions serve any length with few programs, in bounded memory and with exact results."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from compilations import compilations
from dynamic_models import ALL, MODELS, Dynamic

import onert

STATM = Path("/proc/self/statm")
BRIEF = ("kws_ref_model", "ToyCar", "hey_mycroft")
"""Models that run a few lengths in little time."""

MOST_COMPILED = 7
"""The most programs compiled for all lengths of a model: the initial ones, and one each time the length grows fourfold,
or twofold if several lengths grow."""

EVERY = [
    *(pytest.param(m, 20, 40, id=m.name) for m in ALL if any(brief in m.file for brief in BRIEF)),
    *(pytest.param(m, m.most, 1000, id=f"{m.name} often", marks=pytest.mark.long) for m in ALL),
]


def _megabytes() -> float:
    return int(STATM.read_text().split()[1]) * 4096 / 1e6 if STATM.is_file() else 0.0


@pytest.mark.parametrize(("model", "most", "count"), EVERY)
def test_many_lengths_are_served_by_few_programs_in_bounded_memory(
    model: Dynamic, most: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = MODELS / model.file
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    program = onert.compile(onert.load(path))
    execution = onert.Execution(program)
    infos = execution.program.inputs
    made = compilations(monkeypatch)
    for length in (*range(2, most + 1), *range(most, 0, -1)):
        execution.run(model.inputs(infos, length))
    assert len(made) <= MOST_COMPILED
    gc.collect()
    known, room = len(made), _megabytes()
    order = np.random.default_rng(2).integers(1, most, count, endpoint=True).tolist()
    for length in order:
        execution.run(model.inputs(infos, length, seed=length))
    gc.collect()
    assert len(made) == known
    assert _megabytes() - room < 16
    for length in order[:3]:
        given = model.inputs(infos, length, seed=7)
        shapes = {name: array.shape for name, array in given.items()}
        alone = onert.Execution(onert.compile(onert.load(path), input_shapes=shapes)).run(given)
        for name, found in execution.run(given).items():
            np.testing.assert_array_equal(found, alone[name])
