"""Sizes and latency of bundles, one row for each model, as in docs/bundles.md.

    python tests/bench/bundles.py [--cpu native] [--rounds N] MODEL...

`text` is the object's code size and `weights` that of the constants file. Latency compares the linked C program with an
in-process run of the same code on one thread: the minimum over all rounds for each, and the median of the rounds'
ratios. With --rounds 0 nothing is run.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.stopwatch import fastest

import onert
from onert.bundle.description import read
from onert.bundle.variables import Role

HARNESS = Path(__file__).resolve().parents[1] / "bundle" / "run.c"
ROUND_SECONDS = 0.2
Array = np.ndarray[Any, Any]


def text_bytes(path: Path) -> int:
    """The size of an object's code and read-only data, as reported by `size`."""
    printed = subprocess.run(["size", str(path)], capture_output=True, text=True, check=True).stdout
    return int(printed.splitlines()[1].split()[0])


def row(model: Path, options: argparse.Namespace, folder: Path) -> str:
    package = onert.load(model)
    files = onert.bundle(package, folder, name="model", target=options.target, cpu=options.cpu)
    cells = [model.stem, text_bytes(files.paths["o"]), files.constants, files.mutables, files.activations]
    if options.rounds:
        cells += [f"{value:.3f}" for value in latency(package, folder, options.rounds)]
    return "| " + " | ".join(map(str, cells)) + " |"


def latency(package: onert.Package, folder: Path, rounds: int) -> tuple[float, float, float]:
    """The best times in ms of the linked program and of the in-process run, and their median ratio."""
    program = onert.compile(package, num_threads=1)
    execution = onert.Execution(program)
    rng = np.random.default_rng(0)
    description = read(folder / "model.h")
    area = np.zeros(description.mutables, np.uint8)
    inputs = [v for v in description.variables if v.role is Role.INPUT]
    for position, variable in enumerate(inputs):
        t = variable.info.type
        shape = [d or 0 for d in t.shape]
        if t.dtype.is_integer:
            array: Array = rng.integers(0, 2, shape).astype(t.dtype.numpy)
        else:
            array = rng.uniform(-1, 1, shape).astype(t.dtype.numpy)
        execution.set_input(position, array)
        area[variable.offset : variable.offset + array.nbytes] = array.reshape(-1).view(np.uint8)
    area.tofile(folder / "given")
    flags = ["-O2", "-include", str(folder / "model.h"), "-DENTRY=model", "-DCONFIG=model_config"]
    linked = folder / "run"
    subprocess.run(["cc", "-std=gnu99", *flags, HARNESS, folder / "model.o", "-o", linked, "-lm"], check=True)
    execution.execute()
    times = max(3, min(10_000, int(ROUND_SECONDS / fastest(execution.execute, 1))))
    found: list[tuple[float, float]] = []
    for number in range(rounds):
        both = [lambda: outside(folder, times), lambda: fastest(execution.execute, times) * 1e3]
        order = (0, 1) if number % 2 else (1, 0)
        measured = {at: both[at]() for at in order}
        found.append((measured[0], measured[1]))
    ratio = statistics.median(a / b for a, b in found)
    return min(a for a, _ in found), min(b for _, b in found), ratio


def outside(folder: Path, times: int) -> float:
    """The minimum time in ms of a run of the linked program."""
    command = [folder / "run", folder / "model.weights", folder / "given", folder / "made", str(times)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1e3


def main() -> int:
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    out.add_argument("--target", metavar="TRIPLE")
    out.add_argument("--cpu", metavar="C")
    out.add_argument("--rounds", type=int, default=0, metavar="N")
    options = out.parse_args()
    heads = ["model", "text", "weights", "mutables", "activations"]
    if options.rounds:
        heads += ["bundle ms", "in process ms", "ratio"]
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * (len(heads) - 1))
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(row(model, options, Path(folder)), flush=True)
            except onert.OnertError as error:
                print(f"{model}: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
