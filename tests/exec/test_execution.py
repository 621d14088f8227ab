"""Executions: permitted calls, background runs, cancellation, timeouts, and buffers used in place."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from threading import Event, Lock, Thread

import numpy as np
import pytest
from compiler.toy import Draft, ToyAdd, ToyBackend, ToyScale
from patience import PATIENCE
from shared_material import REPOSITORY

import onert
from onert.backend import Program, Sequence
from onert.compiler import Options, compile
from onert.exec import Execution, RunCancelledError, RunTimeoutError
from onert.ir import ExecutionError, Package, Subgraphs

from .slow import Clock, branches, chain, compiled, failing, sleeping

ONES = np.ones(4, np.float32)


class Gate:
    """Blocks kernels until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = Event(), Event()
        self.passed = 0

    def __call__(self, sequence: Sequence) -> None:
        self.reached.set()
        assert self.opened.wait(PATIENCE)
        self.passed += 1


def with_input(program: Program) -> Execution:
    execution = Execution(program)
    execution.set_input(0, ONES)
    return execution


# ---- runs in the background


def test_an_asynchronous_run_gives_the_same_result_as_a_synchronous_one() -> None:
    execution = with_input(compiled(branches(2), sleeping(0)))
    execution.execute()
    expected = execution.get_output(0)
    assert execution.execute_async().result(PATIENCE) is None
    assert execution.get_output(0).tobytes() == expected.tobytes()


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_a_callback_fires_once_whether_a_run_succeeds_or_fails(executor: str) -> None:
    notified: list[Future[None]] = []
    for graph, before in ((branches(2), sleeping(0)), (branches(2, factor=12.0), failing)):
        execution = with_input(compiled(graph, before, executor))
        future = execution.execute_async(notified.append)
        wait([future], PATIENCE)
        execution.close()
        assert notified == [future]
        notified.clear()


def test_a_callback_may_run_the_execution_again() -> None:
    execution = with_input(compiled(chain(2.0), sleeping(0)))
    done = Event()

    def again(future: Future[None]) -> None:
        execution.set_input(0, 3 * ONES)
        execution.execute()
        done.set()

    execution.execute_async(again).result(PATIENCE)
    assert done.wait(PATIENCE)
    assert execution.get_output(0).tolist() == [6.0] * 4


def test_a_callback_may_close_the_execution() -> None:
    execution = with_input(compiled(chain(2.0), sleeping(0)))
    done = Event()

    def close(future: Future[None]) -> None:
        execution.close()
        done.set()

    execution.execute_async(close).result(PATIENCE)
    assert done.wait(PATIENCE)
    with pytest.raises(ExecutionError, match="this execution is closed"):
        execution.execute()


