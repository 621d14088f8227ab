"""Mutated packages end in a result or one sentence: no crash, hang or other exception; nothing is run or written."""

from __future__ import annotations

import os

import pytest
from fuzz.batch import findings, lines_of

BATCH = 300
MUTANTS, ALL_MUTANTS = 1_200, 12_000
START = int(os.environ.get("ONERT_FUZZ_SEED", "0"))
"""The first seed. Each finding names its own seed, which alone reproduces it."""


def _check(first: int) -> None:
    *endings, left = lines_of("package_probe", str(first), str(BATCH))
    assert len(endings) == BATCH
    assert findings(endings) == []
    assert left.split() == ["left", "nothing"]
    assert any(line.endswith("result") for line in endings), "the mutants are all too broken to say much"


@pytest.mark.parametrize("first", range(START, START + MUTANTS, BATCH))
def test_mutated_packages_end_in_a_result_or_one_sentence(first: int) -> None:
    _check(first)


@pytest.mark.long
@pytest.mark.parametrize("first", range(START + MUTANTS, START + ALL_MUTANTS, BATCH))
def test_many_mutated_packages_end_in_a_result_or_one_sentence(first: int) -> None:
    _check(first)
