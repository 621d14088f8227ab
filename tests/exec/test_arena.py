"""Arenas of executions: private, shared by a thread, or owned by the caller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread, current_thread
from typing import Any
from weakref import ref

import numpy as np
import pytest
from compiler.toy import Draft, ToyScale
from patience import PATIENCE

import onert
from onert.backend import HOST, Sequence
from onert.exec import Execution, SharedArena, thread_arena
from onert.ir import ExecutionError

from .slow import branches, chain, compiled, sleeping

ONES = np.ones(4, np.float32)
STATM = Path("/proc/self/statm")


def wide(width: int) -> onert.Program:
    d = Draft()
    x = d.input(width, name="x")
    return compiled(d.graph(d.op(ToyScale(3.0), d.op(ToyScale(2.0), x))), sleeping(0))


def test_executions_of_one_thread_share_an_arena_as_large_as_the_largest_needs() -> None:
    arena = SharedArena()
    programs = [wide(width) for width in (16, 1000, 100)]
    executions = [Execution(program, arena=arena) for program in programs]
    assert arena.nbytes == max(program.arena_bytes for program in programs) == 4032
    for _ in range(2):
        for execution, width in zip(executions, (16, 1000, 100), strict=True):
            (out,) = execution.run([np.arange(width, dtype=np.float32)]).values()
            np.testing.assert_array_equal(out, 6 * np.arange(width, dtype=np.float32))


def test_a_growing_arena_moves_the_tensors_of_all_executions() -> None:
    arena = SharedArena()
    small = Execution(wide(16), arena=arena)
    small.set_input(0, np.ones(16, np.float32))
    small.execute()
    before = small._frame.tensors[1].buffer
    large = Execution(wide(1000), arena=arena)
    assert not np.shares_memory(before, small._frame.tensors[1].buffer)
    assert np.shares_memory(large._frame.tensors[1].buffer, small._frame.tensors[1].buffer)
    before[:] = np.nan
    small.execute()
    assert small.get_output(0).tolist() == [6.0] * 16


def test_a_larger_shape_grows_the_shared_arena() -> None:
    d = Draft()
    x = d.input(None, name="x")
    program = compiled(d.graph(d.op(ToyScale(3.0), d.op(ToyScale(2.0), x))), sleeping(0))
    arena = SharedArena()
    execution = Execution(program, arena=arena)
    assert arena.nbytes == 0
    for size in (100, 10):
        assert execution.run([np.ones(size, np.float32)]).popitem()[1].tolist() == [6.0] * size
        assert arena.nbytes == 448


def test_another_thread_may_not_use_a_shared_arena() -> None:
    arena = SharedArena()
    execution = Execution(wide(16), arena=arena)
    found: list[str] = []

    def work() -> None:
        for act in (lambda: execution.run([np.ones(16, np.float32)]), lambda: Execution(wide(16), arena=arena)):
            try:
                act()
            except ExecutionError as error:
                found.append(str(error))

    other = Thread(target=work, name="other")
    other.start()
    other.join(PATIENCE)
    sentence = f"the shared arena belongs to thread {current_thread().name!r}, this is 'other'"
    assert [text.startswith(sentence) for text in found] == [True, True]
    with pytest.raises(ExecutionError, match="runs on the thread that made the arena"):
        execution.execute_async()


def test_one_execution_may_not_run_inside_another_in_the_same_arena() -> None:
    arena = SharedArena()
    inner = Execution(wide(16), arena=arena)
    outer = Execution(compiled(chain(2.0), lambda s: inner.run([np.ones(16, np.float32)]) and None), arena=arena)
    with pytest.raises(ExecutionError, match="another execution is running in the shared arena"):
        outer.run([ONES])


def test_an_arena_is_free_after_a_run_that_failed() -> None:
    def fail(sequence: Sequence) -> None:
        raise ExecutionError("always")

    arena = SharedArena()
    with pytest.raises(ExecutionError, match="always"):
        Execution(compiled(chain(2.0), fail), arena=arena).run([ONES])
    other = Execution(wide(16), arena=arena)
    assert other.run([np.ones(16, np.float32)]).popitem()[1].tolist() == [6.0] * 16


def test_only_the_memory_of_the_caller_is_used_for_planned_tensors() -> None:
    program = compiled(branches(3), sleeping(0), "Parallel")
    buffer = np.zeros(program.arena_bytes + 63, np.uint8)
    execution = Execution(program, arena=buffer)
    assert execution.run([ONES]).popitem()[1].tolist() == [9.0] * 4
    assert buffer.any()
    planned = program.memory_plan["host"].placements
    assert planned
    assert all(np.shares_memory(execution._frame.tensors[i].buffer, buffer) for i in planned)
    buffer[:] = 0x7F  # the caller may write to the memory between runs
    assert execution.run([ONES]).popitem()[1].tolist() == [9.0] * 4


def test_any_writable_buffer_can_be_an_arena() -> None:
    program = wide(16)
    raw = bytearray(program.arena_bytes + 64)
    assert Execution(program, arena=raw).run([np.ones(16, np.float32)]).popitem()[1].tolist() == [6.0] * 16


@pytest.mark.parametrize(
    ("arena", "sentence"),
    [
        (lambda n: np.zeros(64 + n, np.uint8)[: n - 1], "the arena given has .* bytes.*; the program needs 64"),
        (lambda n: bytes(n + 64), "read-only or not contiguous"),
        (lambda n: np.zeros(2 * n + 128, np.uint8)[::2], "read-only or not contiguous"),
        (lambda n: 5, "the arena is a int, expected 'thread', a SharedArena or a buffer"),
        (lambda n: "process", "the arena is 'process', expected 'thread', a SharedArena or a buffer"),
    ],
)
def test_unsuitable_memory_is_rejected(arena: Callable[[int], Any], sentence: str) -> None:
    program = wide(16)
    with pytest.raises(ExecutionError, match=sentence):
        Execution(program, arena=arena(program.arena_bytes))


# ---- the arena of a thread


def six(execution: Execution, width: int) -> bool:
    (out,) = execution.run([np.arange(width, dtype=np.float32)]).values()
    return bool((out == 6 * np.arange(width)).all())


def test_executions_share_the_arena_of_their_thread() -> None:
    first, second = Execution(wide(16), arena="thread"), Execution(wide(1000), arena="thread")
    assert thread_arena().nbytes == wide(1000).arena_bytes == 4032
    buffers = [execution._frame.tensors[1].buffer for execution in (first, second)]
    assert np.shares_memory(*buffers)
    assert six(first, 16)
    assert six(second, 1000)
    assert six(first, 16)


def test_private_and_explicit_arenas_are_separate_from_that_of_the_thread() -> None:
    arena = SharedArena()
    threads, given, private = (Execution(wide(16), arena=a) for a in ("thread", arena, None))
    buffers = [execution._frame.tensors[1].buffer for execution in (threads, given, private)]
    assert not any(np.shares_memory(a, b) for at, a in enumerate(buffers) for b in buffers[:at])


@pytest.mark.parametrize("end", ["close", "drop", "some of both"])
def test_the_arena_of_a_thread_is_freed_with_its_last_execution(end: str) -> None:
    executions = [Execution(wide(1000), arena="thread") for _ in range(3)]
    memory = ref(executions[0]._frame.tensors[1].buffer.base)
    closed = []
    for at in range(3):
        found = memory() is not None, thread_arena().nbytes  # an assertion would keep the objects alive
        assert found == (True, 4032)
        execution = executions.pop()
        if end == "close" or (end == "some of both" and at != 1):
            execution.close()
            closed.append(execution)
        del execution
    assert memory() is None
    assert thread_arena().nbytes == 0
    for execution in closed:
        with pytest.raises(ExecutionError, match="this execution is closed"):
            execution.execute()
    assert six(Execution(wide(16), arena="thread"), 16)


def test_each_thread_has_its_own_arena() -> None:
    mine = Execution(wide(1000), arena="thread")
    found: list[object] = []

    def work() -> None:
        found.append(thread_arena().nbytes)
        with Execution(wide(16), arena="thread") as execution:
            found.extend((six(execution, 16), thread_arena().nbytes))
        found.append(thread_arena().nbytes)
        try:
            mine.run([np.ones(1000, np.float32)])
        except ExecutionError as error:
            found.append(str(error))

    other = Thread(target=work, name="other")
    other.start()
    other.join(20)
    assert found[:4] == [0, True, wide(16).arena_bytes, 0]
    assert str(found[4]).startswith("the shared arena belongs to thread ")
    assert six(mine, 1000)


def test_an_execution_may_be_closed_on_another_thread() -> None:
    first, second = (Execution(wide(16), arena="thread") for _ in range(2))
    other = Thread(target=first.close)
    other.start()
    other.join(20)
    assert six(second, 16)
    second.close()
    assert thread_arena().nbytes == 0


def test_frames_of_earlier_shapes_leave_the_arena() -> None:
    d = Draft()
    x = d.input(None, name="x")
    program = compiled(d.graph(d.op(ToyScale(3.0), d.op(ToyScale(2.0), x))), sleeping(0))
    execution = Execution(program, arena="thread")
    for size in (10, 100, 1000):
        assert six(execution, size)
    assert len(thread_arena()._tenants) == 1
    execution.close()
    assert thread_arena().nbytes == 0


def test_background_runs_reject_the_arena_of_a_thread() -> None:
    execution = Execution(wide(16), arena="thread")
    execution.set_input(0, np.ones(16, np.float32))
    with pytest.raises(ExecutionError, match="runs on the thread that made the arena"):
        execution.execute_async()


def test_outputs_can_be_read_after_the_arena_is_freed() -> None:
    execution = Execution(wide(16), arena="thread")
    execution.run([np.ones(16, np.float32)])
    execution.close()
    assert execution.get_output(0).tolist() == [6.0] * 16


@pytest.mark.parametrize("nbytes", [1, 1000, (1 << 20) - 1, 1 << 20, (5 << 20) + 3])
def test_host_memory_is_zeroed_aligned_and_not_shared(nbytes: int) -> None:
    arrays = [HOST.allocate(nbytes) for _ in range(2)]
    for array in arrays:
        assert array.nbytes == nbytes
        assert array.ctypes.data % (2 << 20 if nbytes >= 1 << 20 else HOST.alignment) == 0
        assert not array.any()
        array[:] = 1
    assert not np.shares_memory(*arrays)


@pytest.mark.skipif(not STATM.is_file(), reason="the system does not report the memory of a process")
def test_large_memory_is_returned_to_the_system_as_soon_as_it_is_unused() -> None:
    def pages() -> int:
        return int(STATM.read_text().split()[1]) * 4096

    beside = []
    before = pages()
    for size in range(3, 13):  # like arenas for successive lengths, with other arrays in between
        array = HOST.allocate(size << 20)
        array[:] = 1
        beside.append(np.ones(60_000, np.uint8))
        del array
    assert pages() - before < 3 << 20
