"""Steps of a layer whose units are divided among threads.

A step needs the outputs of all units before it, so threads meet after each. Waiting for each other would make every
step as slow as the slowest thread, which may have no processor for milliseconds. So no thread depends on another one: a
part that its thread has not begun is computed by one that waits, and one that its thread began and does not finish is
computed twice. That is safe because a step only reads what earlier steps wrote, and writes the same bits again: outputs
and states of all steps have memory of their own, and intermediate results belong to the thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I64, Kernel, Val, View

LINES = 2
"""Cache lines of progress for each part: the steps that were begun, which mostly one thread accesses; and the steps
that are done, which all read."""

_WORDS = 8
"""64-bit words in a cache line."""

_PATIENCE = 64
"""How often a thread finds a part unfinished before it computes the part, if no thread has begun it."""

_MOST = 4096
"""The same if a thread has: some 50 microseconds."""

SLOTS = ("progress", "parts")
"""The slots of the progress, which is zero before the command runs, and of the number of parts."""


def progress_bytes(parts: int) -> int:
    """The size of the progress."""
    return 8 * LINES * _WORDS * parts


def each_step(k: Kernel, task: Task, begin: Val, end: Val, compute: Callable[[Val, Val], None]) -> None:
    """Emit all steps as the thread whose parts are those from `begin` up to `end`, of which there is at least one.

    `compute(part, step)` emits a part of a step, after all parts of the steps before it.
    """
    parts, own, steps = task.i64("parts"), end - begin, task.i64("steps")
    progress = task.view("progress", I64, LINES * _WORDS, _WORDS, 1)
    tries, behind, late = (k.view(k.scratch(I64, 1), I64) for _ in range(3))
    late.store(k.index(0))
    with k.loop(steps, nonempty=True) as step:
        patience = (late.load() < 1).select(k.index(_PATIENCE), 0)
        behind.store(k.index(0))
        # Nothing follows the last step, so no other thread's parts are needed.
        with k.loop((step + 1 < steps).select(parts, own), nonempty=True) as number:
            is_own, at = number < own, begin + number
            part = (at < parts).select(at, at - parts)
            begun, done = (progress[part, i, 0] for i in range(LINES))
            due = is_own.select(k.index(0), patience)
            tries.store(k.index(0))

            with k.repeat(partial(_is_due, done, step)):
                tried = tries.load()
                tries.store(tried + 1)
                with k.either(_takes(k, begun, step, tried, due)) as (takes, waits):
                    with takes:
                        compute(part, step)
                        done.raise_to(step + 1)
                        behind.store(is_own.select(behind.load(), 1))
                    with waits:
                        k.pause()
        late.store(behind.load())


def _is_due(done: View, step: Val) -> Val:
    return done.load_shared() <= step


def _takes(k: Kernel, begun: View, step: Val, tried: Val, due: Val) -> Val:
    """Whether this thread computes a part now, after it has found it unfinished `tried` times."""
    found = k.var(tried >= _MOST)
    with k.when(tried.eq(due)):
        found.set(begun.replace(step, step + 1))
    return found.get()
