"""Random models with lengths known only at run time match the reference, however they are run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import ExecutionError

from .counted_graphs import inputs, random_counted


def _results(execution: onert.Execution, seed: int, at: int) -> list[np.ndarray] | None:
    """The results of a run, or None if it fails."""
    try:
        return list(execution.run([inputs(seed, at)]).values())
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
            continue  # an unused operation may be removed, and then cannot fail
        for execution in executions:
            found = _results(execution, seed, at)
            assert found is not None
            for one, other in zip(found, theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4, strict=True)
        if loaded is not None:
            for one, other in zip(loaded.run([inputs(seed, at)]).values(), theirs, strict=False):
                np.testing.assert_allclose(one[tuple(map(slice, other.shape))], other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", [3, 8, 20])
def test_random_counted_models_match_the_reference(seed: int, tmp_path: Path) -> None:
    _checked(seed, 7, tmp_path if seed == 20 else None)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200, 260))
def test_many_random_counted_models_match_the_reference(seed: int, tmp_path: Path) -> None:
    _checked(seed, 8, tmp_path if seed % 6 == 0 else None)
