"""Run each item, or each batch of items, as many times as the options say."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

import onert
from onert.backend import Program
from onert.exec import observers
from onert.ir import Array, dequantize
from onert.ir.value import Value
from onert.tools import inputs
from onert.tools.reports.measure import Measurements
from onert.tools.reports.progress import Progress

from .feeding import is_random


@frozen(eq=False)
class Outcome(Value):
    """The inputs and outputs of an item."""

    given: tuple[inputs.InputValue, ...]
    outputs: list[Array]


def outcomes(
    options: argparse.Namespace,
    execution: onert.Execution,
    feed: inputs.Feed,
    batch: int,
    measured: Measurements,
    progress: Progress,
) -> Iterator[Outcome]:
    """Run one item after another. Only the first one has warm-up runs. A model's state is reset before each item,
    unless the item continues the previous one."""
    measured.batch = batch
    steps = None if feed.count is None else options.num_runs * -(-feed.count // batch) + options.warmup_runs
    progress.phase("running", steps)
    groups = inputs.batches(feed.items, batch)
    for number, group in enumerate(groups):
        if number and not feed.continuous:
            execution.reset_variables()
        arrays = [given.array for given in group[0]]
        if batch > 1:
            assert feed.position is not None or len(group) == 1
            position = _batched(execution, feed, group)
            arrays = inputs.together(group, position, batch)
            execution.set_input_shape(position, arrays[position].shape)
        _rounds(options, execution, arrays, measured, progress, warm=not number)
        outputs = [execution.get_output(i) for i in range(len(execution.program.outputs))]
        if options.force_float:
            infos = execution.program.outputs
            outputs = [
                array if info.quantization is None else dequantize(array, info.quantization)
                for info, array in zip(infos, outputs, strict=True)
            ]
        if batch == 1:
            yield Outcome(tuple(evolve(one, array=a) for one, a in zip(group[0], arrays, strict=True)), outputs)
            continue
        for item, own in zip(group, inputs.apart(outputs, execution.program.outputs, batch, len(group)), strict=True):
            yield Outcome(item, own)


def _batched(execution: onert.Execution, feed: inputs.Feed, group: list[tuple[inputs.InputValue, ...]]) -> int:
    """The batched input: the one with several items, else the one with a picture, else the first."""
    if feed.position is not None:
        return feed.position
    return next((i for i, one in enumerate(group[0]) if one.picture is not None), 0)


def _rounds(
    options: argparse.Namespace,
    execution: onert.Execution,
    arrays: list[Array],
    measured: Measurements,
    progress: Progress,
    *,
    warm: bool,
) -> None:
    """Warm-up runs (if `warm`), then measured runs. Random inputs are drawn again for each run unless fixed."""
    fresh = is_random(options) and options.num_runs > 1
    rng = np.random.default_rng(options.seed + 1)
    before = options.warmup_runs if warm else 0
    for i in range(before + options.num_runs):
        if i and fresh:
            arrays[:] = [inputs.random(info, rng) for info in execution.program.inputs]
        for position, array in enumerate(arrays):
            execution.set_input(position, array)
        if (i or not warm) and options.run_delay > 0:
            time.sleep(options.run_delay / 1e6)
        start = time.perf_counter()
        execution.execute()
        if i >= before:
            measured.runs.append((time.perf_counter() - start) * 1e3)
        progress.advance()


def record_ranges(options: argparse.Namespace, program: Program, used: list[Array], folder: Path) -> str:
    """Run only to record the ranges of tensors. Returns a message with the path of the file."""
    path = folder / "minmax.json"
    rng = np.random.default_rng(options.seed + 2)
    with onert.Execution(program, observers=(observers.MinMax(path),)) as execution:
        for i in range(options.minmax_runs):
            fresh = i and is_random(options)
            execution.run([inputs.random(info, rng) for info in program.inputs] if fresh else used)
    return f"the ranges of {options.minmax_runs} runs are written to {path}"
