"""A decoder step with KV caches of different lengths: times, and the ratio of longest to shortest, in Markdown.

    python tests/bench/decoder.py [--positions 256 4096] [--heads 4] [--size 64] [--rounds 30] [--threads 1]

Attention covers a window of the same size for every cache length (tests/decoding.py), so the length matters only if the
caches are copied. The lengths are measured alternately in rounds of a few milliseconds; the ratio is the median of the
rounds' ratios. With one thread only its own processor time counts, which excludes other processes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter_ns, sleep, thread_time_ns

import numpy as np

import onert
from onert.ir import Package

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import decoding

ROUND = 5_000_000
"""Nanoseconds of a round."""


def steps(make: Callable[..., Package], positions: int, given: argparse.Namespace) -> Callable[[], object]:
    """A function that runs one step in process."""
    package = make(positions, heads=given.heads, n=given.size)
    execution = onert.Execution(onert.compile(package, num_threads=given.threads))
    inputs = decoding.inputs(5, given.heads, given.size)
    for name, array in inputs.items():
        execution.set_input(name, array)
    if make is decoding.with_ends:
        for number, name in enumerate(("keys_in", "values_in"), 2):
            cache = np.zeros((1, positions, given.heads, given.size), np.float32)
            execution.set_input(name, cache)
            execution.set_output(number, cache)
    return execution.execute


def bundled(make: Callable[..., Package], positions: int, given: argparse.Namespace) -> Callable[[], object]:
    """A function that runs one step of a bundle."""
    folder = Path(tempfile.mkdtemp())
    onert.bundle(make(positions, heads=given.heads, n=given.size), folder, threads=given.threads)
    loaded = onert.load_bundle(folder)
    loaded.run(decoding.inputs(5, given.heads, given.size))
    entry = loaded.entries[0]
    return lambda: loaded.call(entry)


def timed(call: Callable[[], object], count: int, clock: Callable[[], int]) -> float:
    """The mean time of `count` calls in microseconds."""
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count / 1e3


def row(name: str, calls: Sequence[Callable[[], object]], given: argparse.Namespace) -> str:
    """A row of the table: microseconds for each cache length, and the ratio of the last to the first."""
    clock = thread_time_ns if given.threads == 1 else perf_counter_ns
    counts = [max(1, round(ROUND / 1e3 / timed(call, 20, clock))) for call in calls]
    found = [
        [timed(call, count, clock) for call, count in zip(calls, counts, strict=True)] for _ in range(given.rounds)
    ]
    times = " | ".join(f"{median(each):.1f}" for each in zip(*found, strict=True))
    return f"| {name} | {times} | {median(each[-1] / each[0] for each in found):.2f} |"


def table(given: argparse.Namespace) -> Iterator[str]:
    yield "| caches | " + " | ".join(f"{positions} positions, us" for positions in given.positions) + " | ratio |"
    yield "|---|" + "---:|" * (len(given.positions) + 1)
    rows = [
        ("resource variables", decoding.with_resources, steps),
        ("variable tensors", decoding.with_variables, steps),
        ("variable tensors, a row scattered", partial(decoding.with_variables, put=decoding.put_slices), steps),
        ("variable tensors, elements scattered", partial(decoding.with_variables, put=decoding.put_elements), steps),
        ("variable tensors, by StableHLO's scatter", partial(decoding.with_variables, put=decoding.put_by_hlo), steps),
        ("inputs and outputs in one memory", decoding.with_ends, steps),
        ("variable tensors of a bundle", decoding.with_variables, bundled),
    ]
    for name, make, prepared in rows:
        calls = [prepared(make, positions, given) for positions in given.positions]
        sleep(2)  # until another thread has written the program to the cache
        yield row(name, calls, given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, nargs="+", default=[256, 4096])
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    for line in table(parser.parse_args()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
