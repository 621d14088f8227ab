"""Random models with open dimensions match ONNX Runtime at all lengths, whatever lengths they ran before."""

from __future__ import annotations

import numpy as np
import pytest
from compilations import compilations
from onnx_peer import precise_session
from random_onnx.models import random_model

import onert

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, 300))]
"""Each seed determines its model: `random_model(seed)` builds it again."""
SAMPLES = 8
MOST_COMPILED = 6
"""The programs of a model: of its first length, of its second, and of lengths that are too long for these."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_model_matches_onnx_runtime_at_all_lengths(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(seed, SAMPLES)
    session = precise_session(model.content)
    made = compilations(monkeypatch)
    execution = onert.Execution(onert.compile(onert.load(model.content), num_threads=1 + seed % 2))
    order = np.random.default_rng(seed).permutation(2 * [*range(SAMPLES)]).tolist()
    for sample in order:
        inputs = model.inputs(sample, seed)
        for theirs, (name, mine) in zip(session.run(None, inputs), execution.run(inputs).items(), strict=True):
            assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
            largest = float(np.abs(theirs, where=np.isfinite(theirs), out=np.zeros_like(theirs)).max(initial=1e-3))
            place = f"seed {seed}, {model.shapes[sample]}, output {name}"
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=3e-4 * largest, err_msg=place)
    assert len(made) <= MOST_COMPILED
