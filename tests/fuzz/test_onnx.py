"""Broken ONNX models, two hundred and two thousand in the long suite, end in a result or one sentence."""

from __future__ import annotations

import pytest
from fuzz.batch import findings, lines_of

pytest.importorskip("onnx", reason="the package onnx writes the mutants")

BATCH = 100
MUTANTS, MANY_MUTANTS = 200, 2000


@pytest.mark.parametrize("first", range(0, MUTANTS, BATCH))
def test_mutants_end_in_a_result_or_one_sentence(first: int) -> None:
    _check(first)


@pytest.mark.long
@pytest.mark.parametrize("first", range(MUTANTS, MANY_MUTANTS, BATCH))
def test_many_mutants_end_in_a_result_or_one_sentence(first: int) -> None:
    _check(first)


def _check(first: int) -> None:
    """A batch of mutants from a seed on."""
    lines = lines_of("onnx_probe", str(first), str(BATCH))
    assert len(lines) == BATCH
    assert findings(lines) == []
