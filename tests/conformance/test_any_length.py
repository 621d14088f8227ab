"""One execution gives ONNX Runtime's results at any sizes, whatever sizes came before."""

from __future__ import annotations

import numpy as np
import pytest
from onnxruntime import InferenceSession
from open_layers import LAYERS as SIMPLE
from open_positions import POSITIONS

import onert

LAYERS = SIMPLE | POSITIONS

_BYTES = 0.0501
"""A step of the results that are bytes: sums of bytes are rounded once here."""


@pytest.mark.parametrize("rounds", [pytest.param(14, id="brief"), pytest.param(100, id="long", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_what_onnx_runtime_does_at_sizes_in_any_order(name: str, rounds: int) -> None:
    layer, random = LAYERS[name], np.random.default_rng(rounds)
    session = InferenceSession(layer.content, providers=["CPUExecutionProvider"])
    threads = 1 + len(name) % 2
    execution = onert.Execution(onert.compile(onert.load(layer.content), num_threads=threads))
    for number in range(rounds):
        given = layer.drawn(random, small=number % 3 == 0)
        (expected,) = session.run(["y"], given)
        (found,) = execution.run(given).values()
        assert found.shape == expected.shape
        most = np.abs(expected).max(initial=1)
        allowed = _BYTES if "bytes" in name else 2e-4 * most
        sizes = {key: array.shape for key, array in given.items()}
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=allowed, err_msg=f"{number}: {sizes}")
