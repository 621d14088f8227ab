"""Whatever a signal handler raises, and wherever, an execution stays usable, counts whole runs and can be closed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interrupts.operations import SUBJECTS

HERE = Path(__file__).parent
LENGTHY = {
    "execute, observed": 20,
    "run, other shape": 20,
    "set_input_shape, Dataflow": 20,
    "load, compile, run": 10,
    "Interpreter": 10,
}
"""Operations that are interrupted less often than the others because they take long."""
POINTS, SIGNALS, FORKS = 40, 50, 25
GROUPS = [list(SUBJECTS)[at::3] for at in range(3)]
"""Operations that share a process, because starting one takes longer than most of them."""


def lines_of(cache: Path, module: str, *arguments: object, seconds: int) -> list[str]:
    """The lines printed by a module in a separate process, which must end well."""
    done = subprocess.run(
        [sys.executable, "-m", f"interrupts.{module}", *map(str, arguments)],
        cwd=HERE.parent,
        env={**os.environ, "ONERT_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout.splitlines()


def interrupted(lines: list[str]) -> list[int]:
    """How often each operation was interrupted."""
    return [int(line.rpartition("interrupted ")[2].split()[0]) for line in lines]


@pytest.mark.parametrize("group", GROUPS, ids=" | ".join)
def test_an_operation_may_be_interrupted_before_any_bytecode(group: list[str], tmp_path: Path) -> None:
    points = [LENGTHY.get(operation, POINTS) for operation in group]
    wanted = [f"{operation}={some}" for operation, some in zip(group, points, strict=True)]
    found = interrupted(lines_of(tmp_path, "opcodes", *wanted, seconds=1200))
    assert all(times >= 0.9 * some for times, some in zip(found, points, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("operation", [o for o in SUBJECTS if LENGTHY.get(o, POINTS) > 10])
def test_an_operation_may_be_interrupted_before_every_single_bytecode(operation: str, tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, "opcodes", f"{operation}=1000000", seconds=7200)
    times, _, bytecodes = line.rpartition("interrupted ")[2].partition(" of ")
    assert int(times) >= 0.9 * int(bytecodes)  # the rest sometimes runs in other threads


@pytest.mark.parametrize("group", GROUPS, ids=" | ".join)
@pytest.mark.parametrize("many", [1, pytest.param(10, marks=pytest.mark.long)])
def test_signals_leave_every_operation_usable(group: list[str], many: int, tmp_path: Path) -> None:
    counts = [many * LENGTHY.get(operation, SIGNALS) for operation in group]
    wanted = [f"{operation}={count}" for operation, count in zip(group, counts, strict=True)]
    assert interrupted(lines_of(tmp_path, "storm", many, *wanted, seconds=7200)) == counts


@pytest.mark.parametrize("count", [FORKS, pytest.param(20 * FORKS, marks=pytest.mark.long)])
def test_children_forked_while_threads_load_can_load_too(count: int, tmp_path: Path) -> None:
    assert lines_of(tmp_path, "forks", count, seconds=7200) == [str(count)]
