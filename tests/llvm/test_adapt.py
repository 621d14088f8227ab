"""Claims about threads that share processors with others: who waits sleeps, and fewer threads run where that is faster.

The native functions are called by themselves, with times that are given.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from branchy_models import PACKAGES
from patience import PATIENCE

import onert
from onert.ir import Array, Package
from onert_llvm.codegen.kernel_compiler import _emitted
from onert_llvm.codegen.native import pool_text
from onert_llvm.runtime import native_kernel
from onert_llvm.runtime.loaded_code import _externals
from onert_llvm.runtime.object_loader import Image, load
from onert_llvm.runtime.thread_pool import Pool
from onert_llvm.target.isa import runnable

from .test_pool import chain

PHASE, LEVEL, OTHER, LEFT, LAST = 0, 1, 2, 3, 11
CALM, BETWEEN = 0, 1
MILLISECOND = 1_000_000
ISA = runnable()[0]
Functions = dict[str, int]


IMAGES: list[Image] = []
"""Code is there for as long as its image."""


@pytest.fixture(scope="module")
def functions() -> Functions:
    """The addresses of what `pool.ll` and `adapt.ll` define, what is internal among it."""
    names = ("timed", "held_up", "onert_pool_run", "onert_pool_start", "onert_pool_stop", "onert_pool_size")
    text = pool_text(ISA)
    for name in names:
        text = text.replace(f"define internal void @{name}(", f"define void @{name}(")
    image = load([_emitted(text, ISA)], _externals())
    IMAGES.append(image)
    return {name: image[name] for name in names}


class Program:
    """What is known of a program's runs on so many threads, of which each takes `takes[level]` nanoseconds."""

    def __init__(self, functions: Functions, threads: int, takes: dict[int, int]) -> None:
        shape = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        self.held_up_call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            functions["held_up"]
        )
        self.timed_call = shape(functions["timed"])
        self.words, self.threads, self.takes = np.zeros(16, np.int64), threads, takes

    def held_up(self, nanoseconds: int) -> None:
        """A run at a calm time, in which the caller slept for so long."""
        self.held_up_call(self.words.ctypes.data, self.threads, nanoseconds)

    @property
    def level(self) -> int:
        """By which power of two fewer threads the next run takes."""
        phase = int(self.words[PHASE])
        return int(self.words[OTHER if phase > 1 and phase & 1 else LEVEL])

    def run(self, slept: int = 0) -> int:
        """A timed run; its level."""
        level = self.level
        self.timed_call(self.words.ctypes.data, self.threads, self.takes[level], slept)
        return level

    def trial(self) -> list[int]:
        """Runs until a trial is over: the levels of its windows."""
        windows: list[int] = []
        while self.words[PHASE] > BETWEEN:
            phase = self.words[PHASE]
            level = self.run()
            if self.words[PHASE] != phase:
                windows.append(level)
        return windows


def test_a_caller_that_was_held_up_for_long_begins_a_trial(functions: Functions) -> None:
    program = Program(functions, 2, {})
    program.held_up(4 * MILLISECOND)
    assert program.words[PHASE] == CALM
    program.held_up(3 * MILLISECOND)
    assert program.words[PHASE] > BETWEEN
    assert [program.words[LEVEL], program.words[OTHER]] == [0, 1]


def test_what_held_up_a_caller_some_time_ago_does_not_count(functions: Functions) -> None:
    program = Program(functions, 2, {})
    for _ in range(5):
        program.held_up(4 * MILLISECOND)
        assert program.words[PHASE] == CALM
        program.words[LAST] -= 200 * MILLISECOND


US = 1000
TRIALS = {
    # nanoseconds by level: windows, and the level that is kept
    "twice as fast together": ({0: 100 * US, 1: 200 * US}, 2, 0),
    "a little faster together": ({0: 100 * US, 1: 105 * US}, 6, 0),
    "alike": ({0: 100 * US, 1: 100 * US}, 6, 0),
    "a little faster alone": ({0: 105 * US, 1: 100 * US}, 6, 0),
    "a tenth faster alone": ({0: 110 * US, 1: 100 * US}, 6, 0),
    "a fifth faster alone": ({0: 120 * US, 1: 100 * US}, 6, 1),
    "twice as fast alone": ({0: 200 * US, 1: 100 * US}, 3, 1),
    "long runs": ({0: 90 * MILLISECOND, 1: 30 * MILLISECOND}, 3, 1),
}


