"""Callers lend their processor to a worker that has none, which finishes its piece there and leaves the run; and
commands of a single piece, which workers leave to the caller.

Native functions are called directly, or workers are made to believe that they were lent a processor.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from branchy_models import PACKAGES
from patience import PATIENCE

import onert
from onert.ir import Array, Package
from onert_llvm.codegen.kernel_compiler import _emitted
from onert_llvm.codegen.native import pool_texts
from onert_llvm.runtime import thread_pool
from onert_llvm.runtime.loaded_code import _externals
from onert_llvm.runtime.object_loader import Image, load
from onert_llvm.runtime.thread_pool import POOLS, Pool
from onert_llvm.target.isa import runnable

from .test_pool import chain

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's processor affinity")

STAGE, LENT = 2, 3
AGAIN, WAITING = 17, 12
ISA = runnable()[0]
MILLISECOND = 1_000_000
Functions = dict[str, int]
IMAGES: list[Image] = []
"""Keeps images alive, because code is valid only as long as its image."""


@pytest.fixture(scope="module")
def functions() -> Functions:
    """The addresses of functions defined in `pool.ll` and `lend.ll`, including internal ones."""
    walking, text = pool_texts(ISA)
    internal = ("i64 @awaited", "void @judge", "i1 @move")
    for name in internal:
        assert f"define internal {name}(" in text
        text = text.replace(f"define internal {name}(", f"define {name}(")
    image = load([_emitted(walking, ISA), _emitted(text, ISA)], _externals())
    IMAGES.append(image)
    names = [name.partition("@")[2] for name in internal]
    return {name: image[name] for name in (*names, *(f"onert_pool_{n}" for n in ("run", "start", "stop", "size")))}


@pytest.fixture
def pool(functions: Functions) -> Iterator[Pool]:
    pool = Pool(functions, 3)
    yield pool
    pool.close()


def lines(pool: Pool) -> Array:
    """The words of each thread, the caller's first."""
    return thread_pool._UNSTOPPED[pool._address][1].reshape(-1, thread_pool._LINE)


@pytest.mark.parametrize(
    ("stages", "chosen"),
    [((0, 0), 0), ((1, 0), 1), ((0, 1), 2), ((1, 1), 1), ((1, 2), 2), ((2, 1), 1), ((2, 2), 1)],
    ids=str,
)
def test_the_caller_waits_for_a_worker_in_a_piece_before_one_that_is_only_awake(
    functions: Functions, pool: Pool, stages: tuple[int, int], chosen: int
) -> None:
    lines(pool)[1:, STAGE] = stages
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(functions["awaited"])(pool.pointer) == chosen
    lines(pool)[1:, STAGE] = 0


def test_a_caller_that_slept_for_long_does_not_lend_for_a_while(functions: Functions, pool: Pool) -> None:
    judge = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(functions["judge"])
    words = (ctypes.c_int64 * 24).from_address(pool._address)
    judge(pool.pointer, MILLISECOND // 2, 5 * MILLISECOND)
    assert words[AGAIN] == 0
    judge(pool.pointer, 2 * MILLISECOND, 5 * MILLISECOND)
    assert words[AGAIN] == 53 * MILLISECOND


@pytest.mark.parametrize("there", [True, False])
def test_moving_a_thread_restores_its_allowed_processors(functions: Functions, there: bool) -> None:
    """A thread that may use no other processor is not moved."""
    move = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool)(functions["move"])
    allowed = os.sched_getaffinity(0)
    seen: list[tuple[bool, set[int]]] = []

    def moved() -> None:
        for cpu in (*sorted(allowed), 1000):
            done = move(threading.get_ident(), cpu, there)
            left = {cpu} & allowed if there else allowed - {cpu}
            assert done == bool(left)
            seen.append((done, os.sched_getaffinity(0)))

    thread = threading.Thread(target=moved)
    thread.start()
    thread.join()
    assert len(seen) == len(allowed) + 1
    assert all(after == allowed for _, after in seen)


KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Commands:
    """Commands with the given numbers of pieces, each of which may wait for the commands before it.

    `on_worker` is called in each piece that a worker runs.
    """

    def __init__(
        self, functions: Functions, pool: Pool, on_worker: Callable[[], None], of: Sequence[tuple[int, bool]]
    ) -> None:
        self.caller, self.on_worker, self.pool, self.of = threading.get_ident(), on_worker, pool, of
        self.done: list[tuple[int, int]] = []
        self.kernel = KERNEL(self.piece)
        self.rows = np.zeros((len(of) * (1 + 3) + 1, 8), np.int64)
        address, start = ctypes.cast(self.kernel, ctypes.c_void_p).value or 0, self.rows.ctypes.data
        for at, (pieces, meets) in enumerate(of):
            shares = start + 64 * (len(of) + 3 * at)
            self.rows[at] = (address, at, pieces, pieces, meets, shares, start + 64 * 4 * len(of), 0)
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        self.run_native = ctypes.CFUNCTYPE(None, pointer, pointer, integer, pointer)(functions["onert_pool_run"])

    def piece(self, task: int | None, begin: int, end: int) -> None:
        self.done.extend((task or 0, piece) for piece in range(begin, end))
        if threading.get_ident() != self.caller:
            self.on_worker()

    def run(self) -> None:
        """Run all commands; require that each piece runs once, and not before the commands it waits for."""
        del self.done[:]
        self.run_native(self.pool.pointer, self.rows.ctypes.data, len(self.of), None)
        assert sorted(self.done) == [(at, piece) for at, (pieces, _) in enumerate(self.of) for piece in range(pieces)]
        for at, (_, meets) in enumerate(self.of):
            early = [command < at for command, _ in self.done]
            assert not meets or early == sorted(early, reverse=True)


