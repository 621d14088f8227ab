"""Results that are the next run's inputs, one row longer each time, as the keys and values of a language model."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from length_models import opened

import onert
from onert.ir import Array, DType, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.joining import Concat
from onert_llvm.runtime.bound_commands import Places

CACHES, WIDTH = 5, 64
ROWS = {"small": 4, "used in place": 640, "handed out": 1200, "large": 4100}
"""The first number of rows, for sizes from which inputs and outputs are treated differently."""


def _model() -> Subgraphs:
    b = Builder()
    row = b.input(TensorType(DType.FLOAT32, (1, WIDTH)), "row")
    caches = [b.input(TensorType(DType.FLOAT32, (2, WIDTH)), f"cache {n}") for n in range(CACHES)]
    return b.model([b.add(Concat(0), cache, row) for cache in caches])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_caches_grow_and_earlier_results_stay_as_they_were(
    rows: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = onert.Execution(onert.compile(opened(_model()), num_threads=threads))
    caches = [np.full((rows, WIDTH), -n, np.float32) for n in range(CACHES)]
    steps: list[list[Array]] = []
    bound: list[object] = []
    init = Places.__init__

    def counted(*given: Any) -> None:
        bound.append(given)
        init(*given)

    for number in range(8):
        if number == 4:
            monkeypatch.setattr(Places, "__init__", counted)
        caches = list(execution.run([np.full((1, WIDTH), number, np.float32), *caches]).values())
        steps.append(caches)
    for number, results in enumerate(steps):
        for n, result in enumerate(results):
            assert result.shape == (rows + number + 1, WIDTH)
            assert (result[:rows] == -n).all()
            np.testing.assert_array_equal(result[rows:, 0], np.arange(number + 1))
    assert not any(np.shares_memory(a, b) for now, then in pairwise(steps) for a in now for b in then)
    assert not bound
