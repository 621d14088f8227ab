"""One execution matches ONNX Runtime at any input size, whatever sizes it ran before."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_peer import precise_session
from open_layers import LAYERS as SIMPLE
from open_positions import POSITIONS

import onert

LAYERS = SIMPLE | POSITIONS

_BYTES = 0.0501
"""Tolerance for byte results: one quantisation step, because sums of bytes are rounded once here."""


@pytest.mark.parametrize("rounds", [pytest.param(14, id="brief"), pytest.param(100, id="long", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_matches_onnx_runtime_at_sizes_in_any_order(name: str, rounds: int) -> None:
    layer, random = LAYERS[name], np.random.default_rng(rounds)
    session = precise_session(layer.content)
    threads = 1 + len(name) % 2
    execution = onert.Execution(onert.compile(onert.load(layer.content), num_threads=threads))
    for number in range(rounds):
        inputs = layer.drawn(random, small=number % 3 == 0)
        (expected,) = session.run(["y"], inputs)
        (found,) = execution.run(inputs).values()
        assert found.shape == expected.shape
        largest = np.abs(expected).max(initial=1)
        allowed = _BYTES if "bytes" in name else 2e-4 * largest
        sizes = {key: array.shape for key, array in inputs.items()}
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=allowed, err_msg=f"{number}: {sizes}")
