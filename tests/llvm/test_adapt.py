"""Threads that share processors with other programs: waiting callers sleep, and fewer threads run if that is faster.

The native functions are called directly, with simulated times.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from branchy_models import PACKAGES
from patience import PATIENCE

import onert
from onert.ir import Array, Package
from onert_llvm.codegen.kernel_compiler import _emitted
from onert_llvm.codegen.native import pool_texts
from onert_llvm.runtime import native_kernel
from onert_llvm.runtime.loaded_code import _externals
from onert_llvm.runtime.object_loader import Image, load
from onert_llvm.runtime.thread_pool import Pool
from onert_llvm.target.isa import runnable

from .test_pool import chain

PHASE, LEVEL, OTHER, LEFT, LAST, DUE, PAUSE = 0, 1, 2, 3, 11, 14, 15
CALM, KEEPING, TRYING = 0, 1, 2
US, MILLISECOND = 1_000, 1_000_000
ISA = runnable()[0]
Functions = dict[str, int]


IMAGES: list[Image] = []
"""Keeps images alive, because code is valid only as long as its image."""


@pytest.fixture(scope="module")
def functions() -> Functions:
    """The addresses of the functions defined in `pool.ll` and `adapt.ll`."""
    names = [f"onert_pool_{name}" for name in ("timed", "held_up", "calm", "run", "start", "stop", "size")]
    image = load([_emitted(text, ISA) for text in pool_texts(ISA)], _externals())
    IMAGES.append(image)
    return {name: image[name] for name in names}


class Program:
    """A program's timing state, for runs on `threads` threads.

    `takes(level, now)` returns a run's duration and its caller's sleep in nanoseconds; `now` is a clock that only these
    runs advance.
    """

    def __init__(self, functions: Functions, threads: int, takes: Callable[[int, int], tuple[int, int]]) -> None:
        shape = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        self.held_up_call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(functions["onert_pool_held_up"])
        self.timed_call = shape(functions["onert_pool_timed"])
        self.calm_call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(functions["onert_pool_calm"])
        self.words, self.threads, self.takes = np.zeros(16, np.int64), threads, takes
        self.now, self.place = 0, self.words.ctypes.data

    def held_up(self, nanoseconds: int) -> None:
        """Report a run in the CALM phase whose caller slept for `nanoseconds`."""
        self.held_up_call(self.place, nanoseconds)

    @property
    def level(self) -> int:
        """The power of two by which the next run reduces the number of threads."""
        phase, *ways = self.words[[PHASE, LEVEL, OTHER]].tolist()
        return int(ways[phase == TRYING])

    def run(self) -> int:
        """Simulate a run and return its level."""
        level = self.level
        time, slept = self.takes(level, self.now)
        self.now += time
        if self.words[PHASE] != CALM:
            self.timed_call(self.place, self.threads, time, slept)
        elif slept:
            self.held_up(slept)
        return level

    def runs(self, nanoseconds: int) -> tuple[float, float]:
        """Run for `nanoseconds`; return the mean time of a run, and the share of the time with all threads."""
        start, count, together = self.now, 0, 0
        while self.now < start + nanoseconds:
            before = self.now
            level = self.run()
            together += 0 if level else self.now - before
            count += 1
        return (self.now - start) / count, together / (self.now - start)

    def until(self, phase: int, level: int) -> int:
        """Run until the phase and level are reached; return the nanoseconds this took (10 seconds at most)."""
        start = self.now
        while (self.words[PHASE], self.words[LEVEL]) != (phase, level) and self.now < start + 10_000 * MILLISECOND:
            self.run()
        return self.now - start


def steady(times: dict[int, int], slept: int = 0) -> Callable[[int, int], tuple[int, int]]:
    """Runs with constant times per level; with all threads, the caller sleeps for `slept` of it."""
    return lambda level, now: (times[level], 0 if level else slept)


TURN = 4 * MILLISECOND


def contested(alone: int, together: int, turns: bool = True) -> Callable[[int, int], tuple[int, int]]:
    """Runs on two processors, one of which another program occupies in every second turn of 4 milliseconds.

    A caller that waits for the thread there waits until the end of such a turn.
    """

    def takes(level: int, now: int) -> tuple[int, int]:
        if level or not turns:
            return (alone if level else together), 0
        over = (now + together) % (2 * TURN)
        held = 2 * TURN - over if over >= TURN else 0
        return together + held, held

    return takes


LENGTHS = {"50 us": 50 * US, "200 us": 200 * US, "1 ms": MILLISECOND, "3.5 ms": 3500 * US}


@pytest.mark.parametrize("alone", LENGTHS.values(), ids=LENGTHS)
def test_a_competing_program_slows_runs_down_by_at_most_a_twentieth(functions: Functions, alone: int) -> None:
    """Using all threads would take a fifth longer than one thread alone."""
    program = Program(functions, 2, contested(alone, alone * 6 // 10))
    program.runs(200 * MILLISECOND)
    mean, together = program.runs(1000 * MILLISECOND)
    assert mean < 1.05 * alone
    assert together < 0.5


@pytest.mark.parametrize("alone", LENGTHS.values(), ids=LENGTHS)
def test_all_threads_are_used_again_soon_after_the_competing_program_ends(functions: Functions, alone: int) -> None:
    """At any moment: within 48 times the loss of the last trial, which is one turn of the other program."""
    for moment in range(5):
        program = Program(functions, 2, contested(alone, alone * 6 // 10))
        program.runs((300 + 37 * moment) * MILLISECOND)
        program.takes = contested(alone, alone * 6 // 10, turns=False)
        assert program.until(CALM, 0) < 48 * 2 * TURN + 100 * MILLISECOND
        assert program.runs(500 * MILLISECOND)[0] == alone * 6 // 10


@pytest.mark.parametrize("alone", LENGTHS.values(), ids=LENGTHS)
def test_all_threads_stay_in_use_if_they_gain_more_than_a_competitor_costs(functions: Functions, alone: int) -> None:
    """All threads need four tenths of one thread's time, and eight tenths while the other program takes its turns."""
    program = Program(functions, 2, contested(alone, alone * 4 // 10))
    program.runs(200 * MILLISECOND)
    assert program.runs(1000 * MILLISECOND)[0] < 0.9 * alone


def test_runs_are_timed_after_their_caller_has_waited_for_long(functions: Functions) -> None:
    program = Program(functions, 2, steady({}))
    program.held_up(4 * MILLISECOND)
    assert program.words[PHASE] == CALM
    program.held_up(3 * MILLISECOND)
    assert [program.words[PHASE], program.words[LEVEL]] == [KEEPING, 0]


def test_a_program_without_waits_is_timed_at_growing_intervals(functions: Functions) -> None:
    """Because threads may be slower together without waiting for each other."""
    program = Program(functions, 2, steady({0: 150 * US, 1: 100 * US}))
    pauses = []
    for _ in range(12):
        program.calm_call(program.place)
        pauses.append(int(program.words[PAUSE]))
        assert program.words[PHASE] == (CALM if len(pauses) == 1 else KEEPING)
        program.words[[PHASE, DUE]] = CALM, 0
    assert pauses[:3] == [50 * MILLISECOND, 100 * MILLISECOND, 200 * MILLISECOND]
    assert pauses[-1] == pauses[-2] == 12800 * MILLISECOND
    program.words[DUE] = 1 << 62
    program.calm_call(program.place)
    assert program.words[PHASE] == CALM
    program.words[DUE] = 0
    program.calm_call(program.place)
    program.until(KEEPING, 1)
    assert program.now < 50 * MILLISECOND


def test_waits_in_the_past_do_not_count(functions: Functions) -> None:
    program = Program(functions, 2, steady({}))
    for _ in range(5):
        program.held_up(4 * MILLISECOND)
        assert program.words[PHASE] == CALM
        program.words[LAST] -= 200 * MILLISECOND


def waiting(functions: Functions, times: dict[int, int], slept: int = 0, threads: int = 2) -> Program:
    """A program of steady runs whose caller has just waited for long, so runs are timed."""
    program = Program(functions, threads, steady(times, slept))
    program.held_up(7 * MILLISECOND)
    return program


OUTCOMES = {
    # nanoseconds by level, and the level that is chosen
    "twice as fast together": ({0: 100 * US, 1: 200 * US}, 0),
    "a little faster together": ({0: 100 * US, 1: 105 * US}, 0),
    "alike": ({0: 100 * US, 1: 100 * US}, 0),
    "a little faster alone": ({0: 105 * US, 1: 100 * US}, 0),
    "a tenth faster alone": ({0: 110 * US, 1: 100 * US}, 1),
    "twice as fast alone": ({0: 200 * US, 1: 100 * US}, 1),
    "long runs": ({0: 90 * MILLISECOND, 1: 30 * MILLISECOND}, 1),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_fewer_threads_are_kept_if_runs_become_a_sixteenth_faster(functions: Functions, name: str) -> None:
    times, kept = OUTCOMES[name]
    program = waiting(functions, times, slept=times[0] // 10)
    program.runs(400 * MILLISECOND)
    assert program.words[LEVEL] == kept


def test_a_trial_of_all_threads_ends_when_it_has_lost_some_milliseconds(functions: Functions) -> None:
    program = waiting(functions, {0: 200 * US, 1: 100 * US})
    program.until(KEEPING, 1)
    program.until(TRYING, 1)
    for times in (24, 48, 48):
        assert program.until(KEEPING, 1) <= 9 * MILLISECOND
        assert times * 4 * MILLISECOND <= program.words[LEFT] <= times * 5 * MILLISECOND
        program.until(TRYING, 1)


def test_a_trial_of_fewer_threads_ends_when_it_has_lost_a_millisecond(functions: Functions) -> None:
    program = waiting(functions, {0: 100 * US, 1: 200 * US})
    program.until(TRYING, 0)
    assert program.until(KEEPING, 0) <= 3 * MILLISECOND


@pytest.mark.parametrize(("together", "kept"), [(98, 0), (100, 1), (102, 1)])
def test_all_threads_are_used_again_if_they_are_even_slightly_faster(
    functions: Functions, together: int, kept: int
) -> None:
    program = waiting(functions, {0: together * US, 1: 100 * US})
    program.words[LEVEL], program.words[OTHER] = 1, 0
    program.until(TRYING, 1)
    program.until(KEEPING, kept)
    assert program.words[LEVEL] == kept


def test_a_thread_count_that_becomes_slower_than_the_other_was_is_retried_at_once(functions: Functions) -> None:
    program = waiting(functions, {0: 200 * US, 1: 100 * US})
    program.until(KEEPING, 1)
    program.until(TRYING, 1)
    program.until(KEEPING, 1)
    program.takes = steady({0: 200 * US, 1: 5 * MILLISECOND})
    assert program.until(TRYING, 1) < 20 * MILLISECOND


def test_timing_stops_once_callers_no_longer_wait(functions: Functions) -> None:
    program = waiting(functions, {0: 100 * US, 1: 200 * US})
    program.until(TRYING, 0)
    assert program.until(CALM, 0) < 300 * MILLISECOND


def test_fewer_threads_are_tried_again_while_callers_keep_waiting(functions: Functions) -> None:
    program = waiting(functions, {0: 100 * US, 1: 200 * US}, slept=10 * US)
    for _ in range(4):
        assert program.until(TRYING, 0) < 600 * MILLISECOND
        program.until(KEEPING, 0)


def test_finds_the_best_of_several_thread_counts(functions: Functions) -> None:
    times = {0: 400 * US, 1: 200 * US, 2: 100 * US, 3: 300 * US}
    program = waiting(functions, times, slept=50 * US, threads=8)
    seen = set()
    while program.now < 3000 * MILLISECOND:
        seen.add(program.run())
    assert program.words[LEVEL] == 2
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize("level", range(3))
@pytest.mark.parametrize("make", [chain, PACKAGES["recurrent pair"]], ids=["chain", "recurrent pair"])
def test_results_are_bitwise_equal_for_any_thread_count(
    make: Callable[[], Package], level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make()
    states: list[Array] = []

    class Kept(native_kernel._Parallel):
        __slots__ = ()

        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            if self._state is not None:
                self._state[[PHASE, LEVEL, LEFT]] = KEEPING, level, 1 << 60
                states.append(self._state)

    monkeypatch.setattr(native_kernel, "_Parallel", Kept)
    programs = [onert.compile(package, num_threads=count) for count in (1, 4)]
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, [d or 1 for d in each.shape]).astype(np.float32) for each in programs[0].inputs]
    expected = [array.tobytes() for array in onert.Execution(programs[0]).run(inputs).values()]
    execution = onert.Execution(programs[1])
    for _ in range(6):
        assert [array.tobytes() for array in execution.run(inputs).values()] == expected
    assert any(state[LEFT] < 1 << 60 for state in states)


# ---- waiting

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
WAITING = 12


class Held:
    """A command of two pieces. A piece run by the pool's worker blocks until the caller is about to sleep."""

    def __init__(self, pool: Pool) -> None:
        self.words = (ctypes.c_int64 * 24).from_address(pool._address)
        self.caller = threading.get_ident()
        self.held = self.slept = False
        self.kernel = KERNEL(self.piece)
        self.lines = np.zeros((4, 8), np.int64)
        row, shares, runs = self.lines[0], self.lines[1], self.lines[3]
        address = ctypes.cast(self.kernel, ctypes.c_void_p).value
        row[:] = (address, 0, 2, 2, 0, shares.ctypes.data, runs.ctypes.data, 0)
        self.done: list[int] = []

    def piece(self, task: int | None, begin: int, end: int) -> None:
        self.done += range(begin, end)
        if threading.get_ident() != self.caller and not self.held:
            self.held = True
            stop = time.monotonic() + PATIENCE
            while not self.words[WAITING] and time.monotonic() < stop:
                time.sleep(0.001)
            self.slept = bool(self.words[WAITING])


@pytest.fixture
def pool(functions: Functions) -> Iterator[Pool]:
    pool = Pool(functions, 2)
    yield pool
    pool.close()


def test_alternatives_being_compared_keep_their_thread_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one could be measured with fewer threads, be rejected for that, and never get them back."""
    states: list[Array | None] = []

    class Kept(native_kernel._Parallel):
        __slots__ = ()

        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            states.append(self._state if self._words[2] else None)

    monkeypatch.setattr(native_kernel, "_Parallel", Kept)
    program = onert.compile(PACKAGES["inception"](), executor="Parallel", num_threads=2)
    onert.Execution(program).run([np.zeros([d or 1 for d in each.shape], np.float32) for each in program.inputs])
    assert states
    assert None in states


def test_a_caller_sleeps_while_it_waits_for_a_thread_that_is_not_running(functions: Functions, pool: Pool) -> None:
    held = Held(pool)
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    run = ctypes.CFUNCTYPE(None, pointer, pointer, integer, pointer)(functions["onert_pool_run"])
    stop = time.monotonic() + PATIENCE
    runs = 0
    while not held.held and time.monotonic() < stop:  # the caller may run both pieces before the worker starts
        run(pool.pointer, held.lines.ctypes.data, 1, None)
        runs += 1
    assert held.slept
    assert held.words[WAITING] == 0
    assert sorted(held.done) == sorted([0, 1] * runs)
