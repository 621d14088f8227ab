"""Random models match LiteRT on every backend, with any passes and threads: bytes exactly, floats nearly."""

from __future__ import annotations

from typing import Any

import litert_peer as litert
import numpy as np
import pytest
from random_graphs import random_model

import onert
from onert.ir import Array

SEEDS = [*range(24), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(24, 120))]
"""Each seed determines its model: `random_model(seed, stored=...)` builds it again."""
WAYS: dict[str, dict[str, Any]] = {
    "reference": {"backends": ("reference",)},
    "reference, no passes": {"backends": ("reference",), "optimize": False},
    "default, 1 thread": {"num_threads": 1},
    "default, 2 threads": {"num_threads": 2},
    "default, Parallel": {"num_threads": 2, "executor": "Parallel"},
}


def _inputs(program: onert.Program, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(-128, 128, info.type.shape).astype(np.int8)
        if info.dtype.is_integer
        else rng.normal(size=info.type.shape).astype(np.float32)
        for info in program.inputs
    ]


@pytest.mark.parametrize("stored", [False, True], ids=["floats", "bytes"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_model_matches_litert(seed: int, stored: bool) -> None:
    model = random_model(seed, stored=stored)
    package = onert.load(model)
    inputs = _inputs(onert.compile(package, backends=("reference",)), seed)
    theirs = litert.run(model, inputs)
    for way, options in WAYS.items():
        mine = list(onert.Execution(onert.compile(package, **options)).run(inputs).values())
        assert len(mine) == len(theirs)
        for number, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            place = f"seed {seed}, {way}, output {number}"
            if stored:
                np.testing.assert_array_equal(a, b, err_msg=place)
            else:
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * max(float(np.abs(b).max()), 1e-3), err_msg=place)
