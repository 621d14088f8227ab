"""The first result after a new length against a repeated one, for every shared model with an open dimension.

    python tests/bench/lengths.py [--threads 1] [--count 24] [--mixed | --between] [NAME ...]

Each length is run twice, each time with newly created arrays: the first run switches the execution to a new length, the
second repeats it. Lengths grow by one, from 2 on, after `count` unmeasured ones, so each is the longest so far and
touches memory that no run has touched. With `--mixed` they come in random order after all of them were run once. With
`--between` two lengths alternate, so each run that is not a repetition returns to the other length. The models take
turns in nine short rounds, so that other processes that are busy for some seconds do not decide about one model; in
each round new executions repeat this until the runs of a model have taken 60 ms. Times are medians of all rounds,
ratios the medians of the pairs' ratios. NAME selects the models whose file name contains it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import onert
from onert.backend import Program

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dynamic_models import MODELS, Dynamic, named, options

_ROUNDS = 9
_SECONDS = 0.06
"""The least time that a model's runs take in a round."""

Pairs = list[tuple[float, float]]
"""The seconds of a first and of a repeated run, for each length."""


def a_round(model: Dynamic, program: Program, count: int, order: str) -> Pairs:
    """Run a model for one round."""
    count = min(count, model.most // 2)
    random = np.random.default_rng(0)
    pairs: Pairs = []

    def run(execution: onert.Execution, lengths: Iterable[int]) -> Pairs:
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
    return pairs


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--count", type=int, default=24)
    order = parser.add_mutually_exclusive_group()
    for name in ("mixed", "between"):
        order.add_argument(f"--{name}", dest="order", action="store_const", const=name, default="growing")
    chosen = parser.parse_args()
    models = named(chosen.names)
    programs = [onert.compile(onert.load(MODELS / m.file), num_threads=chosen.threads) for m in models]
    pairs: list[Pairs] = [[] for _ in models]
    for number in range(_ROUNDS):
        print(f"round {number + 1} of {_ROUNDS}", file=sys.stderr)
        for model, program, found in zip(models, programs, pairs, strict=True):
            found += a_round(model, program, chosen.count, chosen.order)
    print("| model and dimension | new length ms | same length again ms | ratio |\n|---|---:|---:|---:|")
    for model, found in zip(models, pairs, strict=True):
        first, again = (1e3 * float(np.median(times)) for times in zip(*found, strict=True))
        ratio = float(np.median([a / b for a, b in found]))
        print(f"| {model.name} | {first:.3f} | {again:.3f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
