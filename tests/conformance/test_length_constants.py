"""Constants that depend on the length are bit-identical in programs for many lengths and for one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compilations import compilations
from open_layers import Layer
from open_positions import POSITIONS

import onert

LENGTHS = (*range(2, 25), 40, 33, 3)
ALONE = (3, 8, 17, 40)
FOLDED, MORE = (600, 640, 650), (600, 640, 700, 650)
"""Lengths at which some results are too large to be constants."""
MOST_COMPILED = 12


def _given(layer: Layer, length: int) -> dict[str, Any]:
    random = np.random.default_rng(length)
    sizes = dict.fromkeys(layer.sizes, length) | {"n": 2}
    shapes = {name: [sizes[d] if isinstance(d, str) else d for d in dims] for name, dims in layer.inputs.items()}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", POSITIONS)
def test_few_programs_give_every_length_the_bits_of_a_program_for_that_length_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = POSITIONS[name]
    package = onert.load(layer.content)
    execution = onert.Execution(onert.compile(package, num_threads=1))
    with monkeypatch.context() as patched:
        made = compilations(patched)
        for length in LENGTHS:
            execution.run(_given(layer, length))
    assert len(made) <= MOST_COMPILED
    for length in ALONE:
        given = _given(layer, length)
        shapes = {key: array.shape for key, array in given.items()}
        alone = onert.Execution(onert.compile(package, num_threads=1, input_shapes=shapes))
        (found,), (expected,) = execution.run(given).values(), alone.run(given).values()
        assert found.tobytes() == expected.tobytes(), length


@pytest.mark.parametrize("lengths", [FOLDED, MORE])
@pytest.mark.parametrize("name", ["rotary", "rotary by products", "rotary behind a past"])
def test_results_too_large_for_constants_have_the_same_bits(name: str, lengths: tuple[int, ...]) -> None:
    layer = POSITIONS[name]
    package = onert.load(layer.content)
    execution = onert.Execution(onert.compile(package, num_threads=1))
    for length in lengths:
        given = _given(layer, length)
        found = execution.run(given)["y"].tobytes()
    shapes = {key: array.shape for key, array in given.items()}
    alone = onert.Execution(onert.compile(package, num_threads=1, input_shapes=shapes))
    assert found == alone.run(given)["y"].tobytes()
