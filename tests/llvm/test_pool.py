"""Native threads: each piece is run once in any sequence of runs, and no thread stays bound to a processor."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE
from shared_material import REPOSITORY

import onert
from onert.exec.observers import Profile
from onert.ir import Array, DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert_llvm.command.command import most_pieces

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's processor affinity")
ROWS = TensorType(DType.FLOAT32, (701, 1024))
COUNT = np.arange(701 * 1024, dtype=np.float32).reshape(ROWS.shape) % 97


def chain(length: int = 6) -> Package:
    """Row sums across which every command reads, so that a piece run twice or not at all changes the result."""
    b = Builder()
    x = b.input(ROWS, "x")
    for _ in range(length):
        column = b.add(Reduce(Reduction.MEAN, keep_dims=True), x, b.constant(np.int32([0])))
        x = b.add(Binary(BinaryKind.ADD), x, column)
    return Package((Subgraphs((b.subgraph([x]),)),), "chain")


def output(execution: onert.Execution) -> Array:
    return np.asarray(next(iter(execution.run([COUNT]).values())))


@pytest.fixture(scope="module")
def expected() -> Array:
    return output(onert.Execution(onert.compile(chain(), num_threads=1)))


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_consecutive_runs_are_equal_with_and_without_pauses(threads: int, expected: Array) -> None:
    execution = onert.Execution(onert.compile(chain(), num_threads=threads))
    for pause in [0.0] * 8 + [0.002] * 8:
        time.sleep(pause)
        assert np.array_equal(output(execution), expected)


def test_observed_runs_may_alternate_with_plain_ones(expected: Array) -> None:
    program = onert.compile(chain(), num_threads=2)
    plain, watched = onert.Execution(program), onert.Execution(program, observers=(Profile(),))
    for _ in range(6):
        assert np.array_equal(output(plain), expected)
        assert np.array_equal(output(watched), expected)


def test_concurrent_executions_do_not_disturb_one_another(expected: Array) -> None:
    program = onert.compile(chain(), num_threads=2)

    def several(_: int) -> bool:
        execution = onert.Execution(program)
        return all(np.array_equal(output(execution), expected) for _ in range(5))

    with ThreadPoolExecutor(4) as callers:
        assert all(callers.map(several, range(8)))


@LINUX
def test_workers_may_run_on_any_processor_after_being_woken() -> None:
    allowed = os.sched_getaffinity(0)
    others = {task.name for task in Path("/proc/self/task").iterdir()} - {str(threading.get_native_id())}
    execution = onert.Execution(onert.compile(chain(), num_threads=3))
    for _ in range(30):
        output(execution)
        time.sleep(0.003)  # long enough for workers to fall asleep
    end = time.monotonic() + PATIENCE
    while _bound(others, allowed) and time.monotonic() < end:
        time.sleep(0.05)
    assert _bound(others, allowed) == []


def _bound(others: Set[str], allowed: set[int]) -> list[str]:
    """The threads, except `others` (pools of other tests), that may not run on all processors of the process."""
    tasks = [task.name for task in Path("/proc/self/task").iterdir()]
    return [name for name in tasks if name not in others and os.sched_getaffinity(int(name)) != allowed]


@LINUX
def test_workers_inherit_the_allowed_processors_of_their_creator() -> None:
    allowed = os.sched_getaffinity(0)
    one = {min(allowed)}
    os.sched_setaffinity(0, one)
    try:
        before = set(os.listdir("/proc/self/task"))
        execution = onert.Execution(onert.compile(chain(7), num_threads=7))
        for _ in range(5):
            output(execution)
            time.sleep(0.003)
        for task in set(os.listdir("/proc/self/task")) - before:
            assert os.sched_getaffinity(int(task)) == one
    finally:
        os.sched_setaffinity(0, allowed)


ENDING = """
import gc, sys
import numpy as np
import onert
program = onert.compile(onert.load(sys.argv[1]), num_threads=2)
execution = onert.Execution(program)
execution.run([np.zeros([d or 1 for d in i.shape], i.dtype.numpy) for i in program.inputs])
gc.freeze()
"""
"""Leaves all cleanup to the end of the process, where nothing is collected."""


def test_a_process_exits_cleanly_while_workers_look_for_work(tmp_path: Path) -> None:
    model = REPOSITORY / "nnpackage" / "examples" / "digits_int8"
    environment = {**os.environ, "ONERT_CACHE_DIR": str(tmp_path)}
    for _ in range(6):
        ended = subprocess.run([sys.executable, "-c", ENDING, str(model)], check=False, env=environment)
        assert ended.returncode == 0


@pytest.mark.parametrize("threads", [1, 2, 3, 64, 100_000])
def test_a_command_is_split_into_enough_pieces_for_all_threads(threads: int) -> None:
    for tiles in (1, 2, 15, 16, 10_000, 1 << 20):
        cut = min(tiles, most_pieces(threads))
        assert 1 <= cut <= tiles
        assert cut < 1 << 16  # the number of pieces is stored in 16 bits
        assert threads == 1 or cut >= min(tiles, threads, (1 << 16) - 1)
