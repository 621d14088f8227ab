"""Claims about schedules of malleable tasks: they are right, near what no schedule beats, and the same every time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from onert.compiler.side_by_side.malleable import FAR, HAND_OVER, Task, allotment, length, place, schedule


def drawn(seed: int) -> tuple[list[Task], int]:
    """Tasks that wait for some of those before them, and a number of threads."""
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
def test_a_schedule_is_right(seed: int) -> None:
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
def test_on_one_thread_each_a_schedule_is_at_most_twice_as_long_as_need_be_beside_its_hand_overs(seed: int) -> None:
    """Graham's bound for lists."""
    tasks, threads = drawn(seed)
    alone = place(tasks, [1] * len(tasks), threads)
    ends: list[float] = []
    for task in tasks:
        ends.append(task.times[0] + max((ends[need] for need in task.needs), default=0.0))
    least = max(max(ends, default=0.0), sum(t.times[0] for t in tasks) / threads)
    assert length(alone) <= 2 * least + (HAND_OVER + FAR) * len(tasks) + 1e-6


def halves(time: float) -> tuple[float, float]:
    return (time, time / 2)


def stays(time: float) -> tuple[float, float]:
    return (time, time)


TABLE = {
    # Times and needs; the threads that each task gets, and the length without hand-overs.
    "one task has all threads": ([(halves(800), ())], [2], 400.0),
    "one that cannot share has one": ([(stays(800), ())], [1], 800.0),
    "two equal ones run side by side": ([(stays(800), ()), (stays(800), ())], [1, 1], 800.0),
    "a pair of chains too": (
        [(stays(400), ()), (stays(400), ()), (stays(400), (0,)), (stays(400), (1,))], [1, 1, 1, 1], 800.0,
    ),
    "small ones beside a large one that cannot share": (
        [(stays(900), ()), (stays(300), ()), (stays(300), ()), (stays(300), ())], [1, 1, 1, 1], 900.0,
    ),
    "the longest way has more threads": (
        [(halves(2000), ()), (halves(2000), (0,)), (stays(100), ()), (stays(100), ())], [2, 2, 1, 1], 2100.0,
    ),
    "three tasks for two threads": ([(stays(400), ()), (stays(400), ()), (stays(800), ())], [1, 1, 1], 800.0),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_known_graphs(case: str) -> None:
    rows, threads, expected = TABLE[case]
    found = [Task(times, needs) for times, needs in rows]
    assert allotment(found, 2) == threads
    assert length(schedule(found, 2)) == pytest.approx(expected, abs=2 * (HAND_OVER + FAR))


def test_a_task_stays_on_the_thread_that_made_what_it_needs() -> None:
    chains = [Task(stays(4)), Task(stays(4)), Task(stays(4), (0,)), Task(stays(4), (1,)), Task(stays(4), (2,))]
    by_task = {p.task: p.first for p in schedule(chains, 2)}
    assert by_task[0] == by_task[2] == by_task[4]
    assert by_task[1] == by_task[3] != by_task[0]
