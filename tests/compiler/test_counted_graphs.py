"""Random models in which only a run knows how long tensors are give what they mean, however they are run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import ExecutionError

from .counted_graphs import given, random_counted


def _results(execution: onert.Execution, seed: int, at: int) -> list[np.ndarray] | None:
    """What a run gives; None where it refuses."""
    try:
        return list(execution.run([given(seed, at)]).values())
    except ExecutionError:
        return None


def _checked(seed: int, draws: int, folder: Path | None) -> None:
    package = random_counted(seed, draws)
    expected = onert.Execution(onert.compile(package, backends=("reference",)))
    options: list[dict[str, object]] = [{"num_threads": 1}]
    options.append({"num_threads": 2, "executor": ("Dataflow", "Parallel")[seed % 2]})
    executions = [onert.Execution(onert.compile(package, **each)) for each in options]
    loaded = None
    if folder is not None:
        onert.bundle(package, folder, cpu="native")
        loaded = onert.load_bundle(folder)
    for at in range(4):
        theirs = _results(expected, seed, at)
        if theirs is None:
            continue  # what nothing uses may be left out, and then refuses nothing
        for execution in executions:
            found = _results(execution, seed, at)
            assert found is not None
            for one, other in zip(found, theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4, strict=True)
        if loaded is not None:
            for one, other in zip(loaded.run([given(seed, at)]).values(), theirs, strict=False):
                np.testing.assert_allclose(one[tuple(map(slice, other.shape))], other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", [3, 8, 20])
def test_random_counts_give_what_they_mean(seed: int, tmp_path: Path) -> None:
    _checked(seed, 7, tmp_path if seed == 20 else None)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200, 260))
def test_many_random_counts_give_what_they_mean(seed: int, tmp_path: Path) -> None:
    _checked(seed, 8, tmp_path if seed % 6 == 0 else None)
