"""Language model decoders with random weights match a NumPy version over a prompt and several tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from language_models import Oracle, Sizes, Weights, decoder, weights

import onert
from onert.ir import Array

SIZES = Sizes(layers=2, heads=6, key_heads=2, size=32, hidden=256, vocabulary=512, positions=48)
PROMPT, STEPS = 8, 4
TOLERANCE = 0.04
"""Relative to the largest score: activations are rounded to bytes before each of fifteen consecutive products."""
FORMS = {"int8": (8, False), "int4": (4, False), "blocks of int4": (4, True), "blocks of int8": (8, True)}


def caches() -> dict[str, Array]:
    shape = (1, SIZES.key_heads, SIZES.positions, SIZES.size)
    return {f"{kind}_{i}": np.zeros(shape, np.float32) for i in range(SIZES.layers) for kind in ("keys", "values")}


def tokens() -> tuple[list[int], list[int]]:
    """A prompt, and the tokens that follow it."""
    drawn = np.random.default_rng(1).integers(0, SIZES.vocabulary, PROMPT + STEPS).tolist()
    return drawn[:PROMPT], drawn[PROMPT:]


def expected_scores(given: Weights) -> list[Array]:
    """NumPy's scores after each of the tokens that follow the prompt."""
    oracle, (prompt, following) = Oracle(given), tokens()
    oracle(prompt, 0)
    return [oracle([token], PROMPT + number)[0] for number, token in enumerate(following)]


def scores(package: Any, **options: Any) -> list[Array]:
    """A model's scores after the same tokens, with its caches updated in place."""
    kept, entries = caches(), {}
    for name in ("prefill", "decode"):
        program = onert.compile(package, signature=name, **options)
        entries[name] = onert.Execution(program)
        for cache, array in kept.items():
            entries[name].set_input(cache, array)
            entries[name].set_output(cache, array)
    prompt, following = tokens()
    _step(entries["prefill"], prompt, 0)
    found = []
    for number, token in enumerate(following):
        _step(entries["decode"], [token], PROMPT + number)
        found.append(entries["decode"].get_output("scores").reshape(-1).copy())
    return found


def _step(execution: onert.Execution, given: list[int], first: int) -> None:
    execution.set_input("tokens", np.int32([given]))
    execution.set_input("positions", np.arange(first, first + len(given), dtype=np.int32))
    execution.execute()


def agree(found: list[Array], expected: list[Array]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert np.abs(one - other).max() <= TOLERANCE * np.abs(other).max()


@pytest.mark.parametrize("form", FORMS)
def test_a_decoder_matches_numpy_over_several_tokens(form: str) -> None:
    given = weights(SIZES, *FORMS[form])
    agree(scores(onert.load(decoder(given, PROMPT)), num_threads=1), expected_scores(given))


@pytest.mark.parametrize("executor", ["Dataflow", "Parallel"])
def test_other_executors_and_more_threads_give_equal_scores(executor: str) -> None:
    package = onert.load(decoder(weights(SIZES, 4, True), PROMPT))
    first = scores(package, num_threads=1)
    for one, other in zip(scores(package, executor=executor, num_threads=2), first, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_bundled_decoder_matches_numpy(tmp_path: Path) -> None:
    given = weights(SIZES, 4, False)
    onert.bundle(onert.load(decoder(given, PROMPT)), tmp_path, signatures=("prefill", "decode"))
    loaded = onert.load_bundle(tmp_path)
    prompt, following = tokens()
    kept = caches()
    kept.update(_bundled(loaded, "prefill", prompt, 0, kept))
    found = []
    for number, token in enumerate(following):
        results = _bundled(loaded, "decode", [token], PROMPT + number, kept)
        found.append(results.pop("scores").reshape(-1))
        kept.update(results)
    agree(found, expected_scores(given))


def _bundled(loaded: Any, entry: str, given: list[int], first: int, kept: dict[str, Array]) -> dict[str, Array]:
    places = np.arange(first, first + len(given), dtype=np.int32)
    inputs = {"tokens": np.int32([given]), "positions": places, **kept}
    found = loaded.run({f"model_{entry}/{name}": array for name, array in inputs.items()}, f"model_{entry}")
    return {name.removeprefix(f"model_{entry}/"): array for name, array in found.items()}
