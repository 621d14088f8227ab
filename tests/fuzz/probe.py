"""Loads, compiles and runs mutants in a separate process, which a crash may end.

    python -m fuzz.probe FIRST COUNT MODEL...

Prints a line for each seed: the seed before it starts, then the seconds of processor time and how it ended: `result`,
`refused`, or an exception that should never escape.
"""

from __future__ import annotations

import resource
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from fuzz import mutate, mutate_flow
from fuzz.batch import blank
from patience import at_work

import onert
import onert.flow as myelin

SECONDS = 30
"""Processor time beyond that of any legitimate run of these small models, compilation included."""
BYTES = 6 << 30
HELD_BYTES = 1 << 30
"""The most private memory, without code, that a small file may use."""


def _input(info: onert.TensorInfo) -> Any:
    shape = tuple(d or 1 for d in info.shape)
    if not info.dtype.is_handle and np.prod(shape, dtype=np.float64) * info.dtype.itemsize > BYTES / 4:
        raise onert.ExecutionError("the input is larger than what this probe gives")
    return blank(info)


def run_as_package(model: bytes | Path, backends: Sequence[str]) -> None:
    program = onert.compile(onert.load(model), backends=tuple(backends), num_threads=1, max_iterations=100)
    onert.Execution(program).run([_input(info) for info in program.inputs])


def run_as_flow(model: bytes, backends: Sequence[str]) -> None:
    """Run every cell through the transformations of flows, with the gradients of all functions that have one."""
    flow = myelin.Flow()
    flow.load(model)
    for function in flow.funcs.values():
        function.backprop = not backends
    net = myelin.Compiler(backends=tuple(backends), num_threads=1, max_iterations=100).compile(flow)
    for cell in net.cells.values():
        str(cell)
        cell.instance().compute()


def attempt(run: Callable[[], None]) -> str:
    """How one mutant ended."""
    try:
        run()
    except onert.OnertError as error:
        sentence = str(error)
        return "refused" if sentence.strip() and "\n" not in sentence else f"NO SENTENCE {sentence!r}"
    return "result"


def report(seeds: Iterable[int], ended: Callable[[int], str], most: int) -> None:
    """Print a line for each seed. A run that exceeds `most` bytes of data, or raises anything else, is a finding."""
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    np.seterr(all="ignore")
    for seed in seeds:
        print(seed, end=" ", flush=True)
        start = process_time()
        try:
            with at_work(SECONDS):
                how = ended(seed)
        except BaseException:  # any other exception is a finding
            how = f"ESCAPED {traceback.format_exc(limit=-3)!r}"
        print(f"{process_time() - start:.2f}", how)


def report_mutants(arguments: Sequence[str], models: Sequence[bytes], mutant: Callable[[int, bytes], bytes]) -> None:
    """Report on the mutants of models for a range of seeds, given as its first number and its length."""
    first, count = int(arguments[0]), int(arguments[1])

    def ended(seed: int) -> str:
        mutated = mutant(seed, models[seed % len(models)])
        return attempt(lambda: run_as_package(mutated, ("reference",) if seed % 4 else ()))

    report(range(first, first + count), ended, HELD_BYTES)


def main(arguments: Sequence[str]) -> None:
    first, count = int(arguments[0]), int(arguments[1])
    corpus = [Path(p).read_bytes() for p in arguments[2:]]

    def ended(seed: int) -> str:
        # Some runs use the backend without native code: both backends must refuse the same mutants.
        content = corpus[seed % len(corpus)]
        is_flow = content.startswith(b"flow")
        mutant = (mutate_flow if is_flow else mutate).mutant(seed, content)
        run = run_as_flow if is_flow and seed % 4 in (1, 2) else run_as_package
        backends = ("reference",) if seed % 4 in (0, 2) and (is_flow or not seed % 4) else ()
        return attempt(lambda: run(mutant, backends))

    report(range(first, first + count), ended, BYTES)


if __name__ == "__main__":
    main(sys.argv[1:])
