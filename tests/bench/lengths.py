"""The first result after a new length against a repeated one, for every shared model with an open dimension.

    python tests/bench/lengths.py [--threads 1] [--count 24] [--mixed | --between] [NAME ...]

Each length is run twice, each time with newly created arrays: the first run switches the execution to a new length, the
second repeats it. Lengths grow by one, from 2 on, after `count` unmeasured ones, so each is the longest so far and
touches memory that no run has touched. With `--mixed` they come in random order after all of them were run once. With
`--between` two lengths alternate, so each run that is not a repetition returns to the other length. New executions
repeat this until the runs of a model have taken half a second. Times are medians, ratios the medians of the pairs'
ratios. NAME selects the models whose file name contains it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import onert

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dynamic_models import ALL, MODELS, Dynamic

_SECONDS = 0.5


def measured(model: Dynamic, threads: int, count: int, order: str) -> tuple[float, float, float]:
    """The milliseconds of a first run and of a repeated run, and the ratio of the first to the second."""
    program = onert.compile(onert.load(MODELS / model.file), num_threads=threads)
    count = min(count, model.most // 2)
    random = np.random.default_rng(0)
    pairs: list[tuple[float, float]] = []

    def run(execution: onert.Execution, lengths: Iterable[int]) -> list[tuple[float, float]]:
        found = []
        for length in lengths:
            times = []
            for seed in range(2):
                inputs = model.inputs(program.inputs, length, seed)
                start = time.perf_counter()
                execution.run(inputs)
                times.append(time.perf_counter() - start)
            found.append((times[0], times[1]))
        return found

    while sum(map(sum, pairs)) < _SECONDS:
        execution = onert.Execution(program)
        new = run(execution, range(2, 2 + 2 * count))[count:]
        if order == "mixed":
            new = run(execution, random.permutation(np.arange(2, 2 + 2 * count)).tolist())
        elif order == "between":
            new = run(execution, [1 + count, 1 + 2 * count] * count)
        pairs += new
    first, again = (1e3 * float(np.median(times)) for times in zip(*pairs, strict=True))
    return first, again, float(np.median([a / b for a, b in pairs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=24)
    order = parser.add_mutually_exclusive_group()
    for name in ("mixed", "between"):
        order.add_argument(f"--{name}", dest="order", action="store_const", const=name, default="growing")
    chosen = parser.parse_args()
    print("| model and dimension | new length ms | same length again ms | ratio |\n|---|---:|---:|---:|")
    for model in ALL:
        if (MODELS / model.file).is_file() and (not chosen.names or any(n in model.file for n in chosen.names)):
            first, again, ratio = measured(model, chosen.threads, chosen.count, chosen.order)
            print(f"| {model.name} | {first:.3f} | {again:.3f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
