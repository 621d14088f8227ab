"""Compares two checkouts of onert, each in its own environment: run and compile times, as a Markdown table.

    python tests/bench/checkouts.py BEFORE AFTER MODEL... [--threads 1,2] [--rounds 40] [--compilations 3]

BEFORE and AFTER are the interpreters (`.venv/bin/python`) of environments in which a checkout is installed. For each
model and number of threads the two run alternately, some 20 ms each. A round's time is the minimum over its calls, as
in `onert_bench`, and the ratio is the median over the rounds of time before / time after. Compile times are cold (empty
cache), in alternating processes: the median user time between loading the model and having a program. The last line
shows the median and the minimum of the ratios.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

PREPARE = """
import json, os, resource, sys, time
import numpy as np
import onert
path, threads = sys.argv[1], int(sys.argv[2])
package = onert.load(path)
def spent():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime
start = spent()
program = onert.compile(package, num_threads=threads)
compiled = spent() - start
"""
RUN = (
    PREPARE
    + """
rng = np.random.default_rng(0)
execution = onert.Execution(program)
for at, info in enumerate(program.inputs):
    dtype = info.dtype.numpy
    shape = tuple(1 if d is None else d for d in info.shape)
    real = np.issubdtype(dtype, np.floating)
    execution.set_input(at, (rng.uniform(-1, 1, shape) if real else rng.integers(0, 2, shape)).astype(dtype))
def least(seconds):
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        execution.execute()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best
least(0.2)
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(least(float(line))), flush=True)
"""
)
COMPILE = PREPARE + "print(json.dumps(compiled), flush=True)\n"
ROUND = 0.02
"""Seconds of a round."""


def started(python: str, text: str, model: Path, threads: int, cache: Path) -> subprocess.Popen[str]:
    """Start a process in one environment, with its own cache."""
    surroundings = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.Popen(
        [python, "-c", text, str(model), str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings,
        cwd=cache,
    )


def _said(process: subprocess.Popen[str]) -> str:
    """The next line printed by a process. Raises SystemExit if it has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"a process ended with status {process.wait()}")
    return line.strip()


def rounds_of(pythons: Sequence[str], model: Path, threads: int, rounds: int) -> list[tuple[float, ...]]:
    """The run times of both environments in seconds, for each round."""
    found: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        caches = [Path(folder, str(at)) for at in range(len(pythons))]
        for cache in caches:
            cache.mkdir()
        both = [started(p, RUN, model, threads, cache) for p, cache in zip(pythons, caches, strict=True)]
        try:
            for process in both:
                _said(process)
            for turn in range(rounds):
                times = [0.0] * len(both)
                for at in range(len(both)) if turn % 2 == 0 else reversed(range(len(both))):
                    stdin = both[at].stdin
                    assert stdin is not None
                    print(ROUND, file=stdin, flush=True)
                    times[at] = float(_said(both[at]))
                found.append(tuple(times))
        finally:
            for process in both:
                process.kill()
                process.communicate()
    return found


def compilations(pythons: Sequence[str], model: Path, count: int) -> list[tuple[float, ...]]:
    """The user time in seconds that each environment spends compiling a model, for each of `count` repetitions."""
    found: list[tuple[float, ...]] = []
    for _ in range(count):
        times = []
        for python in pythons:
            with tempfile.TemporaryDirectory() as folder:
                process = started(python, COMPILE, model, 1, Path(folder))
                times.append(float(_said(process)))
                process.communicate()
        found.append(tuple(times))
    return found


def _rows(given: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Yield the table's rows as they are measured, each with its ratio."""
    pythons = (given.before, given.after)
    for model in given.models:
        compiled = compilations(pythons, model, given.compilations)
        costs = [f"{1e3 * median(side):.0f}" for side in zip(*compiled, strict=True)] or ["", ""]
        for threads in given.threads:
            times = rounds_of(pythons, model, threads, given.rounds)
            ratio = median(before / after for before, after in times)
            before, after = (1e3 * median(side) for side in zip(*times, strict=True))
            yield (
                f"| {model.stem} | {threads} | {before:.3f} | {after:.3f} | {ratio:.3f} | {' | '.join(costs)} |",
                ratio,
            )
            costs = ["", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("models", nargs="+", type=lambda text: Path(text).absolute())
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--compilations", type=int, default=3)
    given = parser.parse_args()
    print("| model | threads | before ms | after ms | speedup | compile before ms | after ms |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    ratios = []
    for row, ratio in _rows(given):
        print(row, flush=True)
        ratios.append(ratio)
    print(f"\nmedian {median(ratios):.3f}, least {min(ratios):.3f}", file=sys.stderr)


if __name__ == "__main__":
    main()