@pytest.mark.parametrize("name", TRIALS)
def test_a_trial_takes_the_ways_in_turn_until_one_has_won(functions: Functions, name: str) -> None:
    takes, pairs, kept = TRIALS[name]
    program = Program(functions, 2, takes)
    program.held_up(7 * MILLISECOND)
    assert program.trial() == [0, 1] * pairs
    assert (program.words[PHASE], program.words[LEVEL]) == (BETWEEN, kept)


def test_trials_are_rarer_while_their_outcome_stays(functions: Functions) -> None:
    program = Program(functions, 2, {0: 200 * US, 1: 100 * US})
    program.held_up(7 * MILLISECOND)
    pauses = []
    for _ in range(7):
        program.trial()
        pauses.append(int(program.words[LEFT]))
        while program.words[PHASE] == BETWEEN:
            assert program.run() == 1
    assert all(first < second for first, second in pairwise(pauses[:4]))
    assert max(pauses) < 60_000 * MILLISECOND


def test_runs_alone_that_become_quick_are_tried_with_all_threads_at_once(functions: Functions) -> None:
    takes = {0: 200 * US, 1: 100 * US}
    program = Program(functions, 2, takes)
    program.held_up(7 * MILLISECOND)
    program.trial()
    takes |= {0: 30 * US, 1: 50 * US}  # the others are gone
    left = int(program.words[LEFT])
    while program.words[PHASE] == BETWEEN:
        program.run()
    assert program.words[LEFT] > 0
    assert left > 100 * MILLISECOND
    program.trial()
    assert program.words[LEVEL] == 0


def test_nothing_is_timed_once_nobody_is_held_up_any_more(functions: Functions) -> None:
    program = Program(functions, 2, {0: 100 * US, 1: 200 * US})
    program.held_up(7 * MILLISECOND)
    program.trial()
    while program.words[PHASE] == BETWEEN:
        program.run()
    assert program.words[PHASE] == CALM


def test_while_callers_are_held_up_trials_go_on(functions: Functions) -> None:
    program = Program(functions, 2, {0: 100 * US, 1: 200 * US})
    program.held_up(7 * MILLISECOND)
    program.trial()
    while program.words[PHASE] == BETWEEN:
        program.run(slept=10 * US)
    assert program.words[PHASE] > BETWEEN


def test_the_best_of_several_numbers_of_threads_is_found(functions: Functions) -> None:
    takes = {0: 400 * US, 1: 200 * US, 2: 100 * US, 3: 300 * US}
    program = Program(functions, 8, takes)
    program.held_up(7 * MILLISECOND)
    seen = set()
    for _ in range(12):
        seen.update(program.trial())
        while program.words[PHASE] == BETWEEN:
            program.run(slept=50 * US)
    program.trial()
    assert program.words[LEVEL] == 2
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize("level", range(3))
@pytest.mark.parametrize("make", [chain, PACKAGES["recurrent pair"]], ids=["chain", "recurrent pair"])
def test_any_number_of_threads_gives_the_same_bits(
    make: Callable[[], Package], level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make()
    states: list[Array] = []

    class Kept(native_kernel._Together):
        __slots__ = ()

        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            if self._state is not None:
                self._state[[PHASE, LEVEL, LEFT]] = BETWEEN, level, 1 << 60
                states.append(self._state)

    monkeypatch.setattr(native_kernel, "_Together", Kept)
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
    """A command of two pieces; one that the pool's worker does waits until the caller is about to sleep."""

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


def test_ways_that_are_compared_keep_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one could be measured with fewer, not be chosen for that, and never get them back."""
    states: list[Array | None] = []

    class Kept(native_kernel._Together):
        __slots__ = ()

        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            states.append(self._state if self._words[2] else None)

    monkeypatch.setattr(native_kernel, "_Together", Kept)
    program = onert.compile(PACKAGES["inception"](), executor="Parallel", num_threads=2)
    onert.Execution(program).run([np.zeros([d or 1 for d in each.shape], np.float32) for each in program.inputs])
    assert states
    assert None in states


def test_who_waits_for_a_thread_without_a_processor_sleeps(functions: Functions, pool: Pool) -> None:
    held = Held(pool)
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    run = ctypes.CFUNCTYPE(None, pointer, pointer, integer, pointer)(functions["onert_pool_run"])
    stop = time.monotonic() + PATIENCE
    runs = 0
    while not held.held and time.monotonic() < stop:  # the caller may do both pieces before the worker comes
        run(pool.pointer, held.lines.ctypes.data, 1, None)
        runs += 1
    assert held.slept
    assert held.words[WAITING] == 0
    assert sorted(held.done) == sorted([0, 1] * runs)
