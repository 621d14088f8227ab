"""Inputs of another size for every run: `onert.Interpreter` against LiteRT's, for the shared TFLite models with an open
batch.

    python tests/bench/resizing.py [--threads 1] [--rounds 24] [NAME ...]

A run resizes the input, allocates tensors, sets the input, invokes and reads the output. In each round all interpreters
run the same eight batches, drawn from 1 to 16, in random order; the figure is the median of the rounds' ratios. In the
last column onert runs against a second interpreter of its own, which must give 1.00. NAME selects the models whose file
name contains it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import onert

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dynamic_models import MODELS, Dynamic, named, options

_RUNS, _MOST = 8, 16


def _seconds(interpreter: Any, batches: Sequence[np.ndarray[Any, Any]]) -> float:
    """The time of one run for each of the batches."""
    (given,) = interpreter.get_input_details()
    output = interpreter.get_output_details()[0]["index"]
    start = time.perf_counter()
    for batch in batches:
        interpreter.resize_tensor_input(given["index"], batch.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(given["index"], batch)
        interpreter.invoke()
        interpreter.get_tensor(output)
    return time.perf_counter() - start


def measured(model: Dynamic, threads: int, rounds: int) -> tuple[float, float, float]:
    """The milliseconds of one run, the ratio of LiteRT's time to it, and that of another of onert's interpreters."""
    from ai_edge_litert.interpreter import Interpreter

    path, rng = str(MODELS / model.file), np.random.default_rng(0)
    own, same = (onert.Interpreter(path, num_threads=threads) for _ in range(2))
    peers = [own, same, Interpreter(path, num_threads=threads)]
    (given,) = own.get_input_details()
    rest, dtype = given["shape"][1:], np.dtype(given["dtype"])
    times: list[list[float]] = [[], [], []]
    for at in range(-3, rounds):
        sizes = rng.integers(1, min(model.most, _MOST), _RUNS, endpoint=True)
        batches = [rng.integers(0, 100, (n, *rest)).astype(dtype) for n in sizes]
        for peer in rng.permutation(3):
            spent = _seconds(peers[peer], batches)
            if at >= 0:  # the first rounds compile
                times[peer].append(spent)
    first, second, litert = map(np.array, times)
    return 1e3 * float(np.median(first)) / _RUNS, float(np.median(litert / first)), float(np.median(second / first))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=24)
    given = parser.parse_args()
    print(f"{'model':40} {'onert ms':>10} {'LiteRT / onert':>15} {'onert / onert':>14}")
    for model in named(given.names):
        if model.file.endswith(".tflite"):
            own, litert, same = measured(model, given.threads, given.rounds)
            print(f"{model.name:40} {own:10.3f} {litert:15.2f} {same:14.2f}", flush=True)


if __name__ == "__main__":
    main()
