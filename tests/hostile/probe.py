"""Loads, compiles and runs hostile files, each in a separate process, and reports how each ended.

    python -m hostile.probe [NAME_SIZE... | FILE...]

Without arguments it tries every class at every size. Prints a line for each: its name, how it ended (`result`,
`refused`, or an unacceptable ending), at which stage, seconds of processor time, peak memory in MiB, and the sentence.
A summary goes to standard error.
"""

from __future__ import annotations

import os
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fuzz.batch import blank

import onert
from hostile.make import CLASSES, SIZES, make

SECONDS = 60
"""Processor time after which a process is ended: far more than any file may take."""
BYTES = 3 << 30


def attempt(source: bytes | str) -> str:
    """How one file ended."""
    stage = "load"
    try:
        package = onert.load(source)
        stage = "compile"
        program = onert.compile(package)
        stage = "run"
        onert.Execution(program).run([blank(info) for info in program.inputs])
    except onert.OnertError as error:
        sentence = str(error)
        fine = sentence.strip() and "\n" not in sentence and len(sentence) < 20_000
        return f"{'refused' if fine else 'NO SENTENCE'} {stage} {sentence}"
    except BaseException as error:  # any other exception is a finding
        return f"ESCAPED {stage} {type(error).__name__}"
    return "result run"


def _apart(source: bytes | str) -> tuple[str, float, int]:
    """How a file ended in a separate process, its processor time, and its peak memory in KiB."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
        outcome = attempt(source)
        os.write(writing, outcome[:4000].encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        outcome = pipe.read().decode(errors="replace")
    _, status, usage = os.wait4(process, 0)
    if not outcome:
        outcome = f"DIED - status {status}"
    return outcome, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main(arguments: Sequence[str]) -> None:
    np.seterr(all="ignore")
    endings: Counter[str] = Counter()
    slowest, largest = (0.0, ""), (0, "")
    for argument in arguments or [f"{name}_{size}" for name in CLASSES for size in SIZES]:
        name, _, size = argument.rpartition("_")
        source = make(name, size) if size in SIZES else str(Path(argument))
        outcome, seconds, kib = _apart(source)
        ended, stage, *sentence = outcome.split(" ", 2)
        print(Path(argument).name, ended, stage, f"{seconds:.2f}", kib >> 10, *sentence, flush=True)
        endings[ended] += 1
        slowest, largest = max(slowest, (seconds, argument)), max(largest, (kib >> 10, argument))
    counted = ", ".join(f"{number} {ended}" for ended, number in sorted(endings.items()))
    print(f"{counted}; {slowest[1]} took {slowest[0]:.2f} s, {largest[1]} {largest[0]} MiB", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
