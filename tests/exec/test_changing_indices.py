"""Indices that change while an operation runs lead to some result or an error, never to a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import Array, DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.custom import Python

SCRIPT = Path(__file__).with_name("changing.py")


def _programs(*arguments: str) -> int:
    """The number of programs that the script ran; fails if the interpreter crashes."""
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


def test_many_indices_that_change_during_a_run_do_not_crash() -> None:
    assert _programs("40", "many") >= 13


@pytest.mark.long
def test_integer_operands_of_every_case_that_change_do_not_crash() -> None:
    assert _programs("200") > 400


def test_integer_operands_are_copied_and_floats_are_not() -> None:
    seen: list[Array] = []

    def look(indices: Array, elements: Array, *, options: bytes) -> Array:
        seen.extend((indices, elements))
        return elements

    row, two = TensorType(DType.FLOAT32, (4,)), TensorType(DType.INT32, (2,))
    b = Builder()
    y = b.add(Python("Look", look, results=(row,)), b.input(two, "indices"), b.input(row, "elements"))
    execution = onert.Execution(onert.compile(Package((Subgraphs((b.subgraph([y]),)),), "m"), backends=("reference",)))
    given = [np.int32([1, 2]), np.ones(4, np.float32)]
    for position, array in enumerate(given):
        execution.set_input(position, array)
    execution.execute()
    assert [np.shares_memory(a, b) for a, b in zip(given, seen, strict=True)] == [False, True]
