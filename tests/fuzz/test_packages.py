"""Mutated packages end in a result or one sentence: no crash, hang or other exception; nothing is run or written."""

from __future__ import annotations

import pytest
from fuzz.batch import findings, lines_of
from fuzz.seeds import batches

BATCH = 600
MUTANTS, ALL_MUTANTS = 600, 12_000


@pytest.mark.parametrize("first", batches(BATCH, MUTANTS, ALL_MUTANTS))
def test_mutated_packages_end_in_a_result_or_one_sentence(first: int) -> None:
    *endings, left = lines_of("package_probe", str(first), str(BATCH))
    assert len(endings) == BATCH
    assert findings(endings) == []
    assert left.split() == ["left", "nothing"]
    assert any(line.endswith("result") for line in endings), "the mutants are all too broken to say much"
