"""Commands run side by side wait only for the commands they conflict with, and never for an absent thread."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from branchy_models import PACKAGES

import onert
from onert.backend import Settings
from onert.exec.observers import Profile
from onert.ir.builder import Builder
from onert_llvm.command.barriers import barriers, waits
from onert_llvm.command.command import Access, Area, Callee, Command, Pointer
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.runtime import native_kernel
from onert_llvm.runtime import thread_pool as threads
from onert_llvm.target.isa import runnable

NOTHING = Callee("nothing", "nothing", TaskLayout(()))


def address(pointer: Pointer) -> int:
    return pointer.offset


def command(*accesses: tuple[int, int, bool]) -> Command:
    """A command that accesses byte ranges, given by start and end."""
    touched = tuple(Access(Pointer(Area.SCRATCH, 0, a), b - a, write) for a, b, write in accesses)
    return Command(NOTHING, {}, 1, 1, touched, 0)


R, W = False, True
TABLE: dict[str, tuple[list[Command], list[list[int]]]] = {
    "what reads waits for what wrote": ([command((0, 8, W)), command((0, 8, R))], [[], [0]]),
    "readers do not wait for one another": (
        [command((0, 8, W)), command((0, 8, R)), command((4, 8, R))], [[], [0], [0]],
    ),
    "what writes waits for those that read": (
        [command((0, 8, W)), command((0, 8, R)), command((0, 8, R)), command((0, 4, W))], [[], [0], [0], [2, 1]],
    ),
    "neighbours do not touch": ([command((0, 8, W)), command((8, 16, W))], [[], []]),
    "one byte is enough": ([command((0, 9, W)), command((8, 16, W))], [[], [0]]),
    "what another waits for need not be waited for": (
        [command((0, 8, W)), command((0, 8, R), (8, 16, W)), command((0, 8, R), (8, 16, R))], [[], [0], [1]],
    ),
    "branches wait for their own": (
        [command((0, 8, W)), command((8, 16, W)), command((0, 8, W)), command((8, 16, W)), command((0, 16, R))],
        [[], [], [0], [1], [3, 2]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_commands_wait_for_those_they_conflict_with(case: str) -> None:
    commands, expected = TABLE[case]
    assert waits(commands, address) == expected


def _conflict(one: Command, other: Command) -> bool:
    """Whether two commands access memory that one of them writes."""
    return any(
        (a.write or b.write)
        and a.pointer.offset < b.pointer.offset + b.nbytes
        and b.pointer.offset < a.pointer.offset + a.nbytes
        for a in one.accesses
        for b in other.accesses
    )


@pytest.mark.parametrize("room", [60, 400, 2000])
@pytest.mark.parametrize("seed", range(10))
def test_a_barrier_is_before_each_command_that_conflicts_with_one_since_the_last(seed: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    commands = []
    for _ in range(60):
        drawn = [(int(a), int(a + rng.integers(0, 12)), bool(rng.random() < 0.4)) for a in rng.integers(0, room, 3)]
        commands.append(command(*drawn))
    since: list[Command] = []
    expected = []
    for each in commands:
        touching = command(
            *((a.pointer.offset, a.pointer.offset + a.nbytes, a.write) for a in each.accesses if a.nbytes)
        )
        clash = any(_conflict(touching, other) for other in since)
        since = [touching] if clash else [*since, touching]
        expected.append(clash)
    assert barriers(commands, address) == expected
    assert len(set(expected)) == 2


@pytest.mark.parametrize("seed", range(30))
def test_conflicting_commands_are_ordered_by_minimal_wait_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    commands = []
    for _ in range(20):
        drawn = [(int(a), int(a + rng.integers(1, 12)), bool(rng.random() < 0.4)) for a in rng.integers(0, 60, 3)]
        commands.append(command(*drawn))
    found = waits(commands, address)
    before: list[set[int]] = []
    for at, needed in enumerate(found):
        indirect = set().union(*(before[other] for other in needed))
        assert indirect.isdisjoint(needed)
        before.append(indirect | set(needed))
        clash = {other for other in range(at) if _conflict(commands[at], commands[other])}
        assert set(needed) <= clash <= before[at]
    last = 0  # the last barrier: the wait lists order what barriers order, and no more
    for at, meet in enumerate(barriers(commands, address)):
        last = at if meet else last
        assert before[at].isdisjoint(range(last, at))


def test_commands_on_different_threads_have_separate_scratch_memory() -> None:
    found = Lowering(Builder().subgraph([]), runnable()[0], Settings(num_threads=3))
    lanes = []
    for home in (None, (0, 1), (1, 2), (0, 1), None):
        found.assign_threads(home)
        (access,) = found.scratch(64)
        lanes.append(access.pointer.index)
    assert lanes == [0, 1, 2, 1, 0]


# ---- run natively


def _given(program: onert.Program) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, [d or 1 for d in info.shape]).astype(np.float32) for info in program.inputs]


def _answers(execution: onert.Execution) -> list[bytes]:
    return [array.tobytes() for array in execution.run(_given(execution.program)).values()]


@pytest.fixture(scope="module", params=list(PACKAGES))
def package(request: pytest.FixtureRequest) -> onert.Package:
    made: onert.Package = PACKAGES[request.param]()
    return made


@pytest.fixture(scope="module")
def expected(package: onert.Package) -> list[bytes]:
    return _answers(onert.Execution(onert.compile(package, num_threads=1)))


@pytest.mark.parametrize("count", [2, 4])
def test_the_caller_completes_a_run_if_no_other_thread_arrives(
    package: onert.Package, expected: list[bytes], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool assumes more threads than it has, so the caller does all their work."""
    taken = []

    def alone(functions: Any, wanted: int) -> threads.Pool:
        pool = threads.Pool(functions, 1)
        ctypes.c_int64.from_address(pool._address + 3 * 8).value = wanted  # the number of shares per command
        taken.append(wanted)
        return pool

    monkeypatch.setattr(native_kernel, "POOLS", threads.Pools())
    monkeypatch.setattr(native_kernel, "Pool", alone)
    execution = onert.Execution(onert.compile(package, executor="Parallel", num_threads=count))
    for _ in range(3):
        assert _answers(execution) == expected
    assert set(taken) == {count}


def test_observed_and_plain_parallel_runs_may_alternate(package: onert.Package, expected: list[bytes]) -> None:
    program = onert.compile(package, executor="Parallel", num_threads=2)
    plain, watched = onert.Execution(program), onert.Execution(program, observers=(Profile(),))
    for _ in range(4):
        assert _answers(plain) == expected
        assert _answers(watched) == expected


def test_many_consecutive_runs_are_equal(package: onert.Package, expected: list[bytes]) -> None:
    execution = onert.Execution(onert.compile(package, executor="Parallel", num_threads=2))
    assert all(_answers(execution) == expected for _ in range(200))
