"""Broken models (2,000 by default, 30,000 in the long suite) end in a result or one sentence."""

from __future__ import annotations

import pytest
from fuzz.batch import findings, lines_of
from fuzz.corpus import corpus
from fuzz.seeds import batches

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert's schema writes the mutants")

BATCH = 1000
MUTANTS, MANY_MUTANTS = 2000, 30_000


@pytest.mark.parametrize("first", batches(BATCH, MUTANTS, MANY_MUTANTS))
def test_mutants_end_in_a_result_or_one_sentence(first: int) -> None:
    lines = lines_of("probe", str(first), str(BATCH), *corpus())
    assert len(lines) == BATCH
    assert findings(lines) == []
