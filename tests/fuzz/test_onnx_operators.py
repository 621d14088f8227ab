"""Random nodes from the ONNX standard's definitions match its reference implementation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the package onnx has the definitions")

from fuzz.onnx_operators import draws


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 26))])
def test_random_nodes_match_the_reference_implementation(seed: int) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ended = dict(draws(seed, 1, None))
    assert {name: how for name, how in ended.items() if how.startswith("differs")} == {}
    assert sum(how == "same" for how in ended.values()) > len(ended) / 4
