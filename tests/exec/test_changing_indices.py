"""Indices that change while an operation runs give some result or an error, never a crash."""

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


def test_what_an_operation_is_given_is_not_the_callers_memory_where_it_may_be_indices() -> None:
    seen: list[Array] = []

    def looked_at(indices: Array, elements: Array, *, options: bytes) -> Array:
        seen.extend((indices, elements))
        return elements

    row, two = TensorType(DType.FLOAT32, (4,)), TensorType(DType.INT32, (2,))
    b = Builder()
    y = b.add(Python("Look", looked_at, results=(row,)), b.input(two, "indices"), b.input(row, "elements"))
    execution = onert.Execution(onert.compile(Package((Subgraphs((b.subgraph([y]),)),), "m"), backends=("reference",)))
    given = [np.int32([1, 2]), np.ones(4, np.float32)]
    for position, array in enumerate(given):
        execution.set_input(position, array)
    execution.execute()
    assert [np.shares_memory(a, b) for a, b in zip(given, seen, strict=True)] == [False, True]
