"""Loads, compiles and runs mutants of TNN models in a separate process; see `probe`.

    python -m fuzz.tnn_probe FIRST COUNT

Prints a line for each seed as `probe` does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.mutate_tnn import mutant
from fuzz.probe import HELD_BYTES, attempt, report, run_as_package


def main(arguments: Sequence[str]) -> None:
    first, count = int(arguments[0]), int(arguments[1])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.tnnproto"

        def ended(seed: int) -> str:
            structure, weights = mutant(seed)
            path.write_text(structure, encoding="utf-8")
            path.with_suffix(".tnnmodel").write_bytes(weights)
            return attempt(lambda: run_as_package(path, ("reference",) if seed % 4 else ()))

        report(range(first, first + count), ended, HELD_BYTES)


if __name__ == "__main__":
    main(sys.argv[1:])
