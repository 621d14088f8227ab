"""Loads, compiles and runs mutants of models in ONNX Runtime's format in a separate process; see `probe`.

    python -m fuzz.ort_probe FIRST COUNT

A mutant is a file with changed bytes, or a mutant of an ONNX model in this format. Prints a line for each seed as
`probe` does.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from fuzz.batch import bytes_changed
from fuzz.mutate_onnx import CHANGES
from fuzz.probe import report_mutants
from onnx import ModelProto
from onnx_cases import cases, read
from ort_writer import written

KINDS = ("simple", "pytorch-operator", "pytorch-converted")


def mutant(seed: int, model: bytes) -> bytes:
    """A file with changes determined by the seed."""
    rng = random.Random(seed)
    found = ModelProto.FromString(model)
    if rng.random() < 0.5:
        return bytes_changed(rng, written(found), 6)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(CHANGES)(rng, found)
    return written(found)


def main(arguments: Sequence[str]) -> None:
    models = [m for kind in KINDS for name in sorted(cases(kind)) if len(m := read(kind, name).model) < 60_000]
    report_mutants(arguments, models, mutant)


if __name__ == "__main__":
    main(sys.argv[1:])
