"""Commands run side by side only if that was measured to be faster; times are simulated."""

from __future__ import annotations

from collections.abc import Callable

import branchy_models
import numpy as np
import pytest

import onert
from onert.backend import Part
from onert_llvm.runtime import measured_choice
from onert_llvm.runtime.measured_choice import LEAST, MEASURED, MOST, WARM_RUNS, WARMING, MeasuredChoice

TRIAL = WARM_RUNS + 2 * MEASURED
WAYS = "b" * WARM_RUNS + "bt" * MEASURED
"""The order of runs during a comparison."""


class Machine:
    """A clock advanced by simulated runs of two alternatives, and the sequence of runs."""

    def __init__(self, sequential: int, side_by_side: int) -> None:
        self.takes = [sequential, side_by_side]
        self.now = 0
        self.ran = ""
        self.call = MeasuredChoice(Way(self, 0), Way(self, 1), lambda: self.now)

    def runs(self, count: int) -> str:
        """Run `count` times and return which alternatives ran: `t` one after the other, `b` side by side."""
        before = len(self.ran)
        for _ in range(count):
            self.call()
        return self.ran[before:]


class Way:
    def __init__(self, machine: Machine, number: int) -> None:
        self.machine, self.number = machine, number
        self.parts = (Part((number,), self),)

    def __call__(self) -> None:
        self.machine.now += self.machine.takes[self.number]
        self.machine.ran += "tb"[self.number]


@pytest.mark.parametrize(
    ("sequential", "side_by_side", "way"),
    [(1000, 500, "b"), (1000, 969, "b"), (1000, 970, "t"), (1000, 1000, "t"), (1000, 1300, "t"), (0, 0, "t")],
)
def test_commands_run_side_by_side_only_if_that_is_clearly_faster(sequential: int, side_by_side: int, way: str) -> None:
    machine = Machine(sequential, side_by_side)
    assert machine.runs(TRIAL) == WAYS
    assert machine.runs(LEAST) == way * LEAST


@pytest.mark.parametrize("warm", [1, 3, WARM_RUNS])
def test_sleeping_threads_are_woken_before_a_comparison(warm: int) -> None:
    """Side-by-side runs are slow until the other threads are awake, and those runs are not compared."""
    machine = Machine(WARMING, WARMING // warm)
    assert machine.runs(warm + 2 * MEASURED + 1) == "b" * warm + "bt" * MEASURED + ("t" if warm == 1 else "b")


def test_comparisons_become_rarer_while_their_outcome_is_stable() -> None:
    machine = Machine(100, 50)
    between = LEAST
    while between <= MOST:
        assert machine.runs(TRIAL + between) == WAYS + "b" * between
        between *= 2
    for _ in range(2):
        assert machine.runs(TRIAL + MOST) == WAYS + "b" * MOST


def test_the_choice_follows_changing_run_times() -> None:
    machine = Machine(100, 50)
    machine.runs(2 * TRIAL + LEAST + 2 * LEAST)
    machine.takes = [100, 130]
    assert machine.runs(TRIAL + LEAST) == WAYS + "t" * LEAST
    machine.takes = [100, 80]
    assert machine.runs(TRIAL + LEAST) == WAYS + "b" * LEAST


@pytest.mark.parametrize("late", [0, 1, MEASURED // 2])
def test_a_few_slow_runs_do_not_decide_a_comparison(late: int) -> None:
    machine = Machine(100, 50)
    machine.runs(WARM_RUNS)
    for at in range(2 * MEASURED):
        machine.takes[1] = 100_000 if at // 2 < late else 50
        machine.runs(1)
    assert machine.runs(LEAST) == "b" * LEAST


def test_an_interrupted_run_is_not_counted() -> None:
    machine = Machine(100, 50)
    machine.takes[1] = -1

    def broken() -> None:
        raise KeyboardInterrupt

    good = machine.call._ways
    machine.call._ways = (good[0], broken)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        machine.call()
    machine.call._ways = good
    machine.takes[1] = 50
    assert machine.runs(TRIAL + LEAST) == WAYS + "b" * LEAST


def test_observers_see_the_parts_of_the_side_by_side_plan() -> None:
    assert [part.operations for part in Machine(1, 1).call.parts] == [(1,)]


@pytest.mark.parametrize("package", branchy_models.PACKAGES.values(), ids=branchy_models.PACKAGES)
def test_both_ways_are_bitwise_equal_to_the_linear_executor(
    package: Callable[[], onert.Package], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[MeasuredChoice] = []

    def kept(sequential: Callable[[], None], side_by_side: Callable[[], None]) -> MeasuredChoice:
        made.append(MeasuredChoice(sequential, side_by_side))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(measured_choice, "MeasuredChoice", kept)
    monkeypatch.setattr(measured_choice, "WARM_RUNS", 0)
    graphs = package()
    programs = [onert.compile(graphs, executor=name, num_threads=2) for name in ("Linear", "Parallel")]
    rng = np.random.default_rng(0)
    linear, parallel = map(onert.Execution, programs)
    for _ in range(4):  # both ways, twice each, with new inputs to detect stale results
        inputs = [rng.uniform(-1, 1, [d or 1 for d in each.shape]).astype(np.float32) for each in programs[0].inputs]
        expected = [array.tobytes() for array in linear.run(inputs).values()]
        assert [array.tobytes() for array in parallel.run(inputs).values()] == expected
    assert [len(each) for call in made for each in call._times] == [2, 2] * len(made)
    assert made
