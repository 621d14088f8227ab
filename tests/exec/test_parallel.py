"""The Parallel executor: which threads are woken, what ends a run, and which error is raised."""

from __future__ import annotations

import time
from concurrent.futures import Future
from threading import Event, Lock, get_ident
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from compiler.toy import Draft, ToyAdd, ToyScale, diamond
from patience import PATIENCE

from onert.backend import Sequence
from onert.exec import Execution, RunCancelledError, RunTimeoutError
from onert.exec.executors import parallel
from onert.ir import ExecutionError

from .slow import Clock, Meeting, branches, compiled, sleeping

ONES = np.ones(4, np.float32)


def factor(sequence: Sequence) -> float:
    (found,) = (o.op.factor for o in sequence.body if isinstance(o.op, ToyScale))
    return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every concurrent run, while it is in progress."""
    found: list[Any] = []

    class Seen(parallel._Run):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            found.append(self)

    monkeypatch.setattr(parallel, "_Run", Seen)
    return found


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_thread_is_woken_for_every_ready_step(runs: list[Any], count: int) -> None:
    # At first one step is ready and the other threads wait; it makes all chains ready, whose kernels meet.
    meeting = Meeting(count)

    def meet(sequence: Sequence) -> None:
        if factor(sequence) != 1.0:
            meeting(sequence)
            return
        end = time.monotonic() + PATIENCE
        while sum(bool(task._fate) for task in runs[-1]._tasks) < count - 1:
            assert time.monotonic() < end
            sleeping(0.001)(sequence)

    execution = Execution(compiled(diamond(count, scale=1.0), meet, "Parallel", threads=count))
    for _ in range(5):
        (out,) = execution.run([ONES]).values()
        assert out.tolist() == [sum(2.0 + i for i in range(count))] * 4


def test_the_calling_thread_works_and_the_number_of_threads_is_respected() -> None:
    lock, running, peak, threads = Lock(), 0, 0, set()
    meeting = Meeting(2)

    def watch(sequence: Sequence) -> None:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
            threads.add(get_ident())
        meeting(sequence)
        with lock:
            running -= 1

    execution = Execution(compiled(branches(6), watch, "Parallel", threads=2))
    execution.run([ONES])
    assert peak == 2
    assert get_ident() in threads


@pytest.mark.parametrize("background", [False, True], ids=["called", "in the background"])
def test_a_cancelled_run_starts_no_further_step(background: bool) -> None:
    begun: list[float] = []
    lock = Lock()
    meeting = Meeting(2)

    def cancel(sequence: Sequence) -> None:
        with lock:
            begun.append(factor(sequence))
        meeting(sequence)  # both branches are in progress
        execution.cancel()
        meeting(sequence)  # and end after both have cancelled

    execution = Execution(compiled(branches(2, length=3), cancel, "Parallel", threads=2))
    execution.set_input(0, ONES)
    with pytest.raises(RunCancelledError, match="the run was cancelled"):
        execution.execute_async().result(PATIENCE) if background else execution.execute()
    assert sorted(begun) == [2.0, 3.0]


def test_a_run_past_its_timeout_starts_no_further_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, meeting, begun = Clock(), Meeting(2), []
    monkeypatch.setattr("onert.exec.stop.time", clock)

    def take(sequence: Sequence) -> None:
        begun.append(factor(sequence))
        meeting(sequence)
        clock.now += 1.0
        meeting(sequence)

    execution = Execution(compiled(branches(2, length=3), take, "Parallel", threads=2))
    execution.set_input(0, ONES)
    with pytest.raises(RunTimeoutError):
        execution.execute(timeout=3.5)  # two concurrent steps of one second each: the second pair is the last
    assert sorted(begun) == [2.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize("order", [(2.0, 3.0, 4.0), (3.0, 4.0, 2.0), (4.0, 2.0, 3.0)])
def test_of_several_errors_the_one_of_the_first_step_in_compiled_order_is_raised(
    runs: list[Any], order: tuple[float, ...]
) -> None:
    meeting = Meeting(3)

    def fail(sequence: Sequence) -> None:
        meeting(sequence)
        end = time.monotonic() + PATIENCE
        while len(runs[-1]._errors) < order.index(factor(sequence)):
            assert time.monotonic() < end
            sleeping(0.001)(sequence)
        raise ExecutionError(f"factor {factor(sequence):g}")

    execution = Execution(compiled(branches(3), fail, "Parallel", threads=3))
    for _ in range(3):
        with pytest.raises(ExecutionError, match=r"^factor 2$"):
            execution.run([ONES])


def test_a_failed_run_waits_for_steps_in_progress() -> None:
    meeting, ended = Meeting(2), Event()

    def fail(sequence: Sequence) -> None:
        meeting(sequence)
        if factor(sequence) == 2.0:
            raise ExecutionError("two")
        sleeping(0.05)(sequence)
        ended.set()

    execution = Execution(compiled(branches(2), fail, "Parallel", threads=2))
    with pytest.raises(ExecutionError, match="two"):
        execution.run([ONES])
    assert ended.is_set()


def test_no_step_starts_after_one_has_failed(runs: list[Any]) -> None:
    # Two of four branches are in progress; the others are ready when the thread other than the caller's fails.
    meeting, failed, late, caller = Meeting(2), Event(), [], get_ident()

    def fail(sequence: Sequence) -> None:
        if failed.is_set():
            late.append(factor(sequence))
            return
        meeting(sequence)
        if get_ident() != caller:
            failed.set()
            raise ExecutionError("two")
        while not runs[0]._errors:
            sleeping(0.001)(sequence)

    execution = Execution(compiled(branches(4, length=4), fail, "Parallel", threads=2))
    with pytest.raises(ExecutionError, match="two"):
        execution.run([ONES])
    assert late == []


def test_waiting_threads_are_released_when_the_last_step_is_done() -> None:
    """One thread runs the final sequential steps while the others have nothing to wait for."""
    done: list[Future[None]] = []
    execution = Execution(compiled(diamond(3, 2, scale=1.0), sleeping(0), "Parallel", threads=4))
    execution.set_input(0, ONES)
    for _ in range(50):
        future = execution.execute_async(done.append)
        future.result(PATIENCE)
    assert len(done) == 50
    assert execution.get_output(0).tolist() == [4.0 + 9.0 + 16.0] * 4


@pytest.mark.parametrize(
    ("executor", "expected"),
    [
        ("Dataflow", [1.0, 3.0, 4.0, 6.0, 2.0, 5.0, 7.0]),  # both sums form one step
        ("Parallel", [1.0, 3.0, 4.0, 2.0, 5.0, 6.0, 7.0]),
    ],
)
def test_of_the_steps_that_become_ready_the_highest_rank_runs_first(executor: str, expected: list[float]) -> None:
    order: list[float] = []
    d = Draft()
    x = d.op(ToyScale(1.0), d.input(4, name="x"))
    short = d.op(ToyScale(2.0), x)
    long = d.op(ToyScale(5.0), d.op(ToyScale(4.0), d.op(ToyScale(3.0), x)))
    middle = d.op(ToyScale(7.0), d.op(ToyScale(6.0), x))
    graph = d.graph(d.op(ToyAdd(), d.op(ToyAdd(), short, long), middle))
    # Planned for two threads, but run by one.
    program = compiled(graph, lambda s: order.append(factor(s)), executor, threads=2)
    execution = Execution(evolve(program, num_threads=1))
    (out,) = execution.run([ONES]).values()
    assert out.tolist() == [2.0 + 60.0 + 42.0] * 4
    assert order == expected
