"""Broken ONNX models, two hundred and two thousand in the long suite, end in a result or one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.onnx_probe", str(first), str(BATCH)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"the process ended with {done.returncode} at seed {lines[-1:]}: {done.stderr[-2000:]}"
    assert len(lines) == BATCH
    findings = [line for line in lines if line.split(" ", 1)[1] not in ("result", "refused")]
    assert not findings, "\n".join(findings)
