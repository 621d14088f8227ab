"""Measured runs of a model: their times, the time of each fusion group, and when each one ran."""

from __future__ import annotations

from functools import partial
from statistics import median
from threading import get_native_id
from time import perf_counter, perf_counter_ns
from typing import Any

import numpy as np

import onert
from onert.backend import Program, Tensors
from onert.backend.tasks import thread_name
from onert.exec.exclusive import Serial
from onert.exec.observers import MemoryTimeline, Observer, Work
from onert.ir import OnertError
from onert.tools.inputs.arrays import random

SECONDS = 0.5
"""How long runs are measured. There are at least three and at most `MOST_RUNS`."""
MOST_RUNS = 200
WATCHED = 5
"""Runs in which each piece of work is timed; the median is reported."""
MOST_SLICES = 20_000


_Slice = tuple[Work, int, int, int]
"""A piece of work, its thread, and its start and end in nanoseconds."""


class Slices(Observer):
    """Records every piece of work of every run, with its thread."""

    def __init__(self) -> None:
        self.runs: list[list[_Slice]] = []
        self.spans: list[tuple[int, int]] = []
        self.threads: dict[int, str] = {}
        self._turns = Serial()

    def run_begins(self, program: Program, tensors: Tensors) -> None:
        self.runs.append([])

    def ends(self, work: Work, tensors: Tensors, start: int, end: int) -> None:
        self._turns(partial(self._add, work, get_native_id(), thread_name(), start, end))

    def _add(self, work: Work, thread: int, name: str, start: int, end: int) -> None:
        self.threads.setdefault(thread, name)
        if len(self.runs[-1]) < MOST_SLICES:
            self.runs[-1].append((work, thread, start, end))

    def run_ends(self, program: Program, start: int, end: int, error: BaseException | None) -> None:
        self.spans.append((start, end))


def measured(program: Program, seed: int = 0) -> dict[str, Any]:
    """Times of runs on random inputs in microseconds: of whole unobserved runs, and of each piece in observed runs.

    If a run fails, as may happen with random inputs, the result is only `error` with the reason.
    """
    rng = np.random.default_rng(seed)
    try:
        times = _times(program, rng)
        slices, memory = Slices(), MemoryTimeline()
        watched = _observed(program, rng, slices, memory)
    except OnertError as error:
        return {"error": str(error)}
    ordered = sorted(times)
    return {
        "runs": len(times),
        "median_us": median(ordered),
        "least_us": ordered[0],
        "p90_us": ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))],
        "seed": seed,
        **_pieces(program, slices),
        "memory": _samples(slices, watched, memory),
    }


def _execution(program: Program, rng: np.random.Generator, *observers: Observer) -> onert.Execution:
    """An execution with random inputs. Unknown dimensions are set to 1."""
    execution = onert.Execution(program, observers=observers)
    for position, info in enumerate(program.inputs):
        if any(d is None for d in info.shape):
            execution.set_input_shape(position, [1 if d is None else d for d in info.shape])
    for position, info in enumerate(execution.program.inputs):
        execution.set_input(position, random(info, rng))
    return execution


def _times(program: Program, rng: np.random.Generator) -> list[float]:
    found: list[float] = []
    with _execution(program, rng) as execution:
        execution.execute()
        end = perf_counter() + SECONDS
        while len(found) < 3 or (perf_counter() < end and len(found) < MOST_RUNS):
            start = perf_counter_ns()
            execution.execute()
            found.append((perf_counter_ns() - start) / 1e3)
    return found


def _observed(program: Program, rng: np.random.Generator, slices: Slices, memory: MemoryTimeline) -> list[_Slice]:
    """Record the pieces of some runs in `slices`, and memory use in one more run. Returns that run's pieces."""
    with _execution(program, rng, slices) as execution:
        for _ in range(WATCHED + 1):
            execution.execute()
    del slices.runs[0], slices.spans[0]
    kept = list(slices.runs), list(slices.spans)
    with _execution(program, rng, memory, slices) as execution:
        execution.execute()
        memory.samples.clear()
        execution.execute()
    watched = slices.runs[-1]
    slices.runs, slices.spans = kept
    return watched


def _pieces(program: Program, slices: Slices) -> dict[str, Any]:
    """The pieces with their median times, and the slices of the run with the median time."""
    spans, middle = slices.spans, _middle(slices)
    index = {id(routine): at for at, routine in enumerate(program.routines)}
    order: dict[tuple[int, tuple[int, ...]], int] = {}
    works: list[Work] = []
    totals: list[list[int]] = []
    for run in slices.runs:
        sums: dict[int, int] = {}
        for work, _, start, end in run:
            number = order.setdefault((id(work.routine), work.operations), len(works))
            if number == len(works):
                works.append(work)
                totals.append([])
            sums[number] = sums.get(number, 0) + end - start
        for number, total in sums.items():
            totals[number].append(total)
    zero = spans[middle][0]
    threads = list(slices.threads)
    return {
        "pieces": [
            {
                "label": work.label,
                "backend": work.backend,
                "subgraph": index.get(id(work.routine), program.entry),
                "step": work.step,
                "operations": list(work.operations),
                "flops": work.flops,
                "bytes": work.nbytes,
                "us": median(totals[number]) / 1e3,
                "calls": any(work.routine.subgraph.operations[at].op.subgraphs for at in work.operations),
            }
            for number, work in enumerate(works)
        ],
        "threads": [slices.threads[thread] or f"thread {at}" for at, thread in enumerate(threads)],
        "slices": [
            [order[id(work.routine), work.operations], threads.index(thread), (start - zero) / 1e3, (end - start) / 1e3]
            for work, thread, start, end in slices.runs[middle]
        ],
        "observed_us": (spans[middle][1] - zero) / 1e3,
        "left_out": sum(len(run) >= MOST_SLICES for run in slices.runs) > 0,
    }


def _middle(slices: Slices) -> int:
    """The index of the run with the median time."""
    spans = slices.spans
    return sorted(range(len(spans)), key=lambda at: spans[at][1] - spans[at][0])[len(spans) // 2]


def _samples(slices: Slices, watched: list[_Slice], memory: MemoryTimeline) -> list[list[Any]]:
    """Bytes in use over time, in microseconds from the start of the run whose slices are reported.

    The samples come from another run. If both ran the same pieces, their times are interpolated to match.
    """
    run, zero = slices.runs[_middle(slices)], slices.spans[_middle(slices)][0]
    times = np.array([sample.time for sample in memory.samples], np.float64)
    theirs = sorted(time for piece in watched for time in piece[2:])
    own = sorted(time for piece in run for time in piece[2:])
    if theirs and len(theirs) == len(own):
        times = np.interp(times, theirs, own)
    elif len(times):
        times = times - times[0] + zero
    moved = ((times - zero) / 1e3).tolist()
    return [[sample.space, time, sample.nbytes] for sample, time in zip(memory.samples, moved, strict=True)]
