"""Counts how mutants end, and reports the slowest one and the memory of the largest process.

    python -m fuzz.count models | packages | onnx | tnn COUNT

Prints every unexpected ending, and a summary at the end.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

from fuzz.corpus import corpus

BATCH = 300


def main(arguments: Sequence[str]) -> None:
    kind, many = arguments[0], int(arguments[1])
    module = "fuzz.probe" if kind == "models" else f"fuzz.{kind.removesuffix('s')}_probe"
    models = corpus() if kind == "models" else []
    endings: Counter[str] = Counter()
    slowest = (0.0, "none")
    for first in range(0, many, BATCH):
        batch = str(min(BATCH, many - first))
        command = [sys.executable, "-m", module, str(first), batch, *models]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"a process ended with {done.returncode}", done.stderr[-2000:], flush=True)
        for line in done.stdout.splitlines():
            seed, seconds, ended = (*line.split(" ", 2), "", "")[:3]
            if seed == "left":
                if seconds != "nothing" or ended:
                    print(line, flush=True)
                continue
            if ended not in ("result", "refused"):
                print(line, flush=True)
                ended = "wrong"
            endings[ended] += 1
            slowest = max(slowest, (float(seconds or 0), seed))
    counted = ", ".join(f"{number} {ended}" for ended, number in sorted(endings.items()))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"{counted}; the slowest, {slowest[1]}, took {slowest[0]} s, the largest process {peak} MiB")


if __name__ == "__main__":
    main(sys.argv[1:])
