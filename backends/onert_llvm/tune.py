"""Auto-tuning: measures alternatives to the cost models' choices on the real shapes and stores the winners.

Kernels are measured one group of operations at a time, on random tensors. An alternative must beat the current choice
in short alternating rounds, so that other load or a changing clock affects both equally. Finally the whole sequence is
measured with and without the new choices; they are discarded unless it is faster with them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Protocol

import numpy as np
from attrs import evolve, frozen

from onert.backend import Sequence as Operations
from onert.backend import Settings, Tensor, Tensors
from onert.backend.alone import Alone
from onert.backend.cache import Cache, default_directory
from onert.ir import Array, Operand
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.shape import static
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import Value
from onert_llvm.runtime.native_kernel import NativeKernel
from onert_llvm.schedule.choices import Choices

from .compile import generate as compiled

Found = Mapping[str, str]
"""The text of the chosen alternative, by place."""
ROUNDS, FEWEST = 9, 3
"""Rounds of a comparison, and the number after which a clear loser is dropped."""
WHOLE_ROUNDS, WHOLE_CLEARLY = 21, 1.01
"""Rounds that compare the whole sequence, and the speed-up that the new choices must reach."""
CLEARLY, MOSTLY = 1.03, 3 / 4
"""The median speed-up that an alternative must reach, and the fraction of rounds in which it must be faster."""
ROUND = 2_000_000
"""Length of a round in nanoseconds; a round has at least one run."""
FOR_KERNELS = 0.85
"""The fraction of the time for single kernels; the rest is for the whole sequence."""
Clock = Callable[[], float]


class Trial(Protocol):
    """Something built with some choices. `offered` lists the alternatives by place, the cost model's choice first."""

    @property
    def offered(self) -> Mapping[str, tuple[str, ...]]: ...

    def measure(self) -> float:
        """The time of one run in a short round, in any unit."""


Site = Callable[[Found], Trial]
"""What is tuned: a function that builds it with given choices."""


@frozen
class Outcome(Value):
    """The alternatives to use, and the cost model's choice for each place where another was faster."""

    found: Found
    replaced: Found


def search(sites: Sequence[Site], known: Found, seconds: float, clock: Clock) -> Outcome:
    """Measure the places that are not `known` yet, slowest first, until time runs out.

    A place is settled once all its alternatives were measured, or if one had won when time ran out.
    """
    found, replaced, end = dict(known), dict[str, str](), clock() + seconds
    timed: list[tuple[float, int]] = []
    for number, site in enumerate(sites):
        if clock() >= end:
            break
        trial = site(found)
        if any(place not in found for place in trial.offered):
            timed.append((-trial.measure(), number))
    for _, number in sorted(timed):
        if not _tune_site(sites[number], found, replaced, end, clock):
            break
    return Outcome(found, replaced)


def _tune_site(site: Site, found: dict[str, str], replaced: dict[str, str], end: float, clock: Clock) -> bool:
    """Add the best alternative of each new place of a site to `found`; False if time ran out first."""
    best = site(found)
    while (place := next((place for place in best.offered if place not in found), None)) is not None:
        model, *others = best.offered[place]
        taken, over = model, False
        for text in others:
            trial = None if clock() >= end else site({**found, place: text})
            won = None if trial is None else is_faster(trial, best, end, clock)
            if trial is not None and won:
                taken, best = text, trial
            if over := won is None:
                break
        if not over or taken != model:
            found[place] = taken
        if taken != model:
            replaced[place] = model
        if over:
            return False
    return True


def is_faster(
    trial: Trial, other: Trial, end: float, clock: Clock, clearly: float = CLEARLY, rounds: int = ROUNDS
) -> bool | None:
    """Whether a trial beats another beyond noise; None if time runs out before that is clear."""
    ratios: list[float] = []
    for number in range(rounds):
        if clock() >= end:
            return None
        if number % 2:
            mine, its = trial.measure(), other.measure()
        else:
            its, mine = other.measure(), trial.measure()
        ratios.append(its / max(mine, 1e-9))
        if len(ratios) == FEWEST and median(ratios) < 1:
            return False
    return median(ratios) >= clearly and sum(ratio > 1 for ratio in ratios) >= MOSTLY * rounds


def choices_to_store(outcome: Outcome, whole: Site, known: Found, end: float, clock: Clock) -> Found:
    """The choices to store. If the whole sequence is not faster than with `known`, the model's choices are restored; if
    time ran out before that comparison, replaced places are left out.
    """
    if not outcome.replaced:
        return outcome.found
    won = is_faster(whole(outcome.found), whole(known), end, clock, WHOLE_CLEARLY, WHOLE_ROUNDS)
    if won is None:
        return {place: text for place, text in outcome.found.items() if place not in outcome.replaced}
    return outcome.found if won else {**outcome.found, **outcome.replaced}


