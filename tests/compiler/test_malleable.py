"""Schedules of malleable tasks: valid, close to the lower bound, and deterministic."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from onert.compiler.side_by_side.malleable import FAR, HAND_OVER, Task, allotment, length, place, schedule


def drawn(seed: int) -> tuple[list[Task], int]:
    """Tasks that depend on some of their predecessors, and a number of threads."""
    rng = np.random.default_rng(seed)
    threads = int(rng.integers(1, 5))
    found = []
    for at in range(int(rng.integers(0, 14))):
        first = float(rng.choice([0.0, rng.uniform(0, 100)], p=[0.1, 0.9]))
        times = (first, *(first * float(share) for share in rng.uniform(0.4, 1.1, threads - 1)))
        needs = rng.choice(at, size=min(at, int(rng.integers(0, 4))), replace=False) if at else ()
        found.append(Task(times, tuple(sorted(map(int, needs)))))
    return found, threads


@pytest.mark.parametrize("seed", range(60))
def test_a_schedule_is_valid_and_deterministic(seed: int) -> None:
    tasks, threads = drawn(seed)
    placed = schedule(tasks, threads)
    assert sorted(p.task for p in placed) == list(range(len(tasks)))
    assert [p.start for p in placed] == sorted(p.start for p in placed)
    position = {p.task: at for at, p in enumerate(placed)}
    by_task = {p.task: p for p in placed}
    for p in placed:
        assert 0 <= p.first < p.first + p.count <= threads
        assert -1e-9 <= p.end - p.start - tasks[p.task].times[p.count - 1] <= FAR + 1e-9
        for need in tasks[p.task].needs:
            assert by_task[need].end <= p.start
            assert position[need] < position[p.task]
    for thread in range(threads):
        own = [p for p in placed if p.first <= thread < p.first + p.count]
        assert all(a.end <= b.start for a, b in pairwise(own))
    assert schedule(tasks, threads) == placed


@pytest.mark.parametrize("seed", range(60))
def test_single_threaded_tasks_meet_grahams_bound_up_to_hand_overs(seed: int) -> None:
    """Graham's bound for list scheduling."""
    tasks, threads = drawn(seed)
    alone = place(tasks, [1] * len(tasks), threads)
    ends: list[float] = []
    for task in tasks:
        ends.append(task.times[0] + max((ends[need] for need in task.needs), default=0.0))
    least = max(max(ends, default=0.0), sum(t.times[0] for t in tasks) / threads)
    assert length(alone) <= 2 * least + (HAND_OVER + FAR) * len(tasks) + 1e-6


def halves(time: float) -> tuple[float, float]:
    return (time, time / 2)


def serial(time: float) -> tuple[float, float]:
    return (time, time)


TABLE = {
    # Times and dependencies; the threads that each task gets, and the length without hand-overs.
    "one task has all threads": ([(halves(800), ())], [2], 400.0),
    "a task that does not scale has one thread": ([(serial(800), ())], [1], 800.0),
    "two equal ones run side by side": ([(serial(800), ()), (serial(800), ())], [1, 1], 800.0),
    "two equal chains run side by side": (
        [(serial(400), ()), (serial(400), ()), (serial(400), (0,)), (serial(400), (1,))], [1, 1, 1, 1], 800.0,
    ),
    "small tasks run beside a large one that does not scale": (
        [(serial(900), ()), (serial(300), ()), (serial(300), ()), (serial(300), ())], [1, 1, 1, 1], 900.0,
    ),
    "tasks on the critical path have more threads": (
        [(halves(2000), ()), (halves(2000), (0,)), (serial(100), ()), (serial(100), ())], [2, 2, 1, 1], 2100.0,
    ),
    "three tasks for two threads": ([(serial(400), ()), (serial(400), ()), (serial(800), ())], [1, 1, 1], 800.0),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_small_graphs_get_the_expected_threads_and_length(case: str) -> None:
    rows, threads, expected = TABLE[case]
    found = [Task(times, needs) for times, needs in rows]
    assert allotment(found, 2) == threads
    assert length(schedule(found, 2)) == pytest.approx(expected, abs=2 * (HAND_OVER + FAR))


def test_a_task_stays_on_the_thread_of_its_dependency() -> None:
    chains = [Task(serial(4)), Task(serial(4)), Task(serial(4), (0,)), Task(serial(4), (1,)), Task(serial(4), (2,))]
    by_task = {p.task: p.first for p in schedule(chains, 2)}
    assert by_task[0] == by_task[2] == by_task[4]
    assert by_task[1] == by_task[3] != by_task[0]