def test_asynchronous_runs_work_in_a_forked_process() -> None:
    code = """
import os, numpy as np, onert
package = onert.load("nnpackage/examples/digits_float")
for executor in ("Linear", "Parallel"):
    execution = onert.Execution(onert.compile(package, executor=executor, num_threads=2))
    execution.set_input(0, np.zeros((1, 8, 8, 1), np.float32))
    execution.execute_async().result(600)
    wanted = execution.get_output(0)
    child = os.fork()
    if child == 0:
        execution.execute_async().result(600)
        os._exit(0 if (execution.get_output(0) == wanted).all() else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=REPOSITORY
    )
    assert done.stdout.split() == ["0", "0"], done.stderr


def test_the_future_raises_the_error_of_its_run() -> None:
    with pytest.raises(ExecutionError, match="thirteen"):
        with_input(compiled(chain(13.0), failing)).execute_async().result(PATIENCE)


def test_ten_thousand_runs_on_eight_threads_call_back_once_each_and_leak_no_memory() -> None:
    d = Draft()
    x, y = d.input(64, name="x"), d.input(64, name="y")
    graph = d.graph(d.op(ToyAdd(), d.op(ToyScale(2.0), x), y))
    program = compile(Package((Subgraphs((graph,)),)), Options(num_threads=1), [ToyBackend("builtin")])
    rounds, warm_up = 1250, 250
    calls = [0] * 8
    wrong: list[str] = []
    held: list[int] = []
    barrier = threading.Barrier(8, action=lambda: held.append(_traced()))

    def work(thread: int) -> None:
        execution = Execution(program)
        a, b = np.zeros(64, np.float32), np.full(64, thread, np.float32)
        execution.set_input(0, a)
        execution.set_input(1, b)
        lock = Lock()

        def count(future: Future[None]) -> None:
            with lock:
                calls[thread] += 1

        for number in range(rounds):
            if number == warm_up:
                barrier.wait(PATIENCE)
            a[:] = number
            execution.execute_async(count).result(PATIENCE)
            if execution.get_output(0).tolist() != [2.0 * number + thread] * 64:
                wrong.append(f"run {number} of thread {thread}")
        barrier.wait(PATIENCE)
        execution.close()

    tracemalloc.start()
    try:
        threads = [Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    finally:
        tracemalloc.stop()
    assert wrong == []
    assert calls == [rounds] * 8
    assert held[1] - held[0] < 64 * 1024


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_deleting_an_execution_frees_its_memory_at_once() -> None:
    program = compiled(chain(2.0, 3.0), sleeping(0))
    gc.disable()
    try:
        freed = Event()
        execution = with_input(program)
        execution.execute()
        arena = execution._frame.tensors[1].buffer
        while arena.base is not None:
            arena = arena.base
        weakref.finalize(arena, freed.set)
        del arena, execution
        assert freed.is_set()
    finally:
        gc.enable()


# ---- cancellation and timeouts


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_a_run_in_progress_is_cancelled_before_its_next_step(executor: str) -> None:
    gate = Gate()
    execution = with_input(compiled(chain(2.0, 3.0, 4.0), gate, executor))
    notified: list[Future[None]] = []
    future = execution.execute_async(notified.append)
    assert gate.reached.wait(PATIENCE)
    assert future.cancel()
    gate.opened.set()
    with pytest.raises(RunCancelledError, match="the run was cancelled"):
        future.result(PATIENCE)
    assert gate.passed == 1
    assert notified == [future]
    assert not future.cancel()
    execution.execute()  # the next run completes
    assert execution.get_output(0).tolist() == [24.0] * 4


def test_a_synchronous_run_is_cancelled_from_another_thread() -> None:
    gate = Gate()
    execution = with_input(compiled(chain(2.0, 3.0), gate))
    assert not execution.cancel()

    def cancel() -> None:
        assert gate.reached.wait(PATIENCE)
        assert execution.cancel()
        gate.opened.set()

    other = Thread(target=cancel)
    other.start()
    with pytest.raises(RunCancelledError):
        execution.execute()
    other.join(PATIENCE)


def test_a_run_that_has_not_started_is_cancelled_like_any_future() -> None:
    gate = Gate()
    blocked = with_input(compiled(chain(2.0), gate))
    notified: list[Future[None]] = []
    first = blocked.execute_async()
    assert gate.reached.wait(PATIENCE)
    # The thread of the execution is busy until the gate opens, so this run has not started yet.
    waiting = with_input(compiled(chain(2.0), sleeping(0)))
    waiting._pool = blocked._pool
    future = waiting.execute_async(notified.append)
    assert future.cancel()
    assert future.cancelled()
    assert notified == [future]
    waiting.execute()
    with pytest.raises(CancelledError):
        future.result()
    gate.opened.set()
    first.result(PATIENCE)


def test_a_run_is_cancelled_by_one_of_its_own_kernels() -> None:
    rounds = 0

    def count(sequence: Sequence) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 5:
            execution.cancel()

    execution = with_input(compiled(chain(*[2.0] * 50), count))
    with pytest.raises(RunCancelledError):
        execution.execute_async().result(PATIENCE)
    assert rounds == 5


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that limits of runs are measured by."""
    made = Clock()
    monkeypatch.setattr("onert.exec.stop.time", made)
    return made


