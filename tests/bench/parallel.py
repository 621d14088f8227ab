"""The Parallel executor against the Linear one: a row for each model, as in docs/executors.md.

    python tests/bench/parallel.py [--threads N] [--seconds S] [--branchy] [MODEL ...]

Without MODEL: all shared models, and packages with branches of small kernels (`branchy_models.py`); with `--branchy`
only the latter. The two alternate in rounds of a few milliseconds, in reverse order every other round. A time is the
minimum of a round, `speedup` is the median over the rounds of Linear's time to Parallel's, and `of minima` is the
ratio of the overall minima. `own plan` means: not Linear's. The first row is Linear against itself.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import onert

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from bench.stopwatch import fastest  # noqa: E402
from branchy_models import PACKAGES, real_ensemble  # noqa: E402
from shared_material import SHARED  # noqa: E402

ROUND_SECONDS = 0.005
Array = np.ndarray[Any, Any]
Call = Callable[[], None]


def inputs(program: onert.Program) -> list[Array]:
    """Random inputs; integers are small because they may be indices."""
    rng = np.random.default_rng(0)
    found: list[Array] = []
    for info in program.inputs:
        shape = [d or 1 for d in info.shape]
        kind = info.dtype.numpy
        drawn = rng.uniform(-1, 1, shape) if info.dtype.is_float else rng.integers(0, 2, shape)
        found.append(drawn.astype(kind))
    return found


def rounds(calls: list[Call], seconds: float) -> list[list[float]]:
    """The seconds of each call, as a list for each round."""
    once = max(min(fastest(call, 5) for call in calls), 1e-7)
    times = max(2, int(ROUND_SECONDS / once))
    found: list[list[float]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(found) < 5:
        order = range(len(calls)) if len(found) % 2 else reversed(range(len(calls)))
        measured = {at: fastest(calls[at], times) for at in order}
        found.append([measured[at] for at in range(len(calls))])
    return found


def row(name: str, package: onert.Package, options: argparse.Namespace, other: str = "Parallel") -> str:
    programs = [onert.compile(package, executor=e, num_threads=options.threads) for e in ("Linear", other)]
    calls, answers = [], []
    for program in programs:
        execution = onert.Execution(program)
        answers.append([array.tobytes() for array in execution.run(inputs(program)).values()])
        calls.append(execution.execute)
    if answers[0] != answers[1]:
        raise AssertionError(f"{name}: the executors' results differ bitwise")
    found = rounds(calls, options.seconds)
    ratio = statistics.median(linear / mine for linear, mine in found)
    linear, mine = (min(times) * 1e6 for times in zip(*found, strict=True))
    beside = sum(any(g.threads is not None for g in step.sequence.groups) for step in programs[1].main.steps)
    return f"| {name} | {linear:.1f} | {mine:.1f} | {ratio:.2f} | {linear / mine:.2f} | {'yes' if beside else ''} |"


def packages(options: argparse.Namespace) -> Iterator[tuple[str, onert.Package]]:
    if options.models:
        yield from ((path.stem, onert.load(path)) for path in options.models)
        return
    yield from ((name, make()) for name, make in PACKAGES.items())
    real = real_ensemble(SHARED / "models")
    if real is not None:
        yield "ensemble of real models", real
    if not options.branchy:
        files = (p for p in sorted((SHARED / "models").rglob("*")) if p.suffix in (".tflite", ".circle"))
        yield from ((path.stem, onert.load(path)) for path in files)


def main() -> int:
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("models", type=Path, nargs="*", metavar="MODEL")
    out.add_argument("--threads", type=int, default=2, metavar="N")
    out.add_argument("--seconds", type=float, default=2.0, metavar="S", help="for each model")
    out.add_argument("--branchy", action="store_true")
    options = out.parse_args()
    print("| model | Linear us | Parallel us | speedup | of minima | own plan |")
    print("|---|---:|---:|---:|---:|---|")
    for at, (name, package) in enumerate(packages(options)):
        try:
            if at == 0:
                print(row(f"{name}, Linear twice", package, options, "Linear"), flush=True)
            print(row(name, package, options), flush=True)
        except onert.OnertError as error:
            print(f"{name}: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