def test_closing_a_pool_twice_does_not_stop_another(functions: Functions) -> None:
    closed = Pool(functions, 3)
    closed.close()
    pool = Pool(functions, 3)
    closed.close()
    helped: list[None] = []
    commands = Commands(functions, pool, lambda: helped.append(None), TWO)
    stop = time.monotonic() + PATIENCE
    while not helped and time.monotonic() < stop:
        commands.run()
    pool.close()
    assert helped


TWO = ((12, False), (12, True))
PATTERNS = {
    "two": TWO,
    "single pieces": ((1, False), (1, True), (1, True)),
    "single pieces about others": ((1, False), (7, True), (1, True), (1, True), (7, True), (1, True)),
    "single pieces at a time": ((1, False), (1, False), (7, True), (1, True), (1, False), (7, False), (1, True)),
    "others that do not wait after a single one that does": ((7, False), (1, True), (7, False), (7, True)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_no_piece_runs_before_the_pieces_it_depends_on(functions: Functions, pool: Pool, name: str) -> None:
    commands = Commands(functions, pool, lambda: None, PATTERNS[name])
    for _ in range(100):
        commands.run()
    assert len(commands.done) == sum(pieces for pieces, _ in PATTERNS[name])


def test_each_thread_passes_its_own_number_to_kernels(functions: Functions) -> None:
    pool, numbers = Pool(functions, 3), set[tuple[int, int]]()

    def recorded(task: int | None, begin: int, end: int, thread: int) -> None:
        numbers.add((threading.get_ident(), thread))

    commands = Commands(functions, pool, lambda: None, TWO)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)(recorded)
    commands.rows[: len(TWO), 0] = ctypes.cast(kernel, ctypes.c_void_p).value
    stop = time.monotonic() + PATIENCE
    while len(numbers) < 2 and time.monotonic() < stop:
        commands.run_native(pool.pointer, commands.rows.ctypes.data, len(TWO), None)
    pool.close()
    assert (threading.get_ident(), 0) in numbers
    assert len({thread for thread, _ in numbers}) == len({number for _, number in numbers}) == len(numbers) > 1
    assert {number for _, number in numbers} <= {0, 1, 2}


def test_a_caller_lends_its_processor_to_a_worker_that_is_not_running(functions: Functions, pool: Pool) -> None:
    """If the caller sleeps before it has looked, because it has no processor itself, this happens in a later run."""
    words = (ctypes.c_int64 * 24).from_address(pool._address)
    seen: list[int] = []
    stop = time.monotonic() + PATIENCE

    def sleep() -> None:
        while not lines(pool)[1:, LENT].any() and not words[WAITING] and time.monotonic() < stop:
            time.sleep(0.001)
        seen.append(int(lines(pool)[1:, LENT].max()))

    commands = Commands(functions, pool, sleep, TWO)
    while not any(seen) and time.monotonic() < stop:
        commands.run()
        words[AGAIN] = 0
    assert max(seen) - 1 in os.sched_getaffinity(0)


def test_a_worker_on_a_lent_processor_leaves_after_its_piece_and_returns(functions: Functions, pool: Pool) -> None:
    lent = 0

    def lend() -> None:
        nonlocal lent
        lent += 1
        if lent <= 20:
            lines(pool)[1:, LENT] = min(os.sched_getaffinity(0)) + 1

    commands = Commands(functions, pool, lend, TWO)
    stop = time.monotonic() + PATIENCE
    while (lent < 30 or lines(pool)[1:, LENT].any()) and time.monotonic() < stop:
        commands.run()
    assert lent >= 30
    assert not lines(pool)[1:, LENT].any()
    assert not lines(pool)[1:, STAGE].any()


@pytest.mark.parametrize(
    ("make", "executor"), [(chain, "Linear"), (PACKAGES["inception"], "Parallel")], ids=["chain", "lanes"]
)
def test_results_are_bitwise_equal_if_workers_are_sent_away(make: Callable[[], Package], executor: str) -> None:
    package = make()
    programs = [onert.compile(package, executor=executor, num_threads=count) for count in (1, 3)]
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, [d or 1 for d in each.shape]).astype(np.float32) for each in programs[0].inputs]
    expected = [array.tobytes() for array in onert.Execution(programs[0]).run(inputs).values()]
    execution = onert.Execution(programs[1])
    execution.run(inputs)
    workers = [lines(pool)[1:, LENT] for pool in POOLS.idle(3)]
    assert workers
    processors = sorted(os.sched_getaffinity(0))
    over = threading.Event()

    def send() -> None:
        for at in iter(lambda: -1 if over.wait(0.0003) else len(processors), -1):
            for lent in workers:
                lent[:] = processors[int(rng.integers(at))] + 1

    sender = threading.Thread(target=send)
    sender.start()
    try:
        for _ in range(60):
            assert [array.tobytes() for array in execution.run(inputs).values()] == expected
    finally:
        over.set()
        sender.join()
