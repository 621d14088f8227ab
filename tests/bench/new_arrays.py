"""Runs on another input array each time, as for the frames of a video: `Execution.set_input` and `execute`.

    python tests/bench/new_arrays.py MODEL... [--threads 1] [--rounds 25]

In each round an execution runs for about 20 ms on the same array, another one on four arrays in turn, and LiteRT's
interpreter on these after `set_tensor`. With one thread only its own processor time counts, which excludes other
processes. The figures are medians over the rounds: the time on other arrays, and the ratios of the other two times to
it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

import onert

_ARRAYS, _TURN = 4, 0.02


def _turn(run: Callable[[Any], object], given: Sequence[Any], count: int, clock: Callable[[], float]) -> float:
    """The mean seconds of a run."""
    start = clock()
    for at in range(count):
        run(given[at % len(given)])
    return (clock() - start) / count


def measured(path: str, threads: int, rounds: int) -> tuple[float, float, float]:
    """The milliseconds of a run on other arrays, and the ratios of a run on the same array and of LiteRT's to it."""
    from ai_edge_litert.interpreter import Interpreter

    program, rng = onert.compile(onert.load(path), num_threads=threads), np.random.default_rng(0)
    shapes = [(info.dtype.numpy, [1 if d is None else d for d in info.shape]) for info in program.inputs]
    given = [[rng.uniform(0, 1, shape).astype(dtype) for dtype, shape in shapes] for _ in range(_ARRAYS)]
    mine, same, peer = onert.Execution(program), onert.Execution(program), Interpreter(path, num_threads=threads)
    peer.allocate_tensors()
    at = [details["index"] for details in peer.get_input_details()]

    def run(execution: onert.Execution) -> Callable[[Any], None]:
        def once(arrays: Any) -> None:
            for position, array in enumerate(arrays):
                execution.set_input(position, array)
            execution.execute()

        return once

    def invoke(arrays: Any) -> None:
        for index, array in zip(at, arrays, strict=True):
            peer.set_tensor(index, array)
        peer.invoke()

    clock = time.thread_time if threads == 1 else time.perf_counter
    ways = ((run(mine), given), (run(same), given[:1]), (invoke, given))
    counts = [max(_ARRAYS, int(_TURN / max(_turn(call, arrays, 8, clock), 1e-6))) for call, arrays in ways]
    times: list[list[float]] = [[], [], []]
    for each in range(rounds):
        for way in (0, 1, 2) if each % 2 else (2, 1, 0):
            times[way].append(_turn(*ways[way], counts[way], clock))
    own, again, litert = map(np.array, times)
    return 1e3 * median(own), float(np.median(again / own)), float(np.median(litert / own))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=25)
    given = parser.parse_args()
    print("| model | other arrays ms | same array | LiteRT |\n|---|---:|---:|---:|")
    for path in given.models:
        own, again, litert = measured(path, given.threads, given.rounds)
        print(f"| {path.split('/')[-1].removesuffix('.tflite')} | {own:.3f} | {again:.2f} | {litert:.2f} |", flush=True)


if __name__ == "__main__":
    main()
