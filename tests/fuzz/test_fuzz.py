"""Broken models, three thousand and thirty thousand in the long suite, end in a result or one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.corpus import corpus

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert's schema writes the mutants")

BATCH = 250
MUTANTS, MANY_MUTANTS = 3000, 30_000
START = int(os.environ.get("ONERT_FUZZ_SEED", "0"))
"""The first seed; each finding names its own, which alone makes it again."""


@pytest.mark.parametrize("first", range(START, START + MUTANTS, BATCH))
def test_mutants_end_in_a_result_or_one_sentence(first: int) -> None:
    _check(first)


@pytest.mark.long
@pytest.mark.parametrize("first", range(START + MUTANTS, START + MANY_MUTANTS, BATCH))
def test_many_mutants_end_in_a_result_or_one_sentence(first: int) -> None:
    _check(first)


def _check(first: int) -> None:
    """A batch of mutants from a seed on."""
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.probe", str(first), str(BATCH), *corpus()],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"the process ended with {done.returncode} at seed {lines[-1:]}: {done.stderr[-2000:]}"
    assert len(lines) == BATCH
    findings = [line for line in lines if line.split(" ", 2)[2] not in ("result", "refused")]
    assert not findings, "\n".join(findings)
