"""The heterogeneous scheduler with two computing backends, against each of them alone, as in docs/executors.md.

    python tests/bench/heterogeneous.py [--threads N] [--rounds N] [MODEL ...]

The second backend is the example in docs/examples/dynamic_range. Each operation is first measured on both backends. The
table shows the times the scheduler expects from these measurements and the times the runs took. Without MODEL, the
model has layers that suit either backend (`branchy_models.py`). Times are minima over all rounds, ratios are medians
over the rounds. The last column is the difference from the float32 result, relative to its range.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

import onert
from onert.tools.contest import Contestant, contest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests"), str(REPOSITORY / "docs" / "examples" / "dynamic_range")]

from branchy_models import two_natures  # noqa: E402

OTHER = "onert_dynamic_range:DynamicRange"


def expected(program: onert.Program) -> tuple[float, ...]:
    """The times in us that the scheduler's note predicts: on each backend alone, and for the chosen assignment."""
    note = next(note for note in program.notes if "by measured times" in note)
    alone = [re.search(rf"{name} alone (\d+) us", note) for name in ("llvm", "dynamic_range")]
    chosen = re.search(r"a run takes (\d+) us", note)
    return tuple(float("nan") if found is None else float(found[1]) for found in (*alone, chosen))


def rows(name: str, package: onert.Package, options: argparse.Namespace) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        mixed = onert.compile(
            package,
            backends=("llvm", OTHER),
            profiling=True,
            use_scheduler=True,
            workspace_dir=folder,
            num_threads=options.threads,
        )
    alone = [onert.compile(package, backends=(b,), num_threads=options.threads) for b in ("llvm", OTHER)]
    rng = np.random.default_rng(0)
    shapes = [[d or 1 for d in info.shape] for info in mixed.inputs]
    given = [
        rng.normal(size=shape).astype(np.float32) if info.dtype.is_float else np.zeros(shape, info.dtype.numpy)
        for info, shape in zip(mixed.inputs, shapes, strict=True)
    ]
    executions = [onert.Execution(program) for program in (*alone, mixed)]
    answers = [next(iter(execution.run(given).values())) for execution in executions]
    names = ("llvm alone", "dynamic_range alone", "as scheduled")
    found = contest([Contestant(n, e.execute) for n, e in zip(names, executions, strict=True)], options.rounds)
    return [
        f"| {name} | {result.name} | {guess:.0f} | {result.minimum * 1e6:.0f} | {found[2].ratio(result):.2f} | "
        f"{np.abs(answer - answers[0]).max() / np.ptp(answers[0]):.3f} |"
        for result, guess, answer in zip(found, expected(mixed), answers, strict=True)
    ]


def main() -> int:
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("models", type=Path, nargs="*", metavar="MODEL")
    out.add_argument("--threads", type=int, default=1, metavar="N")
    out.add_argument("--rounds", type=int, default=60, metavar="N")
    options = out.parse_args()
    packages = [(path.stem, onert.load(path)) for path in options.models] or [("large and small layers", two_natures())]
    print("| model | backends | expected us | us | speedup when scheduled | error |")
    print("|---|---|---:|---:|---:|---:|")
    for name, package in packages:
        print("\n".join(rows(name, package, options)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
