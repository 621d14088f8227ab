"""Broken models (3,000 by default, 30,000 in the long suite) end in a result or one sentence."""

from __future__ import annotations

import os

import pytest
from fuzz.batch import findings, lines_of
from fuzz.corpus import corpus

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert's schema writes the mutants")

BATCH = 250
MUTANTS, MANY_MUTANTS = 3000, 30_000
START = int(os.environ.get("ONERT_FUZZ_SEED", "0"))
"""The first seed. Each finding names its own seed, which alone reproduces it."""


@pytest.mark.parametrize("first", range(START, START + MUTANTS, BATCH))
def test_mutants_end_in_a_result_or_one_sentence(first: int) -> None:
    _check(first)


@pytest.mark.long
@pytest.mark.parametrize("first", range(START + MUTANTS, START + MANY_MUTANTS, BATCH))
def test_many_mutants_end_in_a_result_or_one_sentence(first: int) -> None:
    _check(first)


def _check(first: int) -> None:
    """Check a batch of mutants, starting at a seed."""
    lines = lines_of("probe", str(first), str(BATCH), *corpus())
    assert len(lines) == BATCH
    assert findings(lines) == []
