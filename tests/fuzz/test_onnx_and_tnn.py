"""Broken models of ONNX, ONNX Runtime and TNN (600, or 6,000 in the long suite) end in a result or one sentence.

Memory stays bounded.
"""

from __future__ import annotations

import pytest
from fuzz.batch import findings, lines_of

pytest.importorskip("onnx", reason="the package onnx writes the mutants")

BATCH = 200
MUTANTS, MANY_MUTANTS = 200, 2000
SECONDS = 5.0
FORMATS = pytest.mark.parametrize("kind", ["onnx", "ort", "tnn"])


@FORMATS
@pytest.mark.parametrize("first", range(0, MUTANTS, BATCH))
def test_mutants_end_in_a_result_or_one_sentence(kind: str, first: int) -> None:
    _lines(kind, first)


@pytest.mark.long
@FORMATS
@pytest.mark.parametrize("first", range(MUTANTS, MANY_MUTANTS, BATCH))
def test_many_mutants_end_in_a_result_or_one_sentence_quickly(kind: str, first: int) -> None:
    """On an otherwise idle processor: with a shared core, or on a slow machine, it takes twice as long or more."""
    assert not [line for line in _lines(kind, first) if float(line.split()[1]) > SECONDS]


def _lines(kind: str, first: int) -> list[str]:
    """The lines of a batch of mutants, starting at a seed."""
    lines = lines_of(f"{kind}_probe", str(first), str(BATCH))
    assert len(lines) == BATCH
    assert findings(lines) == []
    return lines