def generate(
    operations: Operations, settings: Settings, fingerprint: str, clock: Clock = time.monotonic
) -> NativeKernel:
    """The kernel of a sequence, built with the choices that are stored for its kernels.

    First, if a sequence can run on any elements, new places are measured for `settings.tune` seconds and their choices
    stored. A sequence with symbolic sizes has no choices.
    """
    store = Cache(default_directory(os.environ))
    make = partial(compiled, settings=evolve(settings, tune=None), store=store)
    if settings.tune is None or not _is_static(operations):
        return make(operations)
    key = Cache.key("choices 1", fingerprint, str(settings.num_threads), settings.precision)
    known = parse_choices(store.load(key))
    found: Found = known
    if settings.tune > 0 and _is_plain(operations):
        end = clock() + settings.tune
        tensors = _tensors(operations)
        groups = [evolve(operations, groups=(evolve(group, threads=None),)) for group in operations.groups]
        sites = [partial(MeasuredKernel, group, make, tensors) for group in groups]
        outcome = search(sites, known, FOR_KERNELS * settings.tune, clock)
        found = choices_to_store(outcome, partial(MeasuredKernel, operations, make, tensors), known, end, clock)
        if found != known:
            # Another process may have stored choices meanwhile; for the same places, the new ones are just as good.
            kept = {**parse_choices(store.load(key)), **found}
            store.store(key, format_choices(kept), label=f"choices\t{len(kept)} for {settings.num_threads} threads")
    return make(operations, choices=Choices(found))


def _is_static(operations: Operations) -> bool:
    """Whether all sizes are numbers."""
    shapes = (operations.subgraph.type(i).shape for i in _used(operations))
    return all(size is not None and not is_symbolic(size) for shape in shapes for size in shape)


def _used(operations: Operations) -> list[int]:
    return sorted({i for operation in operations.body for i in (*operation.used, *operation.outputs)})


def _is_plain(operations: Operations) -> bool:
    """Whether a sequence can run on any elements: it has no loops, branches or in-place updates."""
    return not any(isinstance(operation.op, Loop | Branch) or operation.op.overwrites for operation in operations.body)


def _tensors(operations: Operations) -> Tensors:
    """Memory for every stored operand: random floats and bytes, zeros for other types."""
    graph, rng = operations.subgraph, np.random.default_rng(0)
    unstored = {i for group in operations.groups for i in group.unstored}
    arrays = {i: _elements(graph.operands[i], rng) for i in _used(operations) if i not in unstored}
    for operation in operations.body:
        if operation.op.shares and {operation.used[0], operation.outputs[0]} <= arrays.keys():
            shape = static(graph.type(operation.outputs[0]).shape)
            arrays[operation.outputs[0]] = arrays[operation.used[0]].reshape(shape)
    return Tensors({i: Tensor(graph.type(i), array) for i, array in arrays.items()})


def _elements(operand: Operand, rng: np.random.Generator) -> Array:
    if operand.data is not None:
        return operand.data.array
    type_ = operand.known
    shape, dtype = static(type_.shape), type_.dtype.numpy
    if type_.dtype.is_float:
        return rng.uniform(-1, 1, shape).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    return np.zeros(shape, dtype)


class MeasuredKernel:
    """A sequence's kernel, built with some choices and bound to tensors."""

    def __init__(
        self, operations: Operations, make: Callable[..., NativeKernel], tensors: Tensors, taken: Found
    ) -> None:
        choices = Choices(taken)
        self.run = make(operations, choices=choices).bind(tensors, Alone())
        self.offered = choices.offered

    def measure(self) -> float:
        """Nanoseconds per run, averaged over a round, after one warm-up run."""
        self.run()
        runs, start = 0, time.perf_counter_ns()
        while (now := time.perf_counter_ns()) < start + ROUND or not runs:
            self.run()
            runs += 1
        return (now - start) / runs


def parse_choices(payload: bytes | memoryview | None) -> dict[str, str]:
    """Read choices as written by `format_choices`; malformed lines are ignored."""
    lines = b"" if payload is None else bytes(payload)
    pairs = (line.split("\t") for line in lines.decode("utf-8", "replace").split("\n"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def format_choices(found: Found) -> bytes:
    """Choices as text, one per line."""
    return "\n".join(f"{place}\t{text}" for place, text in sorted(found.items())).encode()
