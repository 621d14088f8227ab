"""Indices that change while an operation runs give some result or an error, never a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("changing.py")


def _programs(*arguments: str) -> int:
    """How many programs the script ran; it fails where the interpreter dies."""
    paths = [str(SCRIPT.parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return int(done.stdout.split()[0])


def test_many_indices_may_change_while_they_are_used() -> None:
    assert _programs("60", "many") >= 13


@pytest.mark.long
def test_integer_operands_of_every_case_may_change() -> None:
    assert _programs("200") > 400
