"""Claims about the programs that measure: they run, whatever the numbers."""

from __future__ import annotations

import subprocess
import sys

import pytest
from shared_material import REPOSITORY

BENCH = REPOSITORY / "tests" / "bench"


def said(*arguments: str) -> str:
    """What a program of the folder prints; it must end well."""
    command = [sys.executable, str(BENCH / arguments[0]), *arguments[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kind", [(), ("--int8",)], ids=["floats", "bytes"])
def test_kernels_of_every_kind_are_measured(kind: tuple[str, ...]) -> None:
    rows = said("kernels.py", "--rounds", "1", "--only", "mobilenet_v2", *kind).splitlines()
    assert "peak" in rows[0]
    labels = " ".join(rows[1:])
    assert all(part in labels for part in ("12544x32x16", "3->32 3x3/2", "dw 3x3/1", "dw 3x3/2"))
    assert all(row.endswith("%") for row in rows[1:])


@pytest.mark.parametrize("name", sorted(path.name for path in BENCH.glob("*.py")))
def test_each_program_says_how_it_is_used(name: str) -> None:
    assert said(name, "--help").startswith(f"usage: {name}")