@pytest.mark.parametrize(("seconds", "steps"), [(0.05, 5), (0.045, 5), (0.0, 0)])
@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_a_run_ends_at_the_first_step_past_its_timeout(clock: Clock, executor: str, seconds: float, steps: int) -> None:
    began = clock.now
    execution = with_input(compiled(chain(*[2.0] * 50), clock.taking(0.01), executor))
    for run in (execution.execute, lambda timeout: execution.execute_async(timeout=timeout).result(PATIENCE)):
        clock.now = began
        with pytest.raises(RunTimeoutError, match=f"the run did not end within {seconds:g} seconds"):
            run(timeout=seconds)
        assert round((clock.now - began) / 0.01) == steps
    execution.execute()  # without a limit
    assert execution.get_output(0).tolist() == [2.0**50] * 4


def test_a_run_within_its_timeout_completes(clock: Clock) -> None:
    execution = with_input(compiled(chain(*[2.0] * 5), clock.taking(0.01)))
    execution.execute(timeout=0.06)
    assert execution.get_output(0).tolist() == [32.0] * 4


def test_a_cancelled_run_leaves_state_as_it_was(clock: Clock) -> None:
    d = Draft()
    x, total = d.input(4, name="x"), d.variable(4)
    new = d.op(ToyAdd(), d.op(ToyScale(1.0), x), total)
    graph = d.graph(d.op(ToyScale(10.0), new), state=[(total, new)])
    execution = with_input(compiled(graph, clock.taking(0.02)))
    execution.execute()
    with pytest.raises(RunTimeoutError):
        execution.execute(timeout=0.001)
    execution.execute()
    assert execution.get_output(0).tolist() == [20.0] * 4


# ---- states


@pytest.mark.parametrize(
    "act",
    [
        lambda e: e.execute(),
        lambda e: e.execute_async(),
        lambda e: e.run([ONES]),
        lambda e: e.set_input(0, ONES),
        lambda e: e.set_input_shape(0, (5,)),
        lambda e: e.set_output(0, np.zeros(4, np.float32)),
        lambda e: e.reset_variables(),
    ],
)
def test_calls_on_a_running_or_closed_execution_are_rejected(
    act: Callable[[Execution], object],
) -> None:
    gate = Gate()
    execution = with_input(compiled(chain(2.0), gate))
    future = execution.execute_async()
    assert gate.reached.wait(PATIENCE)
    with pytest.raises(ExecutionError, match="this execution is running"):
        act(execution)
    gate.opened.set()
    future.result(PATIENCE)
    execution.close()
    with pytest.raises(ExecutionError, match="this execution is closed"):
        act(execution)
    execution.close()  # closing again does nothing


def test_a_run_without_its_inputs_names_the_missing_ones() -> None:
    execution = Execution(compiled(chain(2.0), sleeping(0)))
    with pytest.raises(ExecutionError, match="no value is given for input 'x'"):
        execution.execute()
    with pytest.raises(ExecutionError, match="no value is given for input 'x'"):
        execution.execute_async().result(PATIENCE)


def test_an_output_cannot_be_read_before_the_first_run() -> None:
    d = Draft()
    x = d.input(None, name="x")
    program = compile(
        Package((Subgraphs((d.graph(d.op(ToyScale(2.0), x)),)),)), Options(num_threads=1), [ToyBackend("builtin")]
    )
    with pytest.raises(ExecutionError, match="has no elements before the first run"):
        Execution(program).get_output(0)


# ---- buffers


def test_inputs_and_outputs_are_used_in_place() -> None:
    execution = Execution(compiled(chain(2.0), sleeping(0)))
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    execution.set_input(0, x)
    execution.set_output(0, y)
    execution.execute()
    assert y.tolist() == [2.0] * 4
    x[:] = 5
    execution.execute()
    assert y.tolist() == [10.0] * 4
    assert execution.get_output(0) is y


def test_executions_of_one_program_run_concurrently_without_interference() -> None:
    program = compiled(branches(2), sleeping(0.001), "Parallel")
    results: dict[int, list[float]] = {}

    def work(number: int) -> None:
        execution = onert.Execution(program)
        for _ in range(10):
            (out,) = execution.run([np.full(4, number, np.float32)]).values()
        results[number] = out.tolist()

    threads = [Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert results == {i: [5.0 * i] * 4 for i in range(8)}
