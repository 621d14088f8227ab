"""Loads, compiles and runs mutated packages in a separate process, which a crash may end.

    python -m fuzz.package_probe FIRST COUNT

Prints a line for each seed: the seed before it starts, then the seconds of processor time and how it ended: `result`,
`refused`, or an exception that should never escape. The last line lists what the process left behind: files, or memory.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np
from fuzz.mutate_package import mutant
from patience import at_work
from resident import peak
from shared_material import REPOSITORY

import onert
from onert.frontend.nnpackage.test_case import test_case as read_test_case

SECONDS = 30
"""Processor time beyond that of any legitimate run of these small models."""
BYTES = 6 << 30
RESIDENT = 1 << 20
"""KiB that no batch may exceed at its peak."""


def attempt(source: bytes | Path) -> str:
    """How one mutant ended."""
    found = []
    for step in (_run, _read_test_case):
        try:
            step(source)
        except onert.OnertError as error:
            sentence = str(error)
            found.append("refused" if sentence.strip() and sentence.isprintable() else f"NO SENTENCE {sentence!r}")
        else:
            found.append("result")
    return next((each for each in found if each.startswith("NO")), found[0])


def _run(source: bytes | Path) -> None:
    # No backend is named, so that the package's choice counts; without one it runs without native code.
    package = onert.load(source)
    if package.config.get("BACKENDS"):
        program = onert.compile(package)
    else:
        program = onert.compile(package, backends=("reference",))
    inputs = [np.zeros([d or 1 for d in info.shape], info.dtype.numpy) for info in program.inputs]
    onert.Execution(program).run(inputs)


def _read_test_case(source: bytes | Path) -> None:
    if isinstance(source, Path):
        read_test_case(source)


def main(arguments: Sequence[str]) -> None:
    first, count = int(arguments[0]), int(arguments[1])
    examples = REPOSITORY / "nnpackage/examples"
    models = {
        name: (examples / folder / f"{folder}.tflite").read_bytes()
        for name, folder in (("first.tflite", "digits_float"), ("second.tflite", "digits_int8"))
    }
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        (work / "evil.py").write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
        os.chdir(work)
        sys.path.insert(0, str(work))
        (work / "packages").mkdir()
        for seed in range(first, first + count):
            print(seed, end=" ", flush=True)
            start = process_time()
            try:
                with at_work(SECONDS):
                    ended = attempt(mutant(seed, models).write(work / "packages" / str(seed)))
            except BaseException:  # any other exception is a finding
                ended = f"ESCAPED {traceback.format_exc(limit=-3)!r}"
            print(f"{process_time() - start:.2f}", ended)
        left = sorted(path.name for path in work.iterdir() if path.name not in ("evil.py", "packages"))
        print("left", ", ".join(left) or "nothing", "and memory" if peak() > RESIDENT else "")


if __name__ == "__main__":
    main(sys.argv[1:])
