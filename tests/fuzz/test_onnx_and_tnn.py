"""Broken ONNX and TNN models, 400 and 4,000 in the long suite, end in a result or one sentence, in bounded memory."""

from __future__ import annotations

import pytest
from fuzz.batch import findings, lines_of

pytest.importorskip("onnx", reason="the package onnx writes the mutants")

BATCH = 100
MUTANTS, MANY_MUTANTS = 200, 2000
SECONDS = 5.0
FORMATS = pytest.mark.parametrize("kind", ["onnx", "tnn"])


@FORMATS
@pytest.mark.parametrize("first", range(0, MUTANTS, BATCH))
def test_mutants_end_in_a_result_or_one_sentence(kind: str, first: int) -> None:
    _lines(kind, first)


@pytest.mark.long
@FORMATS
@pytest.mark.parametrize("first", range(MUTANTS, MANY_MUTANTS, BATCH))
def test_many_mutants_end_in_a_result_or_one_sentence_soon(kind: str, first: int) -> None:
    """On a processor of its own: two that share a core, or a slow machine, take twice as long or more."""
    assert not [line for line in _lines(kind, first) if float(line.split()[1]) > SECONDS]


def _lines(kind: str, first: int) -> list[str]:
    """A batch of mutants from a seed on."""
    lines = lines_of(f"{kind}_probe", str(first), str(BATCH))
    assert len(lines) == BATCH
    assert findings(lines) == []
    return lines
