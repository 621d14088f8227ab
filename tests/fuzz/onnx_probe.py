"""Loads, compiles and runs mutants of ONNX models, in a process of its own; see `probe`.

python -m fuzz.onnx_probe FIRST COUNT

Prints a line for each seed as `probe` does.
"""

from __future__ import annotations

import resource
import sys
import traceback
from collections.abc import Sequence
from time import process_time

from fuzz.mutate_onnx import mutant
from fuzz.probe import BYTES, SECONDS, attempt, run_as_package
from onnx_cases import cases
from patience import at_work

KINDS = ("simple", "pytorch-operator", "pytorch-converted")
NODES = (
    "test_if",
    "test_loop",
    "test_scan",
    "test_resize",
    "test_lstm",
    "test_ai_onnx_ml",
    "test_sequence",
    "test_opt",
)
EVERY = 15
"""Of the other node cases one in so many."""


def corpus() -> list[bytes]:
    """Small models of ONNX's suite: node cases with graphs or much else in them, and a sample of the others."""
    from onnx_cases import read

    found = [read(kind, name).model for kind in KINDS for name in sorted(cases(kind))]
    names = sorted(cases("node"))
    nodes = sorted({*names[::EVERY], *(n for n in names if n.startswith(NODES))})
    return [m for m in (*found, *(read("node", n).model for n in nodes)) if len(m) < 60_000]


def main(arguments: Sequence[str]) -> None:
    first, count = int(arguments[0]), int(arguments[1])
    models = corpus()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for seed in range(first, first + count):
        print(seed, end=" ", flush=True)
        start = process_time()
        try:
            with at_work(SECONDS):
                mutated = mutant(seed, models[seed % len(models)])
                ended = attempt(run_as_package, mutated, ("reference",) if seed % 4 else ())
        except BaseException:  # whatever it is, it is the finding
            ended = f"ESCAPED {traceback.format_exc(limit=-3)!r}"
        print(f"{process_time() - start:.2f}", ended)


if __name__ == "__main__":
    main(sys.argv[1:])
